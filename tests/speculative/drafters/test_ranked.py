"""Drafts in which nothing is drawn: tries, the largest scores, and trees of the most probable tokens."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Shape
from speculative.drafters.deterministic import merged
from speculative.drafters.ranked import FEW, fixed_tree, grown_tree, top
from speculative.tree import depths, path

properties = settings(deadline=None, derandomize=True, max_examples=50)


def path_of(tokens, parents, node):
    return tuple(tokens[i] for i in path(parents, node))


@given(st.lists(st.lists(st.integers(0, 2), max_size=4).map(tuple), max_size=6))
@properties
def test_equal_prefixes_are_shared(sequences):
    """Every prefix is one node; nodes by depth, and within a depth by the first sequence that has them."""
    tokens, parents, ends = merged(sequences)
    found = [path_of(tokens, parents, node) for node in range(len(tokens))]
    assert [path_of(tokens, parents, end) for end in ends] == sequences
    prefixes = [sequence[:n] for n in range(1, 5) for sequence in sequences if len(sequence) >= n]
    assert found == [*dict.fromkeys(prefixes)]


@given(st.integers(0, 2**32 - 1), st.integers(1, FEW), st.sampled_from([np.float32, np.float64]))
@properties
def test_the_largest_scores_in_order_and_of_equals_the_first(seed, n, dtype):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 3, (3, 40)).astype(dtype)
    scores[rng.random(scores.shape) < rng.random()] = -np.inf  # perhaps fewer than n are finite
    before, wanted = scores.copy(), np.argsort(-scores, axis=-1, kind="stable")[:, :n]
    np.testing.assert_array_equal(top(scores, n), wanted)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("n", [FEW + 1, 60, 99])
def test_many_of_the_largest(n):
    scores = np.random.default_rng(0).standard_normal((3, 80))
    np.testing.assert_array_equal(top(scores, n), np.argsort(-scores, axis=-1)[:, :n])


def digits(above, n):
    """The candidates after a path: its last token, and a digit, the rank + 1, appended."""
    return 10 * np.array([(*some, 0)[len(some) - 1] for some in above], int)[:, None] + 1 + np.arange(n)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2)), max_size=7), st.integers(0, 4))
@properties
def test_a_fixed_tree_takes_the_ranks_of_its_shape_after_each_path(nodes, n_levels):
    """A shape in any order; nodes below the last level are left out."""
    shape = Shape([above % (node + 1) - 1 for node, (above, _) in enumerate(nodes)], [rank for _, rank in nodes])
    draft = fixed_tree(shape, n_levels, digits, 10_000)
    by_rank = [path_of(shape.ranks, shape.parents, node) for node in range(len(shape))]
    kept = [node for node in range(len(shape)) if len(by_rank[node]) <= n_levels]
    assert draft.tokens.tolist() == [int("".join(str(rank + 1) for rank in by_rank[node])) for node in kept]
    assert draft.parents.tolist() == [[-1, *kept].index(shape.parents[node]) - 1 for node in kept]


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
    found = {path_of(draft.tokens.tolist(), draft.parents.tolist(), node) for node in range(len(draft.tokens))}
    assert found == {*every[:n]} and depths(draft.parents) == sorted(depths(draft.parents))
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
