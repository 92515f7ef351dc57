"""Shapes of trees: the tokens they give, and the best of them, against enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Shape, exact_distribution
from speculative.theory import expected_tokens, tree_tokens
from speculative.tree import depths, path


def test_tokens_of_a_tree_by_enumeration():
    """At every node the b-th child is the accepted one with weights[b], none with the rest."""
    weights, parents = [0.5, 0.25, 0.125], [-1, -1, 0, 0, 0, 1, 2, -1, -1]  # the fourth child of the text has weight 0

    def walked(rng):
        node, n = -1, 1
        while True:
            below = [i for i, parent in enumerate(parents) if parent == node]
            rank = rng.choice(4, p=[*weights, 0.125])
            if rank >= min(len(below), len(weights)):
                return n
            node, n = below[rank], n + 1

    wanted = sum(n * share for n, share in exact_distribution(walked).items())
    assert math.isclose(tree_tokens(parents, weights), wanted, abs_tol=1e-12)
    assert math.isclose(tree_tokens([-1, 0, 1, 2], [0.8]), expected_tokens(0.8, 4))


falling = st.lists(st.floats(0.01, 1), min_size=2, max_size=2).map(lambda weights: sorted(weights, reverse=True))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(falling | st.lists(falling, min_size=1, max_size=2), st.integers(1, 5), st.integers(1, 3))
def test_the_best_tree_is_the_best_of_all(weights, n, max_depth):
    """For weights by rank, or by depth and rank, as those of heads; the second level may be nearly certain."""
    by_depth = [weights] * max_depth if np.ndim(weights) == 1 else weights[:max_depth]
    nodes = [ranks for d in range(1, len(by_depth) + 1) for ranks in itertools.product(range(2), repeat=d)]

    def closed(chosen):
        above = {ranks[:-1] for ranks in chosen if len(ranks) > 1}
        elder = {(*ranks[:-1], ranks[-1] - 1) for ranks in chosen if ranks[-1]}
        return above | elder <= set(chosen)

    def value(chosen):
        return sum(math.prod(by_depth[depth][rank] for depth, rank in enumerate(ranks)) for ranks in chosen)

    best = max(value(chosen) for chosen in itertools.combinations(nodes, min(n, len(nodes))) if closed(chosen))
    shape = Shape.best(n, weights, max_depth)
    parents, ranks = shape.parents, shape.ranks
    assert depths(parents) == sorted(depths(parents)) and len(parents) == min(n, len(nodes))
    assert value([[ranks[node] for node in path(parents, i)] for i in range(len(parents))]) == pytest.approx(best)


def test_widths_and_choices_by_hand():
    assert Shape.widths(2, 1) == Shape([-1, -1, 0, 1], [0, 1, 0, 0])
    assert Shape.of_paths([(1,), (0, 0), (0,)]) == Shape([-1, -1, 0], [0, 1, 0])
    assert len(Shape.widths(2, 3)) == 8 and Shape.widths(2, 3).depth == 2 and Shape.chain(0) == Shape((), ())
    assert Shape.best(5, [[0.9], [0.8]]) == Shape.best(5, [[0.9], [0.8]], 9) == Shape.chain(2)  # no more depths
    assert Shape.best(9, [0.9]) == Shape.chain(9) and Shape.best(3, [0.3, 0.2, 0.1]) == Shape.widths(3)
