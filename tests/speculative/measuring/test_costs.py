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

TARGET, DRAFT, FREE = TableModel.random(3, seed=1), TableModel.random(3, seed=2), PromptLookupDrafter(3)
NOW = [0.0]


class Slow:
    """A model that takes so many milliseconds a call, and so many for each row; its calls are recorded."""

    n_vocab, n_ctx = 3, 64

    def __init__(self, times, row=0.0, calls=None, name=""):
        self.times, self.row, self.calls, self.name = itertools.cycle(times), row, calls, name

    def __call__(self, tokens, n_last=1):
        NOW[0] += next(self.times) + n_last * self.row
        if self.calls is not None:
            self.calls.append((self.name, len(tokens)))
        return TARGET(tokens, n_last)


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr("speculative.generation.perf_counter", lambda: NOW[0])


def test_the_costs_are_those_of_the_parts():
    """One slow call does not change them."""
    costs = measure_costs(Slow([8.0], 2.0), ModelDrafter(Slow([0.5], 0.5)), [0, 1, 2] * 6, most=4, repeats=3)
    assert (costs.step, costs.c) == (10.0, 0.1)
    np.testing.assert_allclose(costs.v, [1, 1.2, 1.4, 1.6, 1.8])
    free = measure_costs(Slow([8.0], 2.0), FREE, [0, 1, 2], most=2, repeats=3)
    assert free.c == 0 and len(free.v) == 3
    times = [1008.0 if call in (2, 12, 14, 22) else 8.0 for call in range(1, 100)]
    costs = measure_costs(Slow(times, 2.0), ModelDrafter(Slow([1.0])), [0, 1] * 8, most=3, repeats=5)
    np.testing.assert_allclose([costs.step, costs.c, *costs.v], [10, 0.1, 1, 1.2, 1.4, 1.6])


def test_each_round_is_timed_as_in_a_generation():
    """Target and drafter have all tokens but the last in their caches."""
    calls = []
    target, draft = Slow([1.0], calls=calls, name="target"), Slow([1.0], calls=calls, name="draft")
    measure_costs(target, ModelDrafter(draft), [0, 1, 2, 1], most=2, repeats=1)
    caches = [("target", 3), ("draft", 3)]
    rounds = [[*caches, *[("draft", 4 + i) for i in range(k)], ("target", 4 + k)] for k in range(3)]
    assert calls == [call for round_ in rounds * 2 for call in round_]  # the first time is a warm-up


def test_costs_are_measured_with_the_rule_and_the_sampling_in_use():
    used = []

    def rule(draft, target_probs, rng):
        used.append(target_probs.max())
        return rejection(draft, target_probs, rng)

    how = {"sampling": Sampling(0), "verifier": rule, "most": 2, "repeats": 2}
    measure_costs(Slow([1.0]), ModelDrafter(DRAFT), [0, 1, 2], **how)
    assert len(used) == 3 * 3 and set(used) == {1.0}


def test_what_cannot_be_measured_is_refused():
    tree, chain = TreeDrafter(ByPaths(DRAFT), Shape.widths(2)), ModelDrafter(DRAFT)
    for drafter, tokens, most, words in (
        (tree, [0, 1, 2], 2, "expected a drafter of chains, got a tree"),
        (chain, [1], 1, "expected 2 tokens or more and most of 1 or more, got 1 and 1"),
        (chain, [1, 2], 0, "expected 2 tokens or more and most of 1 or more, got 2 and 0"),
    ):
        with pytest.raises(ValueError, match=words):
            measure_costs(ByPaths(TARGET), drafter, tokens, most=most, repeats=1)
