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
    Typical,
    exact_distribution,
    exact_match,
    rejection,
)
from speculative.drafters.model_tree import RULES
from speculative.measuring.best_shape import acceptance_by_rank, acceptance_together, added, best_shape
from speculative.testing import TableModel
from speculative.theory import tree_tokens

TARGET = ByPaths(TableModel.random(5, seed=1, n_ctx=99))
DRAFT = ByPaths(TableModel.random(5, seed=4, n_ctx=99))


@pytest.mark.parametrize("verifier", [rejection, exact_match])
@pytest.mark.parametrize("children", RULES)
def test_acceptance_by_rank_is_what_the_loop_accepts(children, verifier, monkeypatch):
    """One place, two siblings: the exact probability that the first, or the second, is accepted."""
    monkeypatch.setattr("speculative.measuring.best_shape.N_COUNTED", 1)
    drafter = TreeDrafter(DRAFT, Shape.widths(2), siblings=children)
    sampler = SpeculativeSampler(TARGET, drafter, K=1, verifier=verifier)
    found = exact_distribution(lambda rng: next(sampler.rounds([0, 1], 2, rng)).nodes)
    by_draws = exact_distribution(
        lambda rng: tuple(acceptance_by_rank(TARGET, drafter, [0, 1, 2], 1, Sampling(), rng, verifier))
    )
    wanted = [found.get((0,), 0), found.get((1,), 0)]
    np.testing.assert_allclose(sum(p * np.array(w) for w, p in by_draws.items()), wanted, atol=1e-12)


@pytest.mark.parametrize("children", RULES)
def test_k_children_together_are_accepted_as_often_as_a_tree_of_k(children):
    """The rows of "drawn" depend on how many siblings there are, so each number of them is a tree of its own."""

    def planted(shape):
        return TARGET, TreeDrafter(DRAFT, shape, siblings=children)

    for seed in range(6):
        where = [0, 1, 2], 1, Sampling(), seed
        together = acceptance_together(planted, 3, *where)
        wanted = [acceptance_by_rank(*planted(Shape.widths(k)), *where).sum() for k in (1, 2, 3)]
        if children == "without":  # one draw of siblings tells of all numbers of them
            wanted = np.cumsum(acceptance_by_rank(*planted(Shape.widths(3)), *where))
        np.testing.assert_allclose(together, wanted, atol=1e-15)
        assert (added(together) >= 0).all() and added(together).sum() == pytest.approx(max(together))


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


@pytest.mark.parametrize("verifier", [exact_match, Typical()], ids=["match", "typical"])
@pytest.mark.parametrize("temperature", [0, 1])
def test_acceptance_by_rank_of_recycled_tokens(verifier, temperature):
    """It is measured along the text, so the drafter knows more and more of it."""
    drafter = RecyclingDrafter(5, Shape.widths(2))
    w = acceptance_by_rank(TARGET, drafter, [0, 1, 2] * 4, 9, Sampling(temperature), 0, verifier)
    assert len(w) == 2 and w.sum() > 0.3
