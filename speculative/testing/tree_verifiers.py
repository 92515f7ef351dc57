"""The grader of verifiers on token trees: exact for every way of drawing siblings, on trees of several shapes."""

import numpy as np

from ..exact.enumeration import CannotEnumerate
from ..interfaces import Draft
from .cases import TOLERANCE, enumerated, largest_difference, show, show_distributions
from .tree_cases import WAYS, TreeCase
from .tree_hints import explanation
from .watch import fail

PAIR, THREE, UNEVEN, DEPTH_FIRST = [-1, -1], [-1, -1, -1], [-1, -1, 0, 0], [-1, 0, 0, -1, 3]
PAIRS = [(3, PAIR, way, "random") for way in WAYS]  # (n_vocab, parents, way, kind); the first that fails is shown
CASES = [
    *((3, PAIR, "drawn without replacement", kind) for kind in ("zeros in p", "zeros in q", "one-hot p", "equal")),
    (4, PAIR, "drawn without replacement", "disjoint"),
    (3, THREE, "drawn independently", "random"),
    (4, THREE, "drawn without replacement", "random"),
    *((2, DEPTH_FIRST, way, "random") for way in WAYS),
    (3, UNEVEN, "one drawn, then the likeliest", "zeros in p"),
]


def check_trees(verifier, shapes, rng, progress, passed):
    """Raise AssertionError unless the tokens of a round with a tree, continued by the target, have its distribution.

    `passed`, a list, gets the cases that are right.
    """
    for shape in shapes:
        case = TreeCase(*shape, rng)
        wanted, seen = case.wanted(), {}

        def is_right(rounds, case=case, wanted=wanted, seen=seen):
            seen["distribution"] = case.distribution(rounds)
            return largest_difference(seen["distribution"], wanted) <= TOLERANCE

        rounds = enumerated(lambda rng, case=case: case.run(verifier, rng), "your verifier", is_right)
        if not is_right(rounds):
            fail(mistake(verifier, case, passed), *story(case), *show_distributions(seen["distribution"], wanted))
        passed.append(case)
        progress.step()


def mistake(verifier, case, passed):
    """The mistake in a sentence; `passed` are the cases that came before."""
    try:
        return ONLY_HOW_MANY if only_counts(verifier) else explanation(verifier, case, passed)
    except CannotEnumerate:
        return "in a tree, the tokens of a round do not have the target's distribution"


ONLY_HOW_MANY = (
    "in a tree a verdict says which draft tokens are accepted: Verdict(n_accepted, next_token, nodes), or "
    "draft.verdict(nodes, next_token); yours only says how many"
)


def only_counts(verifier):
    """Whether the second of two siblings, which the target is sure of, is accepted under the number of the first."""
    draft = Draft(np.array([0, 1]), np.eye(3)[[0, 1]], np.array([-1, -1]))
    verdict = verifier(draft, np.eye(3)[[1, 1, 1]], np.random.default_rng(0))
    return (verdict.n_accepted, tuple(verdict.nodes)) == (1, (0,))


def story(case):
    return [
        "",
        f"  a tree with parents = {case.parents}, siblings {case.way}; after the text",
        f"  target p = {show(case.p[()])}, draft q = {show(case.q[()])}",
    ]
