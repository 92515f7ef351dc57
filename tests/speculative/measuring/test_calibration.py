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
DRAFTER = ModelDrafter(DRAFT, sampling=GREEDY)


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
    sampler = SpeculativeSampler(TARGET, DRAFTER, K=K, sampling=GREEDY)
    return N * len(prompts) / sum(sampler.generate(prompt, N, 0).stats.target_calls for prompt in prompts)


def test_alpha_is_the_mean_overlap_along_the_targets_own_texts(without_measuring):
    """The costs are those in the middle of the first text, with the target's sampling."""
    sampling, drafter = Sampling(0.8), ModelDrafter(DRAFT, sampling=Sampling(0.9))
    expected = forecast(TARGET, drafter, PROMPTS, N, sampling=sampling, most=2, seed=3)
    overlaps, texts = [], []
    for i, prompt in enumerate(PROMPTS):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate(prompt, N, 3 + i)
        texts.append([*prompt, *alone.tokens.tolist()])
        p, q = (s(model(texts[i][:-1], n_last=N)) for s, model in ((sampling, TARGET), (drafter.sampling, DRAFT)))
        overlaps.append(overlap(p, q).mean())
    assert math.isclose(expected.alpha, np.mean(overlaps))
    assert without_measuring == [(texts[0][: 3 + N // 2], sampling)]
    for K in (1, 2):
        by_formula = speedup(expected.alpha, K, expected.costs.c, expected.costs.v)
        assert math.isclose(expected.speedup_from_alpha[K - 1], by_formula)


def test_speculation_does_not_pay_with_a_draft_at_the_targets_cost(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("speculative.generation.perf_counter", lambda: now[0])

    def slow(tokens, n_last=1):
        now[0] += 1.0
        return TARGET(tokens, n_last)

    slow.n_vocab, slow.n_ctx = 5, 99
    dear, free = (
        forecast(slow, ModelDrafter(model), PROMPTS[:3], N, sampling=Sampling(), most=3) for model in (slow, TARGET)
    )
    assert math.isclose(dear.alpha, 1) and dear.best_K == 0
    assert (dear.costs.step, dear.costs.c, dear.costs.v) == (1, 1, (1, 1, 1, 1))
    assert max(dear.expected_speedup) == 1  # K + 1 tokens for K drafted ones and a check, each at one token's cost
    assert free.costs.c == 0 and free.best_K == 3 and math.isclose(free.expected_speedup[2], 4)


def test_a_third_of_the_prompts_is_timed_and_the_others_are_expected_from():
    """Greedy texts take exactly the expected calls."""
    prompts = PROMPTS[:8]
    expected, rows = calibrate(TARGET, DRAFTER, prompts, N, sampling=GREEDY, most=3)
    assert [row["K"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert math.isclose(row["tokens_per_call"], tokens_per_call(row["K"], prompts[:2]))
        assert math.isclose(row["expected_tokens_per_call"], tokens_per_call(row["K"], prompts[2:]))
        assert row["low"] <= row["speedup"] <= row["high"]
        assert row["expected_speedup"] == expected.expected_speedup[row["K"] - 1]
    assert len(expected.tokens_per_call) == 3 and len(expected.costs.v) == 4
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
