"""The grader of verifiers: the law of a block must be the target's, whatever the draft."""

import itertools
import math

import numpy as np

from ..exact import exact_law
from .cases import TOLERANCE, Case, fail, guarded, largest_difference, show_laws
from .hints import diagnose, story

CASES = [  # (n_vocab, K, kind), the small ones first: the first that fails is the one that is shown
    (2, 1, "random"), (3, 1, "random"), (3, 0, "random"), (2, 2, "random"), (3, 2, "random"), (3, 1, "zeros in p"),
    (3, 1, "zeros in q"), (3, 2, "zeros in p"), (3, 2, "one-hot q"), (3, 2, "one-hot p"), (3, 2, "one-hot p and q"),
    (3, 2, "equal"), (4, 1, "disjoint"), (3, 3, "random"), (2, 3, "zeros in p"),
]  # fmt: skip


def block_law(verifier, case):
    """The law of K + 1 tokens: guesses from q, the verdict, and the target for what the round leaves open."""

    def emitted(rng):
        guesses, n_accepted, next_token = case.run(verifier, rng)
        return *guesses[:n_accepted], next_token

    law = {}
    for tokens, probability in exact_law(emitted).items():
        for rest in itertools.product(range(case.n_vocab), repeat=case.K + 1 - len(tokens)):
            whole = tokens + rest
            weight = math.prod(case.p[whole[:i]][whole[i]] for i in range(len(tokens), case.K + 1))
            law[whole] = law.get(whole, 0) + probability * weight
    return law


def check_verifier(verifier, *, seed=0):
    """Raise AssertionError unless the verifier is exact.

    The joint law of the tokens of a round, continued by the target to K + 1 tokens, must be the target's to 1e-12, for
    K = 0 to 3 and distributions that depend on the tokens before: random ones, with zeros, one-hot, equal, disjoint.
    A token of target probability 0 must not pass where the uniform number is exactly 0, and arguments stay as they are.

    Parameters
    ----------
    verifier : callable
        (draft, target_probs, rng) -> Verdict.
    seed : int
        Varies the distributions.
    """
    rng = np.random.default_rng(seed)
    for shape in CASES:
        case = Case(*shape, rng)
        law, wanted = guarded(lambda case=case: block_law(verifier, case), "your verifier"), case.wanted()
        if largest_difference(law, wanted) > TOLERANCE:
            fail(diagnose(verifier, rng), *story(verifier, case), *show_laws(law, wanted))
    check_zero(verifier, rng)


class AlwaysZero(np.random.Generator):
    """A generator whose uniform numbers are all 0, the smallest that random() can return."""

    def __init__(self):
        np.random.Generator.__init__(self, np.random.PCG64(0))

    def random(self, size=None, dtype=np.float64):
        return 0.0 if size is None else np.zeros(size)

    def uniform(self, low=0.0, high=1.0, size=None):
        return low + self.random(size)


def check_zero(verifier, rng):
    case = Case(3, 1, "zeros in p", rng)
    impossible = int(np.flatnonzero(case.p[()] == 0)[0])
    with np.errstate(divide="ignore"):  # log(0), of a verifier that works in logarithms
        _, n_accepted, next_token = case.run(verifier, AlwaysZero(), [impossible])
    if n_accepted or next_token == impossible:
        fail(
            "a token of target probability 0 passes where the uniform number is 0: test u < p / q, not u <= p / q",
            *story(verifier, case)[:3],
            f"  drafted token {impossible}, and rng.random() returned 0.0",
        )
