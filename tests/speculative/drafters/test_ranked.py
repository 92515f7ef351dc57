"""Trees of the most probable tokens: the largest first, and no younger sibling without its elder."""

import numpy as np

from speculative import Shape
from speculative.drafters.ranked import fixed_tree, grown_tree, largest, top


def test_top_and_largest_are_in_order():
    scores = np.random.default_rng(0).standard_normal((3, 20))
    np.testing.assert_array_equal(top(scores, 5), np.argsort(-scores, axis=-1)[:, :5])
    assert top(scores, 99).shape == (3, 20)
    ties = np.tile([0.0, 1.0], (5, 40))  # of equal values the first are the largest
    assert largest(ties, 60) == [(i, j) for i in range(2) for j in range(1, 80, 2)][:60]


def test_a_fixed_tree_takes_the_ranks_of_its_shape():
    """After each path the tokens are 10 times the last one, plus the rank; node 4 is below the last level."""
    most_likely = lambda paths, n: 10 * np.array([(*path, 0)[len(path) - 1] for path in paths])[:, None] + np.arange(n)  # noqa: E731
    draft = fixed_tree(Shape([-1, -1, 1, 0, 2], [2, 0, 1, 0, 0]), 2, most_likely, 99)
    assert draft.tokens.tolist() == [2, 0, 1, 20] and draft.parents.tolist() == [-1, -1, 1, 0]


def test_no_younger_sibling_grows_without_its_elder():
    def certain(paths, n):
        return np.tile(np.arange(n), (len(paths), 1)), np.tile(np.eye(1, n), (len(paths), 1))

    draft = grown_tree(40, 5, certain, 40)
    assert len(draft.tokens) == 40
    for node in range(-1, 40):
        tokens = draft.tokens[draft.children(node)].tolist()
        assert tokens == list(range(len(tokens)))
