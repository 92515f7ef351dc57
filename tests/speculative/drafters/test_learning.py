"""Drafters that learn from the target's answers: Jacobi decoding, lookahead decoding, and token recycling."""

import numpy as np
import pytest

from speculative import ByPaths, JacobiDrafter, LookaheadDrafter, RecyclingDrafter, Shape
from speculative.testing import TableModel

TARGET = ByPaths(TableModel.random(3, seed=1))


def tokens_of(drafter, text, K):
    return drafter.propose(text, K, None).tokens.tolist()


def test_the_next_jacobi_draft_is_the_rows_after_the_rejected_tokens():
    drafter = JacobiDrafter(3)
    assert tokens_of(drafter, [0, 1], 3) == [1, 1, 1]  # filled up with the text's last
    rows = TARGET([0, 1, 1, 1, 1], n_last=4)
    drafter.observe([0, 1, 1, 1, 1], rows, [-1, 0, 1])
    best = rows.argmax(axis=-1).tolist()
    assert tokens_of(drafter, [0, 1, best[0]], 3) == best[1:]
    assert tokens_of(drafter, [2, 2], 2) == tokens_of(drafter, [2, 1, 2], 2) == [2, 2]


def test_the_comb_and_the_pool_by_hand():
    """W = 2, N = 3: the second call has levels 0 and 1; its answers complete two trigrams."""
    drafter = LookaheadDrafter(3, W=2, N=3)
    assert tokens_of(drafter, [2, 1], 1) == []  # the comb needs as many levels as it has
    first = drafter.propose([0, 1], 2, None)
    assert first.tokens.tolist() == [1, 0] and first.parents.tolist() == [-1, 0]
    drafter.observe([0, 1, 1, 0], TARGET([0, 1, 1, 0], n_last=3), [-1, 0])
    answers = drafter.best[1:]
    second = drafter.propose([0, 1, 2], 4, None)
    parents = second.parents.tolist()
    assert second.tokens.tolist() == [1, answers[0], 0, answers[1]] and parents == [-1, 0, 0, 2]
    drafter.observe(None, TARGET([0, 1, 2, *second.tokens], n_last=5, parents=parents), parents)
    newest = drafter.best[2], drafter.best[4]
    assert tokens_of(drafter, [0, 1, 2, 1], 4)[:1] == [answers[0]]  # what followed 1 in the pool comes first
    assert drafter.pool == {1: [[answers[0], newest[0]]], 0: [[answers[1], newest[1]]]}


@pytest.mark.parametrize(
    ("G", "pools"), [(2, [[[4]], [[4], [5]], [[5], [4]], [[4], [6]]]), (3, [[[4]], [[4], [5]], [[5], [4]]])]
)
def test_the_pool_keeps_the_latest_each_once(G, pools):
    """What followed 3 most recently comes first; another text starts with none."""
    drafter = LookaheadDrafter(9, W=1, N=2, G=G)
    for answer, pool in zip((4, 5, 4, 6), pools):
        drafter.levels = [[3]]
        drafter.learn([answer])
        assert drafter.pool == {3: pool}
    drafter.tokens = [0]
    assert tokens_of(drafter, [0, 3], 1)[:2] == [pools[-1][1][0], pools[-1][0][0]]
    drafter.propose([5, 3], 1, None)
    assert drafter.pool == {}


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
