"""Jacobi decoding: the rows after the rejected draft tokens are the next draft."""

from speculative.drafters.jacobi import JacobiDrafter
from speculative.testing import TableModel

TARGET = TableModel.random(3, seed=1)


def test_the_next_draft_is_the_rows_after_the_rejected_tokens():
    drafter = JacobiDrafter(3)
    assert drafter.propose([0, 1], 3, None).tokens.tolist() == [1, 1, 1]  # filled up with the text's last
    drafter.observe([0, 1, 1, 1, 1], TARGET([0, 1, 1, 1, 1], n_last=4), [-1, 0, 1])
    best = TARGET([0, 1, 1, 1, 1], n_last=4).argmax(axis=-1).tolist()
    assert drafter.propose([0, 1, best[0]], 3, None).tokens.tolist() == best[1:]
    for another in ([2, 2], [2, 1, 2]):
        assert drafter.propose(another, 2, None).tokens.tolist() == [2, 2]
