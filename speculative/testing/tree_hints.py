"""Hints for verifiers on trees: the mistake in a sentence, from what they do with two siblings and with two paths."""

import numpy as np

from ..probs import residual
from ..theory.candidates import k_seq_divisor
from .hints import of_lists
from .sibling_hints import AFTER, P, Q, Siblings, decisions, of_bonus, of_rest, of_test, without
from .small_errors import same
from .watch import note


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


def tell_what_is_given_away(verifier):
    """A note on a verifier that is exact, but leaves siblings out."""
    if Siblings(verifier, (2, 1), (Q, without(Q, 2))).second == 0:
        note(
            "your verifier is exact, but accepts the first child of a node or none: test its siblings, too, against "
            "the residual that is left"
        )


def of_paths(verifier, certain, **others):
    """Two paths of two tokens; the first token of the first is accepted for certain."""
    if not same(certain.first, 1):
        return None
    rows = [Q, AFTER[0][::-1], without(Q, 1), AFTER[2]]
    distribution = decisions(verifier, (1, 0, 0, 1), rows, [-1, 0, -1, 2])
    if any(nodes and nodes[0] == 2 for nodes, _ in distribution) and all(
        len(nodes) > 1 for nodes, _ in distribution if 2 in nodes
    ):
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
    in_one_row = same(equal.second_tested, P[2] / Q[2]) and same(different.second_tested, min(1, P[1] / Q[1]))
    if in_one_row and same(equal.rest, weights / weights.sum()):
        return (
            "k-SEQ with rho = 1: the residual becomes negative, and too little is left for the tokens rejected; rho "
            "solves 1 - (1 - b)^k = rho b, with b = sum min(p / rho, q)"
        )
    return None


def of_share(verifier):
    """Traversal verification: a node with a ratio below 1, and two children."""
    rows = [Q, Q, without(Q, 2)]
    distribution = decisions(verifier, (2, 2, 1), rows, [-1, 0, 0])
    accepted = [sum(share for (nodes, _), share in distribution.items() if nodes == (0, i)) for i in (1, 2)]
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
