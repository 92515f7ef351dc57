"""The table of trees and the acceptance it is computed from; the size of a tree."""

import numpy as np
import pytest

from speculative import (
    ByPaths,
    RecyclingDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    TreeDrafter,
    exact_distribution,
)
from speculative.drafters.model_tree import RULES
from speculative.measuring.best_shape import acceptance_by_rank, best_shape
from speculative.testing import TableModel
from speculative.theory import tree_tokens

TARGET = ByPaths(TableModel.random(5, seed=1, n_ctx=99))
DRAFT = ByPaths(TableModel.random(5, seed=4, n_ctx=99))


@pytest.mark.parametrize("children", RULES)
def test_acceptance_by_rank_is_what_the_loop_accepts(children):
    """One place, two siblings: the exact probability that the first, or the second, is accepted."""
    drafter = TreeDrafter(DRAFT, Shape.widths(2), siblings=children)
    sampler = SpeculativeSampler(TARGET, drafter, K=1)
    found = exact_distribution(lambda rng: next(sampler.rounds([0, 1], 2, rng)).nodes)
    by_draws = exact_distribution(lambda rng: tuple(acceptance_by_rank(TARGET, drafter, [0, 1, 2], 1, Sampling(), rng)))
    wanted = [found.get((0,), 0), found.get((1,), 0)]
    np.testing.assert_allclose(sum(p * np.array(w) for w, p in by_draws.items()), wanted, atol=1e-12)


def test_the_best_shape_is_the_best_of_all_small_ones():
    w, v = [0.5, 0.25, 0.1], [1, 1.1, 1.2, 1.5, 1.6]
    shapes = [tree for depth in range(1, 5) for n in range(5) for tree in [Shape.best(n, w, depth)] if len(tree)]
    shapes += [Shape.widths(*[1] * n) for n in range(1, 5)]
    for c in (0.01, 0.2, 0.5):
        speedups = [tree_tokens(s.parents, w) / (v[len(s)] + c * s.depth) for s in shapes]
        shape, speedup = best_shape(w, c, v)
        assert speedup == pytest.approx(max(1, *speedups))
        assert speedup == pytest.approx(tree_tokens(shape.parents, w) / (v[len(shape)] + c * shape.depth))
    assert best_shape([0.9], 0.01, [1.0] * 4)[0] == Shape.chain(3)  # as long as the costs allow
    assert best_shape([0.5, 0.1, 0.3], 0.0, [1.0] * 4, max_depth=1)[1] == pytest.approx(1.9)  # w as it was measured


@pytest.mark.parametrize("temperature", [0, 1])
def test_acceptance_by_rank_of_recycled_tokens(temperature):
    """It is measured along the text, so the drafter knows more and more of it."""
    drafter = RecyclingDrafter(5, Shape.widths(2))
    w = acceptance_by_rank(TARGET, drafter, [0, 1, 2] * 4, 9, Sampling(temperature))
    assert len(w) == 2 and w.sum() > 0.3
