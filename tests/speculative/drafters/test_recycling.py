"""Token recycling: what is kept of each row, the tree by hand, and texts that start again."""

import numpy as np
import pytest

from speculative import ByPaths, RecyclingDrafter, Shape, SpeculativeSampler
from speculative.testing import TableModel

TARGET = TableModel.random(3, seed=1)


def test_the_latest_followers_of_each_token_are_kept():
    drafter, tokens = RecyclingDrafter(3, Shape.widths(2), n_followers=2), [0, 1, 2, 0]
    rows = ByPaths(TARGET)(tokens, n_last=3, parents=[-1, -1])  # after 1, after 2, and after the sibling 0
    drafter.observe(tokens, rows, [-1, -1])
    for token, row in zip((1, 2, 0), rows):
        assert drafter.followers[token].tolist() == np.argsort(-row)[:2].tolist()


def test_the_tree_by_hand():
    drafter = RecyclingDrafter(3, Shape.widths(2, 2), n_followers=2)
    assert drafter.propose([0], 2, None).tokens.tolist() == []
    drafter.followers[:] = [[1, 2], [2, 0], [-1, -1]]
    draft = drafter.propose([0], 2, None)
    assert draft.tokens.tolist() == [1, 2, 2, 0] and draft.parents.tolist() == [-1, -1, 0, 0]
    drafter.text = [0]
    assert drafter.propose([0, 0], 1, None).tokens.tolist() == [1, 2]
    kept = RecyclingDrafter(3, Shape.widths(2, 2), n_followers=2, keep=True)
    kept.followers[:] = drafter.followers
    kept.text = [0]
    assert kept.propose([1, 2, 0], 1, None).tokens.tolist() == [1, 2] == kept.propose([0], 1, None).tokens.tolist()
    assert drafter.propose([1, 0], 1, None).tokens.tolist() == []  # another text: what was learned is forgotten


def test_what_follows_a_node_left_out_is_left_out():
    drafter = RecyclingDrafter(3, Shape([-1, -1, 0, 1, 3], [0, 1, 0, 0, 0]), n_followers=2, keep=True)
    drafter.followers[:] = [[1, 2], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1, 2, 0, 1] and draft.parents.tolist() == [-1, -1, 1, 2]
    drafter.followers[:] = [[1, -1], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1] and draft.parents.tolist() == [-1]


def test_two_proposals_without_a_call_between_them_are_the_same():
    drafter = RecyclingDrafter(3, Shape.widths(2, 1))
    drafter.propose([0, 1], 2, None)
    drafter.observe([0, 1, 2], TARGET([0, 1, 2], n_last=2), [-1])
    first = drafter.propose([0, 1, 2], 2, None)
    assert len(first.tokens) and drafter.propose([0, 1, 2], 2, None).tokens.tolist() == first.tokens.tolist()


@pytest.mark.parametrize("n_vocab", [2, 5, 20])
def test_there_is_a_tree_for_small_vocabularies(n_vocab):
    target, drafter = TableModel.random(n_vocab), RecyclingDrafter(n_vocab)
    assert len(drafter.tree) == 11 and max(drafter.tree.ranks) < n_vocab
    assert len(SpeculativeSampler(ByPaths(target), drafter, K=3).generate([1], 6, 0).tokens) == 6


def test_what_is_no_tree_for_it_is_refused():
    with pytest.raises(ValueError, match="expected ranks below 2, the number of followers kept, got 2"):
        RecyclingDrafter(3, Shape.widths(3), n_followers=2)
    with pytest.raises(ValueError, match=r"expected a tree such as Shape\.best\(8, weights\)"):
        RecyclingDrafter(3, ([-1, 0], [0, 0]))
