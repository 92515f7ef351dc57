"""Costs as a generation has them, and the draft lengths and trees that follow from costs and acceptance."""

import itertools
import math

import numpy as np
import pytest

from speculative import (
    ByPaths,
    CostModel,
    Heuristic,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    TreeDrafter,
    best_tree,
    measure_costs,
    rejection,
    widths,
)
from speculative.measuring.clocks import per_token
from speculative.measuring.draft_length import since_the_last_change
from speculative.measuring.tree_size import best_shape
from speculative.testing import TableModel
from speculative.theory import best_K, expected_tokens
from speculative.theory.candidates import matched
from speculative.tree import path

T3, D3 = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def best_by_depth(weights, n, max_depth):
    nodes = [ranks for d in range(1, max_depth + 1) for ranks in itertools.product(range(weights.shape[1]), repeat=d)]

    def value(chosen):
        return sum(math.prod(weights[d, r] for d, r in enumerate(ranks)) for ranks in chosen)

    def closed(chosen):
        return all((not r[:-1] or r[:-1] in chosen) and (not r[-1] or (*r[:-1], r[-1] - 1) in chosen) for r in chosen)

    return max(value(c) for c in map(set, itertools.combinations(nodes, n)) if closed(c)), value


def test_each_round_is_timed_as_in_a_generation():
    """Each round is timed as in a generation: target and drafter have all tokens but the last in their caches."""
    calls, text = [], [0, 1, 2, 1]

    class Watched(TableModel):
        def __call__(self, tokens, n_last=1):
            calls.append((self.name, len(tokens)))
            return super().__call__(tokens, n_last)

    target, draft = Watched(T3.probs), Watched(D3.probs)
    target.name, draft.name = "target", "draft"
    measure_costs(target, ModelDrafter(draft), text, most=2, repeats=1)

    def of_a_round(k):
        return [("target", 3), ("draft", 3), *[("draft", 4 + i) for i in range(k)], ("target", 4 + k)]

    assert calls == 2 * [*of_a_round(0), *of_a_round(1), *of_a_round(2)]  # the first time is a warm-up


def test_the_spread_of_plain_steps_is_relative(monkeypatch):
    now, steps = [0.0], itertools.cycle([8.0, 10.0, 12.0])
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: now[0])

    class Slow(TableModel):
        def __call__(self, tokens, n_last=1):
            now[0] += next(steps)
            return super().__call__(tokens, n_last)

    costs = measure_costs(Slow(T3.probs), PromptLookupDrafter(3), [0, 1, 2], most=1, repeats=9)
    assert costs.step in (8.0, 10.0, 12.0) and 0.2 <= costs.spread <= 0.5


def test_costs_are_those_of_chains():
    drafter = TreeDrafter(ByPaths(D3), widths(2))
    with pytest.raises(ValueError, match="expected a drafter of chains, got a tree"):
        measure_costs(ByPaths(T3), drafter, [0, 1, 2], most=2, repeats=1)


def test_costs_are_measured_with_the_rule_and_the_sampling_in_use():
    used = []

    def rule(draft, target_probs, rng):
        used.append(target_probs.max())
        return rejection(draft, target_probs, rng)

    measure_costs(T3, ModelDrafter(D3), [0, 1, 2], sampling=Sampling(0), verifier=rule, most=2, repeats=2)
    assert len(used) == 3 * 3 and set(used) == {1.0}


def test_the_last_eight_rounds_may_be_a_change():
    rounds = [(4, 0)] * 8 + [(1, 1)] * 8
    assert since_the_last_change(rounds) == rounds[-8:]


def test_what_may_be_chance_is_no_change():
    """2.7 standard errors are no change: 28 of 56 accepted, then 0 of 8."""
    rounds = [(1, 1), (1, 0)] * 28 + [(1, 0)] * 8
    assert since_the_last_change(rounds) == rounds


def test_a_test_costs_the_draft_and_the_longer_pass():
    """What a test costs is the draft and the longer pass: 0.1 + 0.5 steps, so one in 39 rounds."""
    choose, history = CostModel(c=0.1, v=(1.0, 1.5, 2.0)), [(1, 0)] * 64
    for _ in range(200):
        history.append((choose(history), 0))
    tests = [i for i, (K, _) in enumerate(history[100:]) if K]
    assert set(np.diff(tests)) == {math.ceil(64 * 0.6) + 1}


def test_bounds_of_the_heuristic():
    for options in ({"first": 0}, {"most": 0}):
        with pytest.raises(ValueError, match="expected first and most of 1 or more"):
            Heuristic(**options)


def test_the_longest_draft_of_the_heuristic():
    assert Heuristic()([(4, 4)] * 20) == 16


def test_three_of_four_accepted_is_one_rejection():
    """Three of four accepted is one rejection."""
    choose = CostModel(c=0.3, v=(1.0,) * 9)
    assert choose([(4, 3)] * 64) == best_K((192 + 1.6) / (256 + 2), 0.3, (1.0,) * 9) == 2


def test_the_best_chain_may_be_as_long_as_the_costs_allow():
    assert best_shape([0.9], 0.01, [1.0] * 4)[0][0] == [-1, 0, 1]


def test_the_expected_speedup_uses_the_measured_acceptance():
    assert best_shape([0.5, 0.1, 0.3], 0.0, [1.0] * 4, max_depth=1)[1] == pytest.approx(1.9)


def test_the_best_K_may_be_as_long_as_the_costs_allow():
    assert best_K(1.0, 0.0, [1.0] * 31) == 30


def test_numbers_that_no_formula_has():
    for K in (2.5, -1, [1.0, 2.0]):
        with pytest.raises(ValueError, match="expected draft lengths K of 0 or more, whole numbers"):
            expected_tokens(0.8, K)
    for alpha in (-0.1, 1.1):
        with pytest.raises(ValueError, match="expected acceptance probabilities from 0 to 1"):
            expected_tokens(alpha, 2)


def test_rows_in_single_precision_are_distributions():
    p = np.array([0.1, 0.2, 0.7], np.float32)
    assert matched(p, p, 1) == pytest.approx(0.54)
    with pytest.raises(ValueError, match="expected p to be a distribution"):
        matched(p * 1.001, p, 1)


def test_no_time_is_no_speed():
    assert "0.00 ms per token,      0.0 tokens per second" in per_token(0.0, 5)


def test_the_best_tree_for_weights_by_depth():
    """The second level is nearly certain: both chains of two are worth more than two children of one node."""
    assert best_tree(4, [[0.5, 0.4], [0.9, 0.05]]) == ([-1, -1, 0, 1], [0, 1, 0, 0])


def test_the_best_tree_for_weights_by_depth_is_the_best_of_all():
    """Weights by depth, as those of heads."""
    rng = np.random.default_rng(0)
    for n, max_depth in itertools.product((1, 2, 3, 4), (1, 2)):
        weights = -np.sort(-rng.dirichlet(np.ones(3), 2)[:, :2], axis=1)
        weights = weights[::-1] if weights[0, 0] > weights[1, 0] else weights
        if n > (2 if max_depth == 1 else 6):
            continue
        best, value = best_by_depth(weights, min(n, 2 if max_depth == 1 else n), max_depth)
        parents, ranks = best_tree(n, weights, max_depth)
        assert value([[ranks[i] for i in path(parents, node)] for node in range(len(parents))]) == pytest.approx(best)


def test_no_level_without_weights():
    """No level without weights."""
    weights = [[0.9], [0.8]]
    assert best_tree(5, weights) == best_tree(5, weights, 9) == ([-1, 0], [0, 0])


@pytest.mark.parametrize(
    "weights", [[0.3, 0.6], [[0.6, 0.3], [0.2, 0.4]], [0.5, -0.1], [math.nan], 0.5, [[[0.5]]]], ids=str
)
def test_weights_that_are_refused(weights):
    with pytest.raises(ValueError, match="expected weights of 0 or more that do not increase with the rank"):
        best_tree(3, weights)
