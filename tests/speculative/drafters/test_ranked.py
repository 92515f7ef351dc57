"""Drafts in which nothing is drawn: one-hot rows, tries, and trees of the most probable tokens."""

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Shape
from speculative.drafters.deterministic import merged, one_hot
from speculative.drafters.ranked import fixed_tree, grown_tree, largest, top
from speculative.tree import depths, path

properties = settings(deadline=None, derandomize=True, max_examples=50)
paths = st.lists(st.integers(0, 2), max_size=4)


def test_rows_are_one_hot():
    draft = one_hot([2, 0], 3)
    assert draft.tokens.tolist() == [2, 0] and draft.probs.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert draft.parents.tolist() == [-1, 0] and one_hot([2, 0], 3, [-1, -1]).parents.tolist() == [-1, -1]
    assert one_hot([], 3).probs.shape == (0, 3)


def path_of(tokens, parents, node):
    return [tokens[i] for i in path(parents, node)]


@given(st.lists(paths, max_size=6))
@properties
def test_equal_prefixes_are_shared(sequences):
    """Every prefix is one node; nodes by depth, and within a depth by the first sequence that has them."""
    tokens, parents, ends = merged(sequences)
    found = [path_of(tokens, parents, node) for node in range(len(tokens))]
    assert [path_of(tokens, parents, end) for end in ends] == sequences
    prefixes = [sequence[:n] for n in range(1, 5) for sequence in sequences if len(sequence) >= n]
    assert found == [prefix for i, prefix in enumerate(prefixes) if prefix not in prefixes[:i]]


def test_top_and_largest_are_in_order():
    scores = np.random.default_rng(0).standard_normal((3, 20))
    np.testing.assert_array_equal(top(scores, 5), np.argsort(-scores, axis=-1)[:, :5])
    assert top(scores, 99).shape == (3, 20)
    ties = np.tile([0.0, 1.0], (5, 40))  # of equal values the first are the largest
    assert largest(ties, 60) == [(i, j) for i in range(2) for j in range(1, 80, 2)][:60]


def digits(above, n):
    """The candidates after a path: its last token, and a digit, the rank + 1, appended."""
    return 10 * np.array([(*some, 0)[len(some) - 1] for some in above], int)[:, None] + 1 + np.arange(n)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2)), max_size=7), st.integers(0, 4))
@properties
def test_a_fixed_tree_takes_the_ranks_of_its_shape_after_each_path(nodes, n_levels):
    """A shape in any order; nodes below the last level are left out."""
    shape = Shape([above % (node + 1) - 1 for node, (above, _) in enumerate(nodes)], [rank for _, rank in nodes])
    draft = fixed_tree(shape, n_levels, digits, 10_000_000)
    by_rank = [path_of(shape.ranks, shape.parents, node) for node in range(len(shape))]
    kept = [ranks for ranks in by_rank if len(ranks) <= n_levels]
    assert draft.tokens.tolist() == [int("".join(str(rank + 1) for rank in ranks)) for ranks in kept]
    levels = depths(shape.parents)
    renumbered = {-1: -1} | {node: i for i, node in enumerate(n for n in range(len(shape)) if levels[n] < n_levels)}
    assert draft.parents.tolist() == [renumbered[shape.parents[node]] for node in [*renumbered][1:]]


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 99))
@properties
def test_a_grown_tree_has_the_paths_of_the_largest_joint_probability(n, n_levels, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), (4,) * n_levels)  # by the path, filled up with 3

    def row(above):
        return rows[(*above, *[3] * (n_levels - len(above)))]

    def most_likely(above, n):
        tokens = np.array([np.argsort(-row(some))[:n] for some in above])
        return tokens, np.array([row(some)[some_tokens] for some, some_tokens in zip(above, tokens)])

    draft = grown_tree(n, n_levels, most_likely, 3)
    every = [some for depth in range(1, n_levels + 1) for some in itertools.product(range(3), repeat=depth)]
    every.sort(key=lambda some: -math.prod(row(some[:i])[token] for i, token in enumerate(some)))
    found = [tuple(path_of(draft.tokens.tolist(), draft.parents.tolist(), node)) for node in range(len(draft.tokens))]
    assert {*found} == {*every[:n]} and depths(draft.parents) == sorted(depths(draft.parents))
    assert (draft.probs.argmax(-1) == draft.tokens).all() and (draft.probs.sum(-1) == 1).all()


def test_of_equal_nodes_the_parent_and_the_elder_sibling_come_first():
    def certain(above, n):
        return np.tile(np.arange(n), (len(above), 1)), np.tile(np.eye(1, n), (len(above), 1))

    assert grown_tree(3, 3, certain, 40).parents.tolist() == [-1, 0, 1]
    draft = grown_tree(40, 5, certain, 40)
    assert len(draft.tokens) == 40
    for node in range(-1, 40):
        tokens = draft.tokens[draft.children(node)].tolist()
        assert tokens == list(range(len(tokens)))
