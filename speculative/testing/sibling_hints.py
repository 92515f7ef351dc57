"""Hints for verifiers on trees: what they do with two siblings, and the mistakes in their tests and in what remains.

p is the target's row, and q_1 and q_2 those of the siblings, the second given the first: q_1 without the first token,
renormalised. After the first is rejected, r = residual(p, q_1) takes p's place. All numbers are chosen so that no two
mistakes give the same.
"""

import numpy as np

from ..exact.enumeration import exact_distribution
from ..interfaces import Draft
from ..probs import residual
from .small_errors import same
from .tree_cases import decided

P, Q = np.array([0.35, 0.36, 0.04, 0.25]), np.array([0.15, 0.3, 0.5, 0.05])
AFTER = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3], [0.2, 0.5, 0.2, 0.1], [0.3, 0.3, 0.1, 0.3]])


def without(q, token):
    left = np.where(np.arange(len(q)) == token, 0, q)
    return left / left.sum()


def decisions(verifier, tokens, rows, parents):
    """The distribution of (accepted nodes, next token) for this draft."""
    draft = Draft(np.array(tokens), np.array(rows), np.array(parents))
    target_probs = np.array([P, *AFTER[: len(tokens)]])
    return exact_distribution(lambda rng: decided(verifier, draft, target_probs, rng))


class Siblings:
    """What a verifier does with two siblings."""

    def __init__(self, verifier, tokens, rows):
        shares = np.zeros((3, 4))  # [0: none accepted, 1: the first, 2: the second; next token]
        for (nodes, token), share in decisions(verifier, tokens, rows, [-1, -1]).items():
            shares[nodes[0] + 1 if nodes else 0, token] += share
        _, self.first, self.second = shares.sum(axis=1)
        self.second_tested = self.second / (1 - self.first) if self.first < 1 else 0.0  # given that the first is not
        self.rest, *self.bonus = (row / row.sum() if row.any() else None for row in shares)


def of_test(different, equal, independent, **others):
    """The test of the second sibling, after the first was rejected."""
    q, rest, excess = without(Q, 2), residual(P, Q), np.maximum(P - Q, 0)
    if not same(different.first, P[2] / Q[2]):
        return None
    first = P[2] / Q[2]
    wrong = [
        (rest[1] / Q[1], OWN_ROW),
        (P[1] / q[1], STALE),
        (min(1, P[1] / Q[1]), STALE),
        (excess[1] / q[1], NOT_NORMALISED),
        (excess[1] / Q[1], NOT_NORMALISED),
        ((rest[1] / q[1] - first) / (1 - first), "one uniform number decides on all siblings; draw a new one for each"),
        (AFTER[0][1] / q[1], ROW_OF_NODE),
    ]
    if same(different.second_tested, rest[1] / q[1]):
        if same(equal.rest, rest) and not same(different.rest, rest):
            return (
                "a sibling with a token that was rejected already is skipped; it cannot be accepted, but its "
                "rejection counts: p must become the residual once more"
            )
        return None
    return next((hint for share, hint in wrong if same(different.second_tested, share)), None)


OWN_ROW = (
    "every sibling is tested against the row of the first; each has a row of its own in draft.probs, its distribution "
    "given the siblings before it (drawn without replacement: q without them, renormalised)"
)
STALE = (
    "every sibling is tested against the target's own row; after each rejection p becomes residual(p, q), also for the "
    "next sibling"
)
NOT_NORMALISED = (
    "the residual is not renormalised before the next sibling is tested: max(0, p - q) divided by its sum takes p's "
    "place"
)
ROW_OF_NODE = (
    "a child is tested against the row of its parent, target_probs[parent + 1], which all siblings share; yours takes "
    "the row of another node"
)


def of_rest(different, **others):
    """The token that follows if both siblings are rejected."""
    q, rest, excess = without(Q, 2), residual(P, Q), np.maximum(P - Q, 0)
    if same(different.rest, residual(rest, q)):
        return None
    wrong = [
        (residual(rest, Q), "each sibling is tested with its own row, but the residual takes away that of the first"),
        (P, "if all siblings are rejected you draw from the target; draw from the residual that is left of p"),
        (rest, "the last rejection is missing in the residual; p becomes residual(p, q) after every rejected sibling"),
        (residual(P, q), "the residual takes away only the row of the last sibling; it is taken after each rejection"),
        (residual(excess, q), NOT_NORMALISED),
    ]
    return next((hint for row, hint in wrong if same(different.rest, row)), None)


def of_bonus(different):
    if different.bonus[0] is None or same(different.bonus[0], AFTER[0]):
        return None
    if same(different.bonus[0], AFTER[1]):
        return (
            "the bonus is drawn from the row of the last node; it is the row of the accepted leaf, "
            "target_probs[node + 1]"
        )
    return "the bonus is not drawn from the row of the accepted leaf, target_probs[node + 1], as it is"
