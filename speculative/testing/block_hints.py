"""Hints for a verifier that is right for one draft token: from its decisions on two.

The ratios p / q of the two tokens lie on both sides of 1, and all rows are different.
"""

import numpy as np

from ..exact.enumeration import exact_distribution
from ..probs import residual
from .cases import Case
from .small_errors import same

P = np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
Q = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.25, 0.25, 0.5]])
RATIO = P / Q


class Two:
    """What a verifier does with two draft tokens."""

    def __init__(self, verifier, *guesses):
        case = Case(3, 2, "random", np.random.default_rng(0))
        for tokens in case.p:
            case.p[tokens], case.q[tokens] = P[len(tokens)], Q[len(tokens)]
        self.guesses, self.rows = guesses, np.zeros((3, 3))  # [n_accepted, next_token]
        for (n_accepted, token), probability in exact_distribution(
            lambda rng: case.run(verifier, rng, guesses)[1:]
        ).items():
            self.rows[n_accepted, token] += probability
        self.shares = self.rows.sum(axis=1)

    def is_by_rejection(self):
        a, b = (min(1, RATIO[i, x]) for i, x in enumerate(self.guesses))
        right = [(1 - a) * residual(P[0], Q[0]), a * (1 - b) * residual(P[1], Q[1]), a * b * P[2]]
        return same(self.rows, right)

    def next_token(self, n_accepted):
        """The distribution of next_token if n_accepted tokens are accepted, or None."""
        return self.rows[n_accepted] / self.shares[n_accepted] if self.shares[n_accepted] > 0 else None


def of_block(verifier):
    """The mistake in a sentence; None if it decides on these two as rejection sampling does."""
    low, late, early = (Two(verifier, *guesses) for guesses in ((0, 0), (0, 2), (2, 0)))
    if all(two.is_by_rejection() for two in (low, late, early)):
        return None
    return (
        of_acceptance(low, late, early)
        or of_rows(low, early)
        or of_block_rule(low, late, early)
        or "right for K = 1, but not for a block of several draft tokens"
    )


def of_acceptance(low, late, early):
    a, b = RATIO[0, 0], RATIO[1, 0]
    if same(low.shares[2], min(a, b)) and same(late.shares[2], a):
        return "one uniform number decides on several draft tokens; draw a new one for each"
    if same(low.shares[2], a**2):
        return (
            "right for K = 1 alone: draft token i is tested against row i of the target, not always against the first"
        )
    if same(low.shares, [(1 - a) * (1 - b), a * (1 - b) + (1 - a) * b, a * b]):
        return (
            "you count all draft tokens that pass; the first rejection ends the round, and what was drafted after it "
            "is dropped"
        )
    if same(low.shares[2], b) and same(early.shares[2], b):
        return (
            "you keep draft tokens after a rejected one; the first rejection ends the round, and those after it are "
            "dropped"
        )
    if low.shares[1] == late.shares[1] == early.shares[1] == 0:
        return "you accept all draft tokens or none; keep those before the first rejection, tested one by one"
    if same(low.shares[1:].sum(), a) and same(low.shares[2], a * b * a):
        return (
            "each draft token is tested with its own ratio p / q; yours is tested with the product of the ratios up "
            "to it"
        )
    return None


def of_rows(low, early):
    """The hint if the acceptance is right, but the next token comes from a wrong row."""
    a, b = RATIO[0, 0], RATIO[1, 0]
    if not (same(low.shares, [1 - a, a * (1 - b), a * b]) and same(early.shares, [0, 1 - b, b])):
        return None
    rest = [residual(P[i], Q[i]) for i in range(2)]
    if not same(low.next_token(2), P[2]):
        return "right for K = 1, but the bonus is not drawn from target_probs[k], the row after all k draft tokens"
    adds_up = "your residual adds up all rows of the draft; take row i alone, that of the rejected token"
    wrongs = [
        (
            P[2],
            "on a rejection you drew from the target's last row; draw from max(0, p - q) of the rejected token's row",
        ),
        (sum(np.maximum(P[i] - Q[i], 0) for i in range(2)), adds_up),
        (rest[0] + rest[1], adds_up),
        (np.maximum((P[:2] - Q[:2]).sum(axis=0), 0), adds_up),
    ]
    for row, hint in wrongs:
        if same(low.next_token(0), row / row.sum()) and same(low.next_token(1), row / row.sum()):
            return hint
    if same(low.next_token(0), rest[0]) and same(low.next_token(1), rest[0]):
        return (
            "your residual is always that of the first row; take row i of target and draft, that of the rejected token"
        )
    if same(low.next_token(0), rest[1]):
        return (
            "your residual is that of the last drafted row; take row i of target and draft, that of the rejected token"
        )
    if not same(low.next_token(0), rest[0]) or not same(low.next_token(1), rest[1]):
        return (
            "right for K = 1, but in a block the replacement of draft token i is drawn from max(0, p - q) of another "
            "row than i"
        )
    return None


def of_block_rule(low, late, early):
    """Mistakes of rules that decide on the draft as a whole."""
    excess = np.maximum(RATIO[0, 0] * P[1] - Q[1], 0).sum()
    if same(late.shares[2], excess / (excess + 1 - RATIO[0, 0])):
        return "block verification keeps the longest prefix that passes; do not stop at the first that does not"
    if same(early.shares[2], RATIO[0, 2] * RATIO[1, 0]):
        return "block verification caps the ratio of the whole prefix at 1, in each step"
    if same(late.shares[2], 1) and same(low.next_token(1), residual(P[1], Q[1])):
        return "after block verification the residual is max(0, p-hat p - q), with the ratio p-hat of what is kept"
    return None
