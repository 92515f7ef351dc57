"""The experiments: what they expect is what happens, and nothing is expected from what it is held against."""

import itertools
import math

import numpy as np
import pytest

from speculative import AutoregressiveSampler, ModelDrafter, PromptLookupDrafter, Sampling, SpeculativeSampler
from speculative.experiments import calibrate, compare_drafters, forecast, gain, race
from speculative.testing import TableModel
from speculative.theory import overlap, speedup

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
GREEDY, PROMPTS, N = Sampling(temperature=0), [[a, b, c] for a, b, c in itertools.product(range(2), repeat=3)] * 2, 20


def tokens_per_call(sampling, K, prompts):
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT, sampling=sampling), K=K, sampling=sampling)
    return N * len(prompts) / sum(sampler.generate(prompt, N, 0).stats.target_calls for prompt in prompts)


def test_greedy_texts_take_exactly_the_expected_calls():
    expected = forecast(TARGET, ModelDrafter(DRAFT, sampling=GREEDY), PROMPTS, N, sampling=GREEDY, most=4)
    assert len(expected.tokens_per_call) == len(expected.expected_speedup) == 4 and len(expected.costs.v) == 5
    for K in range(1, 5):
        np.testing.assert_allclose(expected.tokens_per_call[K - 1], tokens_per_call(GREEDY, K, PROMPTS), rtol=1e-12)
    assert 1 < expected.tokens_per_call[0] < 2


def test_alpha_is_the_mean_overlap_along_the_targets_own_texts():
    sampling, drafter = Sampling(0.8), ModelDrafter(DRAFT, sampling=Sampling(0.9))
    expected = forecast(TARGET, drafter, PROMPTS, N, sampling=sampling, most=2, seed=3)
    overlaps = []
    for i, prompt in enumerate(PROMPTS):
        text = [*prompt, *AutoregressiveSampler(TARGET, sampling=sampling).generate(prompt, N, 3 + i).tokens.tolist()]
        p, q = (s(model(text[:-1], n_last=N)) for s, model in ((sampling, TARGET), (drafter.sampling, DRAFT)))
        overlaps.append(overlap(p, q).mean())
    assert math.isclose(expected.alpha, np.mean(overlaps))
    half = 1.96 * np.std(overlaps, ddof=1) / math.sqrt(len(overlaps))
    np.testing.assert_allclose(
        [expected.alpha_low, expected.alpha_high], [np.mean(overlaps) - half, np.mean(overlaps) + half]
    )
    for K in (1, 2):
        by_formula = speedup(expected.alpha, K, expected.costs.c, expected.costs.v)
        assert math.isclose(expected.speedup_from_alpha[K - 1], by_formula)


def test_a_third_of_the_prompts_is_timed_and_the_others_are_expected_from():
    drafter = ModelDrafter(DRAFT, sampling=GREEDY)
    prompts = [[0, 0, 0]] * 2 + [[1, 1, 0]] * 5
    expected, rows = calibrate(TARGET, drafter, prompts, N, sampling=GREEDY, most=3)
    assert [row["K"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert math.isclose(row["tokens_per_call"], tokens_per_call(GREEDY, row["K"], prompts[:2]))
        assert math.isclose(row["expected_tokens_per_call"], tokens_per_call(GREEDY, row["K"], prompts[2:]))
        assert row["low"] <= row["speedup"] <= row["high"]
        assert row["expected_speedup"] == expected.expected_speedup[row["K"] - 1]
    assert expected.best_K == int(np.argmax([1, *expected.expected_speedup]))


def test_speculation_does_not_pay_with_a_draft_at_the_targets_cost(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("speculative.sampler.perf_counter", lambda: now[0])

    def slow(tokens, n_last=1):
        now[0] += 1.0
        return TARGET(tokens, n_last)

    slow.n_vocab, slow.n_ctx = 5, 99
    expected = forecast(slow, ModelDrafter(slow), PROMPTS, N, sampling=Sampling(), most=3)
    assert math.isclose(expected.alpha, 1) and expected.best_K == 0
    assert (expected.costs.step, expected.costs.c, expected.costs.v) == (1, 1, (1, 1, 1, 1))
    free = forecast(slow, ModelDrafter(TARGET), PROMPTS, N, sampling=Sampling(), most=3)
    assert free.costs.c == 0 and free.best_K == 3 and math.isclose(free.expected_speedup[2], 4)
    assert max(expected.expected_speedup) == 1  # K + 1 tokens for K guesses and a check, each at the cost of a token


def test_the_gain_is_that_of_the_sums_and_its_interval_that_of_the_prompts():
    plain, other = np.array([2.0, 4.0, 6.0, 3.0] * 10), np.array([1.0, 4.0, 2.0, 3.0] * 10)
    middle, low, high = gain(plain, other)
    assert middle == 1.5 and 1.25 < low < 1.5 < high < 1.8
    assert gain(plain, other) == (middle, low, high)
    assert gain(plain, plain / 2) == (2, 2, 2)


def test_in_a_race_everyone_runs_on_every_prompt_with_the_same_seeds():
    samplers = {"alone": AutoregressiveSampler(TARGET), "short": SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=1)}
    seen = []
    results = race(samplers, PROMPTS, 5, seed=7, progress=lambda prompts: seen.append(len(prompts)) or prompts)
    assert seen == [len(PROMPTS)] and results.keys() == samplers.keys()
    for name, runs in results.items():
        assert len(runs) == len(PROMPTS)
        for i, (prompt, run) in enumerate(zip(PROMPTS, runs)):
            generation = samplers[name].generate(prompt, 5, 7 + i)
            assert run.seconds > run.draft_seconds >= 0 and run.tokens == generation.tokens.tolist()
            stats = generation.stats
            assert (run.drafted, run.accepted, run.rejected) == (stats.drafted, stats.accepted, stats.rejected)
            assert run.tokens_per_call == 5 / stats.target_calls


def test_a_row_for_each_drafter():
    entries = {
        "model": (TARGET, ModelDrafter(DRAFT)),
        "the target": (TARGET, ModelDrafter(TARGET)),
        "none": (TARGET, PromptLookupDrafter(5, n_max=1)),
    }
    prompts = [[0], [1]]
    rows = compare_drafters(TARGET, entries, prompts, 10, sampling=Sampling(), lengths=(1, 3), seed=2)
    assert [row["drafter"] for row in rows] == list(entries) and {row["exactness"] for row in rows} == {"exact"}
    for row, (_, drafter) in zip(rows, entries.values()):
        samplers = {K: SpeculativeSampler(TARGET, drafter, K=K) for K in (1, 3)}
        stats = {K: [s.generate(p, 10, 2 + i).stats for i, p in enumerate(prompts)] for K, s in samplers.items()}
        everything = [*stats[1], *stats[3]]
        accepted, rejected = sum(s.accepted for s in everything), sum(s.rejected for s in everything)
        assert math.isclose(row["alpha"], accepted / (accepted + rejected))
        assert math.isclose(row["tokens_per_call"], 20 / sum(s.target_calls for s in stats[row["K"]]))
        assert row["alpha_low"] < row["alpha"] < row["alpha_high"] + 1e-12
        assert row["low"] <= row["speedup"] <= row["high"]
    assert rows[1]["alpha"] == 1


def test_a_drafter_that_never_guesses_has_no_cost_for_a_guess():
    straight = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)  # 0, 1, 2, ...: nothing comes twice
    (row,) = compare_drafters(straight, {"none": (straight, PromptLookupDrafter(30))}, [[0]], 9, sampling=GREEDY)
    assert row["c"] is None and row["alpha"] is None and row["tokens_per_call"] == pytest.approx(1)
