"""A drafter that learns from the target's answers: token recycling."""

import numpy as np

from speculative import ByPaths, RecyclingDrafter, Shape
from speculative.testing import TableModel

TARGET = ByPaths(TableModel.random(3, seed=1))


def tokens_of(drafter, text, K):
    return drafter.propose(text, K, None).tokens.tolist()


def test_the_latest_followers_of_each_token_are_kept():
    drafter, tokens = RecyclingDrafter(3, Shape.widths(2), n_followers=2), [0, 1, 2, 0]
    rows = TARGET(tokens, n_last=3, parents=[-1, -1])  # after 1, after 2, and after the sibling 0
    drafter.observe(tokens, rows, [-1, -1])
    assert drafter.followers[[1, 2, 0]].tolist() == np.argsort(-rows)[:, :2].tolist()
    assert tokens_of(drafter, [0, 1, 2], 2) == tokens_of(drafter, [0, 1, 2], 2) != []  # no call between them


def test_the_tree_of_followers_by_hand():
    new, kept = (RecyclingDrafter(3, Shape.widths(2, 2), n_followers=2, keep=keep) for keep in (False, True))
    assert tokens_of(new, [0], 2) == []
    for drafter in (new, kept):
        drafter.followers[:] = [[1, 2], [2, 0], [-1, -1]]
    draft = new.propose([0], 2, None)
    assert draft.tokens.tolist() == [1, 2, 2, 0] and draft.parents.tolist() == [-1, -1, 0, 0]
    for drafter, followers in ((new, []), (kept, [1, 2])):
        drafter.text = [0]
        assert tokens_of(drafter, [0, 0], 1) == [1, 2]
        assert tokens_of(drafter, [1, 0], 1) == followers  # another text: what was learned is forgotten, or kept


def test_what_follows_a_node_left_out_is_left_out():
    drafter = RecyclingDrafter(3, Shape([-1, -1, 0, 1, 3], [0, 1, 0, 0, 0]), n_followers=2)
    for followers, tokens, parents in (
        ([[1, 2], [-1, -1], [0, 1]], [1, 2, 0, 1], [-1, -1, 1, 2]),
        ([[1, -1], [-1, -1], [0, 1]], [1], [-1]),
    ):
        drafter.followers[:] = followers
        draft = drafter.propose([0], 3, None)
        assert draft.tokens.tolist() == tokens and draft.parents.tolist() == parents
