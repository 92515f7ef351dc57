"""What a calibration predicts happens, and no prediction uses the measurements it is compared with."""

import itertools
import math

import numpy as np
import pytest

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler
from speculative.measuring import calibrate, forecast
from speculative.measuring.costs import Costs
from speculative.testing import TableModel
from speculative.theory import overlap, speedup

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
GREEDY, PROMPTS, N = Sampling(temperature=0), [list(bits) for bits in itertools.product(range(2), repeat=3)] * 2, 20


@pytest.fixture
def without_measuring(monkeypatch):
    """Replaces the measurement of costs by given ones; a list of (text, sampling) that they were asked for."""
    seen = []

    def measured(target, drafter, tokens, sampling, **options):
        seen.append((list(tokens), sampling))
        return Costs(0.001, 0.1, (1.0,) * 9)

    monkeypatch.setattr("speculative.measuring.calibration.measure_costs", measured)
    return seen


def tokens_per_call(K, prompts):
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT, sampling=GREEDY), K=K, sampling=GREEDY)
    return N * len(prompts) / sum(sampler.generate(prompt, N, 0).stats.target_calls for prompt in prompts)


def test_greedy_texts_take_exactly_the_expected_calls():
    expected = forecast(TARGET, ModelDrafter(DRAFT, sampling=GREEDY), PROMPTS, N, sampling=GREEDY, most=4)
    assert len(expected.tokens_per_call) == len(expected.expected_speedup) == 4 and len(expected.costs.v) == 5
    for K in range(1, 5):
        np.testing.assert_allclose(expected.tokens_per_call[K - 1], tokens_per_call(K, PROMPTS), rtol=1e-12)
    assert 1 < expected.tokens_per_call[0] < 2


def test_alpha_is_the_mean_overlap_along_the_targets_own_texts(without_measuring):
    sampling, drafter = Sampling(0.8), ModelDrafter(DRAFT, sampling=Sampling(0.9))
    expected = forecast(TARGET, drafter, PROMPTS, N, sampling=sampling, most=2, seed=3)
    overlaps = []
    for i, prompt in enumerate(PROMPTS):
        text = [*prompt, *AutoregressiveSampler(TARGET, sampling=sampling).generate(prompt, N, 3 + i).tokens.tolist()]
        p, q = (s(model(text[:-1], n_last=N)) for s, model in ((sampling, TARGET), (drafter.sampling, DRAFT)))
        overlaps.append(overlap(p, q).mean())
    assert math.isclose(expected.alpha, np.mean(overlaps))
    for K in (1, 2):
        by_formula = speedup(expected.alpha, K, expected.costs.c, expected.costs.v)
        assert math.isclose(expected.speedup_from_alpha[K - 1], by_formula)


def test_costs_of_a_forecast_are_those_in_the_middle_of_a_text_with_its_sampling(without_measuring):
    sampling = Sampling(temperature=0.5)
    forecast(TARGET, ModelDrafter(DRAFT), [[0, 1], [1]], 10, sampling=sampling)
    text = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 10, 0).tokens.tolist()
    assert without_measuring == [([0, 1, *text[:5]], sampling)]


def test_speculation_does_not_pay_with_a_draft_at_the_targets_cost(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: now[0])

    def slow(tokens, n_last=1):
        now[0] += 1.0
        return TARGET(tokens, n_last)

    slow.n_vocab, slow.n_ctx = 5, 99
    expected = forecast(slow, ModelDrafter(slow), PROMPTS, N, sampling=Sampling(), most=3)
    assert math.isclose(expected.alpha, 1) and expected.best_K == 0
    assert (expected.costs.step, expected.costs.c, expected.costs.v) == (1, 1, (1, 1, 1, 1))
    free = forecast(slow, ModelDrafter(TARGET), PROMPTS, N, sampling=Sampling(), most=3)
    assert free.costs.c == 0 and free.best_K == 3 and math.isclose(free.expected_speedup[2], 4)
    assert max(expected.expected_speedup) == 1  # K + 1 tokens for K drafted ones and a check, each at one token's cost


def test_a_third_of_the_prompts_is_timed_and_the_others_are_expected_from():
    drafter = ModelDrafter(DRAFT, sampling=GREEDY)
    prompts = [[0, 0, 0]] * 2 + [[1, 1, 0]] * 5
    expected, rows = calibrate(TARGET, drafter, prompts, N, sampling=GREEDY, most=3)
    assert [row["K"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert math.isclose(row["tokens_per_call"], tokens_per_call(row["K"], prompts[:2]))
        assert math.isclose(row["expected_tokens_per_call"], tokens_per_call(row["K"], prompts[2:]))
        assert row["low"] <= row["speedup"] <= row["high"]
        assert row["expected_speedup"] == expected.expected_speedup[row["K"] - 1]
    assert expected.best_K == int(np.argmax([1, *expected.expected_speedup]))


def test_the_timed_texts_have_other_seeds_than_the_expected_ones(without_measuring):
    parts = {}
    keep = lambda name, measure: parts.setdefault(name, measure())  # noqa: E731
    calibrate(TARGET, ModelDrafter(DRAFT), [[0]] * 3, 20, sampling=Sampling(), seed=4, most=1, keep=keep)
    alone = parts["prompt 1"][0]["tokens"]
    assert alone == AutoregressiveSampler(TARGET).generate([0], 20, 7).tokens.tolist()


def test_a_draft_of_unknown_length_has_no_forecast():
    drafter = ModelDrafter(DRAFT, threshold=0.5)
    with pytest.raises(ValueError, match=r"expected a drafter that always drafts K tokens, got one with threshold 0.5"):
        forecast(TARGET, drafter, PROMPTS, N, sampling=Sampling(), most=2)
