"""Shapes of token trees: the best of n nodes is the best of all, and choices are closed."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative.theory.shapes import best_tree, check_shape, of_ranks, widths
from speculative.tree import depths, path


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=2), st.integers(1, 5), st.integers(1, 3))
def test_best_tree_is_the_best_of_all(weights, n, max_depth):
    weights = sorted(weights, reverse=True)
    nodes = [ranks for d in range(1, max_depth + 1) for ranks in itertools.product(range(len(weights)), repeat=d)]

    def closed(chosen):
        above = {ranks[:-1] for ranks in chosen if len(ranks) > 1}
        elder = {(*ranks[:-1], ranks[-1] - 1) for ranks in chosen if ranks[-1]}
        return above | elder <= set(chosen)

    def value(chosen):
        return sum(float(np.prod([weights[rank] for rank in ranks])) for ranks in chosen)

    best = max(value(chosen) for chosen in itertools.combinations(nodes, min(n, len(nodes))) if closed(chosen))
    parents, ranks = best_tree(n, weights, max_depth)
    assert depths(parents) == sorted(depths(parents)) and len(parents) == min(n, len(nodes))
    assert value([[ranks[node] for node in path(parents, i)] for i in range(len(parents))]) == pytest.approx(best)


def test_widths_and_choices_by_hand():
    assert widths(2, 1) == ([-1, -1, 0, 1], [0, 1, 0, 0])
    assert of_ranks([(1,), (0, 0), (0,)]) == ([-1, -1, 0], [0, 1, 0])
    for choices in ([(0,), (1, 0)], [(1,)], [(0,), (0, 1)]):
        with pytest.raises(ValueError, match="expected with each path its parent and its elder sibling"):
            of_ranks(choices)


@pytest.mark.parametrize(
    "tree", [[-1, -1, 0], ([-1, -1], [0]), ([-1, 5], [0, 0]), ([0, 0], [0, 1]), ([-1], [-1]), ("a", "b"), (1, 2)]
)
def test_shapes_that_are_no_trees_are_refused(tree):
    with pytest.raises(ValueError, match=r"expected a tree as \(parents, ranks\), two lists of one length"):
        check_shape(tree)
