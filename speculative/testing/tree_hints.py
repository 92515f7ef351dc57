"""Hints for verifiers on trees: the mistake in a sentence, from their behaviour on two siblings and on two paths.

p is the target's row, and q_1 and q_2 those of the siblings, the second given the first: q_1 without the first token,
renormalised. After the first is rejected, r = residual(p, q_1) takes p's place. All numbers are chosen so that no two
mistakes give the same. A table has for each hint what its mistake leads to.
"""

import numpy as np

from ..logits.probs import residual
from ..theory.candidates import k_seq_divisor
from ..tree import is_chain
from .cases import decisions, same
from .chain_hints import lists_hint, normalised

P, Q = np.array([0.35, 0.36, 0.04, 0.25]), np.array([0.15, 0.3, 0.5, 0.05])
AFTER = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3], [0.2, 0.5, 0.2, 0.1], [0.3, 0.3, 0.1, 0.3]])


def without(token):
    """q_2, where the first sibling is this token."""
    left = np.where(np.arange(len(Q)) == token, 0, Q)
    return left / left.sum()


Q_2, EXCESS, REST = without(2), np.maximum(P - Q, 0), residual(P, Q)  # where the first sibling is token 2
RATIO = P[2] / Q[2]  # with which it is accepted


class Siblings:
    """A verifier's behaviour on two siblings."""

    def __init__(self, verifier, tokens, rows):
        shares = np.zeros((3, 4))  # [0: none accepted, 1: the first, 2: the second; next token]
        for (nodes, token), share in decisions(verifier, tokens, rows, [P, *AFTER[:2]], [-1, -1]).items():
            shares[nodes[0] + 1 if nodes else 0, token] += share
        _, self.first, self.second = shares.sum(axis=1)
        self.second_tested = self.second / (1 - self.first) if self.first < 1 else 0.0  # given that the first is not
        self.rest, self.bonus, _ = map(normalised, shares)  # what follows if none is accepted, and after the first


def mistake_on_a_tree(verifier, case, passed):
    """The mistake in a sentence.

    Parameters
    ----------
    verifier : callable
    case : Case
        In which the tokens are not the target's.
    passed : list of Case
        Those before it.
    """
    if hint := numbers_hint(verifier):
        return hint
    different, equal = Siblings(verifier, (2, 1), (Q, Q_2)), Siblings(verifier, (2, 2), (Q, Q))
    certain = Siblings(verifier, (1, 2), (Q, without(1)))  # the first has p(x) > q(x)
    return (
        paths_hint(verifier, certain)
        or order_hint(certain)
        or match_hint(different, equal)
        or k_seq_hint(different, equal)
        or second_test_hint(different, equal)
        or rest_hint(different)
        or leaf_hint(different)
        or share_hint(verifier)
        or lists_hint(verifier)
        or tree_hint(case, [other for other in passed if not is_chain(other.parents)])
    )


def leaves_siblings_out(verifier):
    """Whether only the first of two siblings is ever accepted."""
    return Siblings(verifier, (2, 1), (Q, Q_2)).second == 0


def numbers_hint(verifier):
    """The target is sure of the second of two siblings, which is accepted under the number of the first."""
    sure = np.eye(4)
    if ((0,), 1) in decisions(verifier, (0, 1), sure[:2], sure[[1, 1, 1]], [-1, -1]):
        return (
            "in a tree a verdict says which draft tokens are accepted: Verdict(nodes, next_token); yours only says how "
            "many"
        )
    return None


def paths_hint(verifier, certain):
    """Two paths of two tokens; the first token of the first is accepted for certain."""
    if not same(certain.first, 1):
        return None
    rows = [Q, AFTER[0][::-1], without(1), AFTER[2]]
    accepted = [nodes for nodes, _ in decisions(verifier, (1, 0, 0, 1), rows, [P, *AFTER], [-1, 0, -1, 2])]
    if any(nodes and nodes[0] == 2 for nodes in accepted) and all(len(nodes) > 1 for nodes in accepted if 2 in nodes):
        return (
            "each path is verified on its own and the longest is kept; walk down one tree instead: once a node is "
            "accepted, its siblings are out, and a sibling is tested only after its elder ones were rejected"
        )
    return None


def order_hint(certain):
    """The first sibling has p(x) > q(x) and is accepted, unless the second is tested before it."""
    if same(certain.second, min(1, P[2] / without(1)[2])) or same(certain.second, RATIO):
        return (
            "siblings are tested in another order than they were drawn in (sorted by q?); their order is part of the "
            "distribution: row j is that of sibling j given the siblings before it"
        )
    return None


def match_hint(different, equal):
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


def k_seq_hint(different, equal):
    if same(different.first, P[2] / (k_seq_divisor(P, Q, 2) * Q[2]), 1e-9):
        return (
            "right for siblings drawn independently from one row (this is k-SEQ), but not for others: drawn without "
            "replacement or certain ones need another rule, p replaced by its residual after each rejection"
        )
    both = np.minimum(P, Q)
    weights = np.maximum(P - both * (1 - (1 - both.sum()) ** 2) / both.sum(), 0)
    in_one_row = same(equal.second_tested, RATIO) and same(different.second_tested, min(1, P[1] / Q[1]))
    if in_one_row and same(equal.rest, weights / weights.sum()):
        return (
            "k-SEQ with rho = 1: the residual becomes negative, and too little is left for the tokens rejected; rho "
            "solves 1 - (1 - b)^k = rho b, with b = sum min(p / rho, q)"
        )
    return None


NOT_NORMALISED = (
    "the residual is not renormalised before the next sibling is tested: max(0, p - q) divided by its sum takes p's "
    "place"
)
WRONG_TESTS = {  # the mistake: the probabilities with which the second sibling, token 1, may then be accepted
    "every sibling is tested against the row of the first; each has a row of its own in draft.probs, its distribution "
    "given the siblings before it (drawn without replacement: q without them, renormalised)": [REST[1] / Q[1]],
    "every sibling is tested against the target's own row; after each rejection p becomes residual(p, q), also for the "
    "next sibling": [P[1] / Q_2[1], min(1, P[1] / Q[1])],
    NOT_NORMALISED: [EXCESS[1] / Q_2[1], EXCESS[1] / Q[1]],
    "one uniform number decides on all siblings; draw a new one for each": [(REST[1] / Q_2[1] - RATIO) / (1 - RATIO)],
    "a child is tested against the row of its parent, target_probs[parent + 1], which all siblings share; yours takes "
    "the row of another node": [AFTER[0][1] / Q_2[1]],
}
WRONG_RESTS = {  # the mistake: the distribution drawn from if both siblings are rejected
    "each sibling is tested with its own row, but the residual takes away that of the first": residual(REST, Q),
    "if all siblings are rejected you draw from the target; draw from the residual that is left of p": P,
    "the last rejection is missing in the residual; p becomes residual(p, q) after every rejected sibling": REST,
    "the residual takes away only the row of the last sibling; it is taken after each rejection": residual(P, Q_2),
    NOT_NORMALISED: residual(EXCESS, Q_2),
}


def second_test_hint(different, equal):
    """The test of the second sibling, after the first was rejected."""
    if not same(different.first, RATIO):
        return None
    if same(different.second_tested, REST[1] / Q_2[1]):
        if same(equal.rest, REST) and not same(different.rest, REST):
            return (
                "a sibling with a token that was rejected already is skipped; it cannot be accepted, but its "
                "rejection counts: p must become the residual once more"
            )
        return None
    wrong = WRONG_TESTS.items()
    return next((hint for hint, shares in wrong if any(same(different.second_tested, one) for one in shares)), None)


def rest_hint(different):
    """The token that follows if both siblings are rejected."""
    if same(different.rest, residual(REST, Q_2)):
        return None
    return next((hint for hint, row in WRONG_RESTS.items() if same(different.rest, row)), None)


def leaf_hint(different):
    """The bonus, which follows an accepted leaf."""
    if different.bonus is None or same(different.bonus, AFTER[0]):
        return None
    if same(different.bonus, AFTER[1]):
        return (
            "the bonus is drawn from the row of the last node; it is the row of the accepted leaf, "
            "target_probs[node + 1]"
        )
    return "the bonus is not drawn from the row of the accepted leaf, target_probs[node + 1], as it is"


def share_hint(verifier):
    """Traversal verification: a node with a ratio below 1, and two children."""
    distribution = decisions(verifier, (2, 2, 1), [Q, Q, Q_2], [P, *AFTER[:3]], [-1, 0, 0])
    accepted = [sum(share for (nodes, _), share in distribution.items() if nodes == (0, i)) for i in (1, 2)]
    left = residual(RATIO * AFTER[0], Q)
    stale = (1 - accepted[0]) * min(1, RATIO * left[1] / Q_2[1])
    if same(accepted[0], min(1, RATIO * AFTER[0][2] / Q[2])) and same(accepted[1], stale):
        return (
            "in traversal verification each rejected child changes its parent's row and its share; yours keeps the "
            "share: it becomes S / (S + 1 - share), with S the sum of max(0, share p - q)"
        )
    return None


def tree_hint(case, passed):
    """What distinguishes the case from the trees that came before."""
    if case.way not in {other.way for other in passed}:
        before = passed[0].way if passed else "in chains"
        return (
            f"right for siblings {before}, but not for siblings {case.way}: row j of draft.probs is the distribution "
            "of sibling j given its elder siblings"
        )
    if case.K > 1 and all(other.K == 1 for other in passed):
        return (
            "right for trees of one level, but not below: after a node is accepted its children meet "
            "target_probs[node + 1], with new uniform numbers"
        )
    if case.kind != "random":
        return f"right, but not for distributions of this kind: {case.kind}"
    return "in a tree, the tokens of a round do not have the target's distribution"
