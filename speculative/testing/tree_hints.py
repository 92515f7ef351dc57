"""Hints for verifiers on trees: the mistake in a sentence, from what they do with two siblings and with two paths.

p is the target's row, and q_1 and q_2 those of the siblings, the second given the first: q_1 without the first token,
renormalised. After the first is rejected, r = residual(p, q_1) takes p's place. All numbers are chosen so that no two
mistakes give the same.
Next: drafters.py
"""

import numpy as np

from ..candidates import k_seq_divisor
from ..exact import exact_law
from ..interfaces import Draft
from ..probs import residual
from .hints import of_lists
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
    return exact_law(lambda rng: decided(verifier, draft, target_probs, rng))


class Siblings:
    """What a verifier does with two siblings."""

    def __init__(self, verifier, tokens, rows):
        shares = np.zeros((3, 4))  # [0: none accepted, 1: the first, 2: the second; next token]
        for (nodes, token), share in decisions(verifier, tokens, rows, [-1, -1]).items():
            shares[nodes[0] + 1 if nodes else 0, token] += share
        _, self.first, self.second = shares.sum(axis=1)
        self.second_tested = self.second / (1 - self.first) if self.first < 1 else 0.0  # given that the first is not
        self.rest, *self.bonus = (row / row.sum() if row.any() else None for row in shares)


def explanation(verifier, case, passed):
    """The mistake in a sentence.

    Parameters
    ----------
    verifier : callable
    case : TreeCase
        In which the tokens are not the target's.
    passed : list of TreeCase
    """
    two = {
        "different": Siblings(verifier, (2, 1), (Q, without(Q, 2))),
        "equal": Siblings(verifier, (2, 2), (Q, Q)),
        "independent": Siblings(verifier, (2, 1), (Q, Q)),
        "certain": Siblings(verifier, (1, 2), (Q, without(Q, 1))),
    }
    looks = of_paths(verifier, **two), of_order(**two), of_match(**two), of_k_seq(**two), of_test(**two), of_rest(**two)
    found = next((hint for hint in looks if hint), None) or of_bonus(two["different"]) or of_share(verifier)
    return found or of_lists(verifier) or of_case(case, passed)


def of_paths(verifier, certain, **others):
    """Two paths of two tokens; the first token of the first is accepted for certain."""
    if not same(certain.first, 1):
        return None
    rows = [Q, AFTER[0][::-1], without(Q, 1), AFTER[2]]
    law = decisions(verifier, (1, 0, 0, 1), rows, [-1, 0, -1, 2])
    if any(nodes and nodes[0] == 2 for nodes, _ in law) and all(len(nodes) > 1 for nodes, _ in law if 2 in nodes):
        return (
            "each path is verified on its own and the longest is kept; walk down one tree instead: once a node is "
            "accepted, its siblings are out, and a sibling is tested only after its elder ones were rejected"
        )
    return None


def of_order(certain, **others):
    """The first sibling has p(x) > q(x) and is accepted, unless the second is tested before it."""
    if same(certain.second, min(1, P[2] / without(Q, 1)[2])) or same(certain.second, P[2] / Q[2]):
        return (
            "siblings are tested in another order than they were drawn in (sorted by q?); their order is part of the "
            "distribution: row j is that of sibling j given the siblings before it"
        )
    return None


def of_match(different, equal, **others):
    """Rules that draw the target's own token and look for it among the siblings."""
    if not same(different.first, P[2]):
        return None
    if same(different.second_tested, P[1]):
        return (
            "you draw the target's own token for each sibling again, so each has a new chance to match; draw it once "
            "for all of them, and keep it as the next token if none is equal"
        )
    if same(equal.first + equal.second, 2 * P[2]):
        return (
            "siblings with the same token are counted twice in the running sum of p; a token can be matched only "
            "once: skip the second, or draw the target's own token and compare"
        )
    return "the target's own token did not match a sibling and is drawn again; keep the draw that did not match"


def of_k_seq(different, equal, **others):
    rho = k_seq_divisor(P, Q, 2)
    if same(different.first, P[2] / (rho * Q[2]), 1e-9):
        return (
            "right for siblings drawn independently from one row (this is k-SEQ), but not for others: drawn without "
            "replacement or certain ones need another rule, p replaced by its residual after each rejection"
        )
    both = np.minimum(P, Q)
    weights = np.maximum(P - both * (1 - (1 - both.sum()) ** 2) / both.sum(), 0)
    if same(equal.second_tested, P[2] / Q[2]) and same(equal.rest, weights / weights.sum()):
        return (
            "k-SEQ with rho = 1: the residual becomes negative, and too little is left for the tokens rejected; rho "
            "solves 1 - (1 - b)^k = rho b, with b = sum min(p / rho, q)"
        )
    return None


def of_test(different, equal, independent, **others):
    """The test of the second sibling, after the first was rejected."""
    q, rest, excess = without(Q, 2), residual(P, Q), np.maximum(P - Q, 0)
    if not same(different.first, P[2] / Q[2]):
        return None
    first = P[2] / Q[2]
    wrong = [
        (0, "only the first child of a node is tested; test its siblings, too, against the residual"),
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


def of_share(verifier):
    """Traversal verification: a node with a ratio below 1, and two children."""
    rows = [Q, Q, without(Q, 2)]
    law = decisions(verifier, (2, 2, 1), rows, [-1, 0, 0])
    accepted = [sum(share for (nodes, _), share in law.items() if nodes == (0, i)) for i in (1, 2)]
    share = P[2] / Q[2]
    left = residual(share * AFTER[0], Q)
    stale = (1 - accepted[0]) * min(1, share * left[1] / rows[2][1])
    if same(accepted[0], min(1, share * AFTER[0][2] / Q[2])) and same(accepted[1], stale):
        return (
            "in traversal verification each rejected child changes its parent's row and its share; yours keeps the "
            "share: it becomes S / (S + 1 - share), with S the sum of max(0, share p - q)"
        )
    return None


def of_case(case, passed):
    """What distinguishes the case from those that came before."""
    if case.way not in {other.way for other in passed}:
        before = passed[0].way if passed else "in chains"
        return (
            f"right for siblings {before}, but not for siblings {case.way}: row j of draft.probs is the distribution "
            "of sibling j given its elder siblings"
        )
    if case.depth > 1 and all(other.depth == 1 for other in passed):
        return (
            "right for trees of one level, but not below: after a node is accepted its children meet "
            "target_probs[node + 1], with new uniform numbers"
        )
    if case.kind != "random":
        return f"right, but not for distributions of this kind: {case.kind}"
    return "in a tree, the tokens of a round do not have the target's distribution"
