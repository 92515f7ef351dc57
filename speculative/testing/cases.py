"""Shared by the graders: small cases, enumeration with hints on what prevents it, and the wording of failures."""

import itertools
import math
import operator

import numpy as np

from ..exact.enumeration import NOT_THE_SAME, CannotEnumerate, ExactGenerator, exact_distribution, hashable
from ..interfaces import Draft
from ..probs import sample_token
from .watch import UNKNOWN_SOURCE, Sources, asked, fail, fail_by_source

TOLERANCE = 1e-12
MOST_PATHS = 200_000
N_TIMES = 24


def enumerated(fn, what, wanted):
    """The distribution of fn(rng), right or wrong; `wanted(distribution)` says which.

    AssertionError if it cannot be computed, or if it is wrong because of another source of randomness than rng.
    """
    distribution, refusal = None, None
    with Sources() as sources:
        try:
            distribution = exact_distribution(fn, max_leaves=MOST_PATHS)
        except CannotEnumerate as error:
            refusal = error
    if refusal is None and wanted(distribution):
        return distribution
    where = [f"  {refusal.where}"] if hasattr(refusal, "where") else []
    with Sources() as sources_again:
        came_out = {outcome_or_error(fn) for _ in range(N_TIMES if refusal is None else 3)}
    if source := sources.named() or sources_again.named():
        fail_by_source(what, source, *where)
    if len(came_out) > 1 or str(refusal) == NOT_THE_SAME:
        fail(f"{what} {UNKNOWN_SOURCE}", *where)
    if refusal is not None:
        fail(f"{what} cannot be enumerated: {refusal}", *where)
    return distribution


def outcome_or_error(fn):
    """The result of fn on the first path; the same in every call, unless fn uses something else than rng."""
    try:
        return hashable(fn(ExactGenerator([])))
    except CannotEnumerate as error:
        return str(error)


def largest_difference(distribution, wanted):
    """The largest difference between two distributions, dict outcome -> probability, over all outcomes."""
    return max(
        abs(distribution.get(outcome, 0) - wanted.get(outcome, 0)) for outcome in distribution.keys() | wanted.keys()
    )


def show(row):
    """A distribution as text."""
    return "[" + ", ".join(f"{number:.6g}" for number in row) + "]"


def show_distributions(distribution, wanted, most=12):
    """Two distributions side by side, the outcomes that differ most first."""
    order = sorted(
        distribution.keys() | wanted.keys(), key=lambda o: (-abs(distribution.get(o, 0) - wanted.get(o, 0)), str(o))
    )
    lines = [f"  {o!s:14} got {distribution.get(o, 0):.12g}, wanted {wanted.get(o, 0):.12g}" for o in order[:most]]
    return ["", "  the distribution of the tokens:", *lines] + (["  ..."] if len(order) > most else [])


def random_pair(rng, n_vocab, kind):
    """Two distributions (p, q) [n_vocab]."""
    p, q = rng.dirichlet(np.ones(n_vocab), 2)
    if kind == "equal":
        return p, p
    if kind == "tie":  # equal for every token but two
        return p, p[[1, 0, *range(2, n_vocab)]]
    if kind == "disjoint":
        p[n_vocab // 2 :], q[: n_vocab // 2] = 0, 0
    for name, row in (("p", p), ("q", q)):
        if kind.startswith("zeros") and name in kind:
            row[rng.integers(n_vocab)] = 0
        if kind.startswith("one-hot") and name in kind.split():
            row[:] = np.eye(n_vocab)[rng.integers(n_vocab)]
    return p / p.sum(), q / q.sum()


class Case:
    """Distributions that depend on the tokens before them: p and q, dicts from a tuple of tokens to a row [n_vocab]."""

    def __init__(self, n_vocab, K, kind, rng):
        self.n_vocab, self.K, self.kind, self.p, self.q = n_vocab, K, kind, {}, {}
        for length in range(K + 1):
            for tokens in itertools.product(range(n_vocab), repeat=length):
                self.p[tokens], self.q[tokens] = random_pair(rng, n_vocab, kind)

    def wanted(self):
        """The target's distribution of K + 1 tokens."""
        return {
            tokens: math.prod(self.p[tokens[:i]][token] for i, token in enumerate(tokens))
            for tokens in itertools.product(range(self.n_vocab), repeat=self.K + 1)
        }

    def run(self, verifier, rng, guesses=None):
        """(draft tokens, n_accepted, next_token) of one run: the draft tokens are drawn from q, or given."""
        tokens, rows = [], []
        for i in range(self.K):
            rows.append(self.q[tuple(tokens)])
            tokens.append(sample_token(rows[-1], rng) if guesses is None else int(guesses[i]))
        draft = Draft(np.array(tokens, np.int64), np.reshape(rows, (self.K, self.n_vocab)))
        target_probs = np.array([self.p[tuple(tokens[:i])] for i in range(self.K + 1)])

        def where():
            shapes = f"draft.probs of shape {draft.probs.shape}, target_probs of shape {target_probs.shape}"
            return f"for K = {self.K}, draft.tokens = {tokens}, {shapes}"

        arguments = draft.tokens, draft.probs, target_probs
        verdict = asked(lambda: verifier(draft, target_probs, rng), "your verifier", where, arguments)
        return tuple(tokens), *read(verdict, self.K, self.n_vocab, where)


def read(verdict, n_drafted, n_vocab, where):
    """(n_accepted, next_token) of a verdict; AssertionError unless it is a valid one."""
    try:
        n_accepted, next_token = operator.index(verdict.n_accepted), operator.index(verdict.next_token)
    except (AttributeError, TypeError):
        hint = f"return Verdict(n_accepted, next_token), two whole numbers; you returned {shortened(verdict)}"
        fail(hint, *why_no_verdict(verdict), f"  {where()}")
    if not 0 <= n_accepted <= n_drafted:
        bonus = "; the bonus is not counted" if n_accepted == n_drafted + 1 else ""
        hint = f"n_accepted must lie between 0 and the {n_drafted} draft tokens; you returned {n_accepted}{bonus}"
        fail(hint, f"  {where()}")
    if not 0 <= next_token < n_vocab:
        details = [f"  {where()}"]
        if next_token == n_vocab:
            details.append(
                "  the cumulative sum ends below the uniform number: divide the residual by its sum before drawing"
            )
        hint = f"next_token must be a token from 0 to {n_vocab - 1}; you returned {next_token}"
        fail(hint, *details)
    return n_accepted, next_token


def why_no_verdict(verdict):
    if isinstance(verdict, type(None)):
        return ["  is a `return` missing on one of the paths through the function?"]
    if hasattr(verdict, "send"):
        return ["  a function with `yield` returns a generator: write `return`"]
    if hasattr(verdict, "next_token") and np.size(verdict.next_token) == 1 and np.ndim(verdict.next_token) == 1:
        return ["  take the token out of its array: [0]"]
    if isinstance(verdict, (tuple, list)):
        return ["  make it Verdict(...): from speculative import Verdict"]
    return []


def shortened(value):
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
