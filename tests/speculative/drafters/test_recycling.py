"""Token recycling: what is kept of each row, the tree by hand, and texts that start again."""

import numpy as np
import pytest

from speculative import ByPaths, Recycling, RecyclingDrafter, SpeculativeSampler, widths
from speculative.testing import TableModel

TARGET = TableModel.random(3, seed=1)


def test_the_latest_followers_of_each_token_are_kept():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    rows = target([0, 1, 2, 0], n_last=2, parents=[-1, -1])  # after 2 and after the sibling 0
    assert target.followers[1].tolist() == [-1, -1]  # no row after 1 was asked for
    for token, row in zip((2, 0), rows):
        assert target.followers[token].tolist() == np.argsort(-row)[:2].tolist()
    np.testing.assert_array_equal(target([0, 1], n_last=2), TARGET([0, 1], n_last=2))


def test_the_tree_by_hand():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    drafter = RecyclingDrafter(target, widths(2, 2))
    assert drafter.propose([0], 2, None).tokens.tolist() == []
    target.followers[:] = [[1, 2], [2, 0], [-1, -1]]
    draft = drafter.propose([0], 2, None)
    assert draft.tokens.tolist() == [1, 2, 2, 0] and draft.parents.tolist() == [-1, -1, 0, 0]
    assert drafter.propose([0], 1, None).tokens.tolist() == [1, 2] == drafter.propose([0, 0], 1, None).tokens.tolist()
    kept = RecyclingDrafter(target, widths(2, 2), keep=True)
    assert kept.propose([1, 2, 0], 1, None).tokens.tolist() == [1, 2] == kept.propose([0], 1, None).tokens.tolist()
    assert drafter.propose([1, 0], 1, None).tokens.tolist() == []  # another text: what was learned is forgotten


def test_what_follows_a_node_left_out_is_left_out():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    drafter = RecyclingDrafter(target, ([-1, -1, 0, 1, 3], [0, 1, 0, 0, 0]), keep=True)
    target.followers[:] = [[1, 2], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1, 2, 0, 1] and draft.parents.tolist() == [-1, -1, 1, 2]
    target.followers[:] = [[1, -1], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1] and draft.parents.tolist() == [-1]


def test_two_proposals_without_a_call_between_them_are_the_same():
    target = Recycling(ByPaths(TARGET))
    drafter = RecyclingDrafter(target, widths(2, 1))
    drafter.propose([0, 1], 2, None)
    target([0, 1, 2])
    first = drafter.propose([0, 1, 2], 2, None)
    assert len(first.tokens) and drafter.propose([0, 1, 2], 2, None).tokens.tolist() == first.tokens.tolist()


@pytest.mark.parametrize("n_vocab", [2, 5, 20])
def test_there_is_a_tree_for_small_vocabularies(n_vocab):
    target = Recycling(TableModel.random(n_vocab))
    drafter = RecyclingDrafter(target)
    assert len(drafter.tree[0]) == 16 and max(drafter.tree[1]) < n_vocab
    assert len(SpeculativeSampler(ByPaths(target), drafter, K=3).generate([1], 6, 0).tokens) == 6


def test_what_is_no_tree_for_it_is_refused():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    with pytest.raises(ValueError, match="expected ranks below 2, the number of followers kept, got 2"):
        RecyclingDrafter(target, widths(3))
    with pytest.raises(ValueError, match=r"expected a tree as \(parents, ranks\)"):
        RecyclingDrafter(target, ([-1, 5], [0, 0]))
    with pytest.raises(ValueError, match=r"expected Recycling\(model\), which must also be the sampler's target, got"):
        RecyclingDrafter(TARGET)
