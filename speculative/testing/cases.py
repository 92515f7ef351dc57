"""What the graders share: small cases, frozen arguments, and how a failure is worded."""

import itertools
import math

import numpy as np

from ..exact import CannotEnumerate
from ..interfaces import Draft
from ..probs import sample_token

TOLERANCE = 1e-12


def frozen(array):
    """A read-only copy."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def fail(hint, *details):
    """Raise the AssertionError of a grader: the hint in its first line, then the case that shows it."""
    raise AssertionError("\n".join([hint, *details]))


def guarded(call, what):
    """call(), with what goes wrong inside it told as the mistake that it is."""
    try:
        return call()
    except CannotEnumerate as error:
        fail(f"{what} cannot be enumerated: {error}")
    except ValueError as error:
        if "read-only" in str(error):
            fail(f"{what} writes to its arguments: work on a copy", f"  NumPy says: {error}")
        raise


def largest_difference(law, wanted):
    """The largest difference of two laws, dict outcome -> probability, over all outcomes."""
    return max(abs(law.get(outcome, 0) - wanted.get(outcome, 0)) for outcome in law.keys() | wanted.keys())


def show(row):
    """A distribution as text."""
    return "[" + ", ".join(f"{number:.6g}" for number in row) + "]"


def show_laws(law, wanted, most=12):
    """Two laws beside each other, the outcomes that differ most first."""
    order = sorted(law.keys() | wanted.keys(), key=lambda o: (-abs(law.get(o, 0) - wanted.get(o, 0)), str(o)))
    lines = [f"  {o!s:14} got {law.get(o, 0):.12g}, wanted {wanted.get(o, 0):.12g}" for o in order[:most]]
    return ["", "  the law of the tokens:", *lines] + (["  ..."] if len(order) > most else [])


def random_pair(rng, n_vocab, kind):
    """Two distributions (p, q) [n_vocab]."""
    p, q = rng.dirichlet(np.ones(n_vocab), 2)
    if kind == "equal":
        return p, p
    if kind == "disjoint":
        p[n_vocab // 2 :], q[: n_vocab // 2] = 0, 0
    for name, row in (("p", p), ("q", q)):
        if kind.startswith("zeros") and name in kind:
            row[rng.integers(n_vocab)] = 0
        if kind.startswith("one-hot") and name in kind.split():
            row[:] = np.eye(n_vocab)[rng.integers(n_vocab)]
    return p / p.sum(), q / q.sum()


class Case:
    """Distributions that depend on the tokens before: p and q, dicts from a tuple of tokens to a row [n_vocab]."""

    def __init__(self, n_vocab, K, kind, rng):
        self.n_vocab, self.K, self.p, self.q = n_vocab, K, {}, {}
        for length in range(K + 1):
            for tokens in itertools.product(range(n_vocab), repeat=length):
                self.p[tokens], self.q[tokens] = random_pair(rng, n_vocab, kind)

    def wanted(self):
        """The target's law of K + 1 tokens."""
        return {
            tokens: math.prod(self.p[tokens[:i]][token] for i, token in enumerate(tokens))
            for tokens in itertools.product(range(self.n_vocab), repeat=self.K + 1)
        }

    def run(self, verifier, rng, guesses=None):
        """(guesses, n_accepted, next_token) of one run: the guesses are drawn from q, unless they are given."""
        tokens, rows = [], []
        for i in range(self.K):
            rows.append(self.q[tuple(tokens)])
            tokens.append(sample_token(rows[-1], rng) if guesses is None else guesses[i])
        draft = Draft(frozen(np.array(tokens, np.int64)), frozen(np.reshape(rows, (self.K, self.n_vocab))))
        verdict = verifier(draft, frozen([self.p[tuple(tokens[:i])] for i in range(self.K + 1)]), rng)
        return tuple(tokens), *read(verdict, self)


def read(verdict, case):
    """(n_accepted, next_token) of a verdict; AssertionError if it is none."""
    try:
        n_accepted, next_token = int(verdict.n_accepted), int(verdict.next_token)
    except (AttributeError, TypeError, ValueError):
        fail(f"return Verdict(n_accepted, next_token), two whole numbers; you returned {verdict!r}")
    if not 0 <= n_accepted <= case.K:
        fail(f"n_accepted must lie between 0 and the {case.K} drafted tokens; you returned {n_accepted}")
    if not 0 <= next_token < case.n_vocab:
        fail(f"next_token must be a token from 0 to {case.n_vocab - 1}; you returned {next_token}")
    return n_accepted, next_token
