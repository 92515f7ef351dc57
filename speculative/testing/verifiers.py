"""The grader of verifiers: the tokens of a round must have the target's distribution, whatever the draft."""

import itertools
import math

import numpy as np

from ..exact.enumeration import CannotEnumerate
from ..interfaces import takes_trees
from . import tree_hints, tree_verifiers
from .cases import TOLERANCE, Case, enumerated, largest_difference, show_distributions
from .hints import diagnose, story
from .watch import Progress, fail, note

CASES = [  # (n_vocab, K, kind), small ones first: the first that fails is shown
    (2, 1, "random"), (3, 1, "random"), (3, 0, "random"), (2, 2, "random"), (3, 2, "random"), (3, 1, "zeros in p"),
    (3, 1, "zeros in q"), (3, 2, "zeros in p"), (3, 2, "one-hot q"), (3, 2, "one-hot p"), (3, 2, "one-hot p and q"),
    (3, 2, "equal"), (4, 1, "disjoint"), (2, 3, "random"), (2, 3, "zeros in p"), (3, 2, "tie"),
]  # fmt: skip


def check_verifier(verifier, *, seed=0, trees=None):
    """Raise AssertionError unless the verifier is exact.

    The joint distribution of the tokens of a round, continued by the target to K + 1 tokens, must equal the target's to
    1e-12, for K = 0 to 3 and for distributions that depend on the tokens before: random ones, with zeros, one-hot,
    equal, equal for some tokens, disjoint. A token of target probability 0 must not pass if the uniform number is
    exactly 0, and the arguments must not be modified. A verifier that takes trees is then given some: siblings drawn
    independently, without replacement, one of them drawn, or the likeliest. Prints a note if the verifier is exact but
    slower than it could be.

    Parameters
    ----------
    verifier : callable
        (draft, target_probs, rng) -> Verdict.
    seed : int
        Varies the distributions.
    trees : bool, optional
        Whether to give it trees; by default if it says so, in its attribute `trees`.
    """
    check_form(verifier)
    rng = np.random.default_rng(seed)
    trees = takes_trees(verifier) if trees is None else trees
    groups = [(CASES[:3], tree_verifiers.PAIRS), (CASES[3:], tree_verifiers.CASES)]
    with Progress("check_verifier", sum(len(chains) + len(shapes) * trees for chains, shapes in groups)) as progress:
        passed = []
        for chains, shapes in groups:
            for shape in chains:
                case = Case(*shape, rng)
                rounds = check_case(verifier, case, rng)
                if shape == (3, 2, "random"):
                    typical = case, rounds
                progress.step()
            if trees:
                tree_verifiers.check_trees(verifier, shapes, rng, progress, passed)
        check_zero(verifier, rng)
    tell_what_is_given_away(*typical)
    if trees:
        tree_hints.tell_what_is_given_away(verifier)


def check_case(verifier, case, rng):
    """The distribution of (draft, n_accepted, next_token); AssertionError if the tokens do not have the target's."""
    wanted, seen = case.wanted(), {}

    def is_right(rounds):
        seen["distribution"] = block_distribution(rounds, case)
        return largest_difference(seen["distribution"], wanted) <= TOLERANCE

    rounds = enumerated(lambda rng: case.run(verifier, rng), "your verifier", is_right)
    if not is_right(rounds):
        fail(
            explanation(verifier, case, rng),
            *told_by(case, verifier),
            *show_distributions(seen["distribution"], wanted),
        )
    return rounds


def check_form(verifier):
    if isinstance(verifier, type):
        name = verifier.__name__
        fail(
            f"pass a verifier, not its class: check_verifier({name}()), with {name}.__call__(draft, target_probs, rng)"
        )
    if not callable(verifier):
        fail(
            f"a verifier is called as verifier(draft, target_probs, rng); yours is {verifier!r}, which cannot be called"
        )


def block_distribution(rounds, case):
    """The distribution of K + 1 tokens: those of a round, continued by the target."""
    distribution = {}
    for (guesses, n_accepted, next_token), probability in rounds.items():
        tokens = *guesses[:n_accepted], next_token
        for rest in itertools.product(range(case.n_vocab), repeat=case.K + 1 - len(tokens)):
            whole = tokens + rest
            weight = math.prod(case.p[whole[:i]][whole[i]] for i in range(len(tokens), case.K + 1))
            distribution[whole] = distribution.get(whole, 0) + probability * weight
    return distribution


def explanation(verifier, case, rng):
    """The mistake in a sentence."""
    try:
        return diagnose(verifier, case, rng)
    except CannotEnumerate:
        return "the tokens of a round do not have the target's distribution"


def told_by(case, verifier):
    try:
        return story(verifier, case)
    except CannotEnumerate:
        return []


class AlwaysZero(np.random.Generator):
    """A generator whose uniform numbers are all 0, the smallest that random() can return."""

    def __init__(self):
        np.random.Generator.__init__(self, np.random.PCG64(0))

    def random(self, size=None, dtype=np.float64):
        """0, or an array of zeros."""
        return 0.0 if size is None else np.zeros(size)

    def uniform(self, low=0.0, high=1.0, size=None):
        """`low`, or an array of it."""
        return low + self.random(size)


def check_zero(verifier, rng):
    case, impossible = Case(3, 1, "random", rng), 0
    case.p[()], case.q[()] = np.array([0, 0.4, 0.6]), np.array([0.5, 0.3, 0.2])
    _, n_accepted, next_token = case.run(verifier, AlwaysZero(), [impossible])
    if not n_accepted and next_token == impossible:
        note(
            "your verifier is exact, but where the uniform number is exactly 0 it draws a token of probability 0: "
            'np.searchsorted(cdf, u, side="right")'
        )
    if n_accepted:
        fail(
            "a token of target probability 0 passes where the uniform number is 0: test u < p / q, not u <= p / q",
            *story(verifier, case)[:3],
            f"  draft token {impossible}, and rng.random() returned 0.0",
        )


def tell_what_is_given_away(case, rounds):
    """Notes on a verifier that is exact but slow; `rounds` is the distribution of (draft, n_accepted, next_token)."""
    K = case.K
    shares = [sum(share for (_, n, _), share in rounds.items() if n == accepted) for accepted in range(K + 1)]
    repeated = sum(share for (guesses, n, token), share in rounds.items() if n == K - 1 and token == guesses[-1])
    first = np.minimum(case.p[()], case.q[()])
    second = [np.minimum(case.p[(x,)], case.q[(x,)]).sum() for x in range(case.n_vocab)]
    possible, mean = first.sum() + first @ second, sum(n * share for n, share in enumerate(shares))
    if shares[0] > 1 - TOLERANCE:
        note("your verifier is exact, but it never accepts a draft token: one token a round, as without speculation")
    elif shares[K] == 0 and repeated > 0:
        note(
            "your verifier is exact, but wastes the bonus: if all k draft tokens pass it returns the last of them as "
            "next_token; return Verdict(k, a draw from target_probs[k]), one token more in each such round"
        )
    elif mean < possible - TOLERANCE:
        note(
            f"your verifier is exact, but accepts less than it could: {mean:.3f} of {K} draft tokens on average, where "
            f"min(1, p / q) accepts {possible:.3f}"
        )
