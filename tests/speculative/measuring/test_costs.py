"""Costs as a generation has them, on a clock that only the models advance."""

import itertools

import numpy as np
import pytest

from speculative import (
    ByPaths,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    Shape,
    TreeDrafter,
    measure_costs,
    rejection,
)
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


class Slow:
    """A model that takes so many milliseconds a call, and so many for each row."""

    n_vocab, n_ctx = 3, 64

    def __init__(self, clock, calls, row):
        self.clock, self.calls, self.row = clock, itertools.cycle(calls), row

    def __call__(self, tokens, n_last=1):
        self.clock[0] += next(self.calls) + n_last * self.row
        return TARGET(tokens, n_last)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only `Slow` advances."""
    now = [0.0]
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: now[0])
    return now


def test_the_costs_are_those_of_the_parts(clock):
    target, draft = Slow(clock, [8.0], 2.0), Slow(clock, [0.5], 0.5)
    costs = measure_costs(target, ModelDrafter(draft), [0, 1, 2] * 6, most=4, repeats=3)
    assert (costs.step, costs.c, costs.spread) == (10.0, 0.1, 0.0)
    np.testing.assert_allclose(costs.v, [1, 1.2, 1.4, 1.6, 1.8])
    free = measure_costs(target, PromptLookupDrafter(3), [0, 1, 2], most=2, repeats=3)
    assert free.c == 0 and len(free.v) == 3


def test_one_slow_call_does_not_change_the_costs(clock):
    calls = [1008.0 if call in (2, 12, 14, 22) else 8.0 for call in range(1, 100)]
    drafter = ModelDrafter(Slow(clock, [1.0], 0.0))
    costs = measure_costs(Slow(clock, calls, 2.0), drafter, [0, 1] * 8, most=3, repeats=5)
    np.testing.assert_allclose([costs.step, costs.c, *costs.v], [10, 0.1, 1, 1.2, 1.4, 1.6])


def test_the_spread_of_plain_steps_is_relative(clock):
    costs = measure_costs(Slow(clock, [8.0, 10.0, 12.0], 0.0), PromptLookupDrafter(3), [0, 1, 2], most=1, repeats=9)
    assert costs.step in (8.0, 10.0, 12.0) and 0.2 <= costs.spread <= 0.5


def test_each_round_is_timed_as_in_a_generation():
    """Target and drafter have all tokens but the last in their caches."""
    calls, text = [], [0, 1, 2, 1]

    class Watched(TableModel):
        def __call__(self, tokens, n_last=1):
            calls.append((self.name, len(tokens)))
            return super().__call__(tokens, n_last)

    target, draft = Watched(TARGET.probs), Watched(DRAFT.probs)
    target.name, draft.name = "target", "draft"
    measure_costs(target, ModelDrafter(draft), text, most=2, repeats=1)

    def of_a_round(k):
        return [("target", 3), ("draft", 3), *[("draft", 4 + i) for i in range(k)], ("target", 4 + k)]

    assert calls == 2 * [*of_a_round(0), *of_a_round(1), *of_a_round(2)]  # the first time is a warm-up


def test_costs_are_measured_with_the_rule_and_the_sampling_in_use():
    used = []

    def rule(draft, target_probs, rng):
        used.append(target_probs.max())
        return rejection(draft, target_probs, rng)

    measure_costs(TARGET, ModelDrafter(DRAFT), [0, 1, 2], sampling=Sampling(0), verifier=rule, most=2, repeats=2)
    assert len(used) == 3 * 3 and set(used) == {1.0}


def test_what_cannot_be_measured_is_refused():
    drafter = TreeDrafter(ByPaths(DRAFT), Shape.widths(2))
    with pytest.raises(ValueError, match="expected a drafter of chains, got a tree"):
        measure_costs(ByPaths(TARGET), drafter, [0, 1, 2], most=2, repeats=1)
    for tokens, most in (([1], 1), ([1, 2], 0)):
        with pytest.raises(ValueError, match="expected 2 tokens or more and most of 1 or more"):
            measure_costs(TARGET, ModelDrafter(DRAFT), tokens, most=most, repeats=1)
