"""What the graders share. A grader takes five steps:

1. it makes a small case, such as a `Case`, with distributions that depend on the tokens before them
2. it runs the graded code once for every outcome of its random numbers: `enumerated`
3. it compares the distribution with the right one: `compared`
4. if they differ, it looks for the entry of the catalogue (mistakes/) with the same distribution: `entry_like`
5. it raises an AssertionError; the first line is the entry's sentence, and the case and both distributions follow
"""

import contextlib
import itertools
import math
import operator
from collections import Counter
from time import monotonic

import numpy as np

from ..exact.enumeration import NOT_THE_SAME, THRESHOLDS, CannotEnumerate, ExactGenerator, exact_distribution, hashable
from ..interfaces import Draft
from ..logits.probs import sample_distinct, sample_token
from ..tree import chain, children, depth_of, is_chain
from .sources import Sources
from .watch import UNKNOWN_SOURCE, asked, fail, fail_by_source

TOLERANCE = 1e-12
MOST_PATHS = 200_000
N_TIMES = 24
NAMING = 8.0  # seconds to look for the entry of the catalogue that has a wrong distribution
MOST_WHOLE = 16  # outcomes of a random whole number; there are at most four tokens


def enumerated(fn, what, is_right, **options):
    """The distribution of fn(rng), right or wrong; `is_right(distribution)` says which.

    AssertionError if it cannot be computed, or if it is wrong because of a source of randomness other than rng.
    """
    distribution, refusal = None, None
    with Sources(fn) as sources:
        try:
            distribution = exact_distribution(fn, max_leaves=MOST_PATHS, **options)
        except CannotEnumerate as error:
            refusal = error
    if refusal is None and is_right(distribution):
        return distribution
    where = [f"  {refusal.where}"] if hasattr(refusal, "where") else []
    with Sources(fn) as sources_again:
        came_out = {outcome_or_error(fn) for _ in range(N_TIMES if refusal is None else 3)}
    if sources.named() and not sources_again.named() and len(came_out) == 1:  # was np.random.seed(0) in vain?
        with contextlib.suppress(CannotEnumerate):
            if is_right(distribution := exact_distribution(fn, max_leaves=MOST_PATHS, **options)):
                return distribution
    if source := sources.named() or sources_again.named():
        fail_by_source(what, source, *where)
    if len(came_out) > 1 or str(refusal) == NOT_THE_SAME:
        fail(f"{what} {UNKNOWN_SOURCE}", *where)
    if refusal is not None:
        fail(f"{what} cannot be enumerated: {refusal}", *where)
    return distribution


def compared(what, run, wanted, explain, *, tolerance=TOLERANCE, seen_as=lambda distribution: distribution, **options):
    """AssertionError unless the distribution of run(rng), converted by `seen_as`, is `wanted`.

    told(found) returns the sentence that names the mistake, and the lines that describe the case.
    """

    def is_right(distribution):
        return largest_difference(seen_as(distribution), wanted) <= tolerance

    distribution = enumerated(run, what, is_right, **options)
    if not is_right(distribution):
        fail(*explain(seen_as(distribution)), *show_distributions(seen_as(distribution), wanted))


def entry_like(entries, agrees):
    """The sentence of the first entry (sentence, wrong) for which agrees(wrong, until) is true, or None.

    It compares the distribution of the graded code with that of the entry in the same cases. An entry that cannot be
    applied there does not agree, and none does after the time `until`, NAMING seconds from now.
    """
    until = monotonic() + NAMING
    for hint, wrong in entries:
        with contextlib.suppress(AssertionError, AttributeError, CannotEnumerate, IndexError, TypeError, ValueError):
            if agrees(wrong, until):
                return hint
    return None


def in_time(run, until):
    """run(rng), which cannot be enumerated after the time `until`."""

    def outcome(rng):
        if monotonic() > until:
            raise CannotEnumerate("the time is over")
        return run(rng)

    return outcome


def has(run, wanted, until=math.inf, tolerance=1e-9):
    """Whether run(rng) has this distribution, up to the rounding of different programs.

    It has not as soon as one outcome is too probable, nor if the time `until` comes first: most wrong programs show
    that in a few of their paths.
    """
    shares = Counter()

    def outcome(rng):
        result = hashable(run(rng))
        if shares.total() < 1 - tolerance:  # otherwise this is the most probable path again
            shares[result] += rng.reached()
        if shares[result] > wanted.get(result, 0) + tolerance:
            raise CannotEnumerate("a different distribution")
        return result

    try:
        return alike(exact_distribution(in_time(outcome, until), n_again=1), wanted, tolerance)
    except CannotEnumerate:
        return False


def is_right(run, wanted, until, tolerance=1e-9):
    """Whether run(rng) has the wanted distribution, and no error; True after the time `until`."""
    try:
        return monotonic() > until or has(run, wanted, until, tolerance)
    except AssertionError:
        return False


def alike(a, b, tolerance=1e-9):
    """Whether two distributions are the same, up to the rounding of different programs."""
    return largest_difference(a, b) <= tolerance


def outcome_or_error(fn):
    """The result of fn on the first path; the same in every call, unless fn uses something other than rng."""
    try:
        return hashable(fn(ExactGenerator([])))
    except CannotEnumerate as error:
        return str(error)


def same(a, b, tolerance=TOLERANCE):
    """Whether these are the same probabilities, up to rounding; False if the first are None."""
    return a is not None and np.allclose(a, b, rtol=0, atol=tolerance)


def largest_difference(distribution, wanted):
    """The largest difference between two distributions, dict outcome -> probability, over all outcomes."""
    return max(
        abs(distribution.get(outcome, 0) - wanted.get(outcome, 0)) for outcome in distribution.keys() | wanted.keys()
    )


def marginal(distribution, of):
    """The distribution of of(outcome)."""
    shares = {}
    for outcome, share in distribution.items():
        shares[of(outcome)] = shares.get(of(outcome), 0) + share
    return shares


def independent(distributions):
    """The joint distribution of independent outcomes, a dict tuple of outcomes -> probability."""
    return {
        outcomes: math.prod(map(dict.get, distributions, outcomes)) for outcomes in itertools.product(*distributions)
    }


def up_to(tokens, stops):
    """The tokens up to the first that is in stops."""
    end = next((i for i, token in enumerate(tokens, 1) if token in stops), len(tokens))
    return tokens[:end]


def show(row):
    """A distribution as text."""
    return "[" + ", ".join(f"{number:.6g}" for number in row) + "]"


def show_distributions(distribution, wanted, most=12):
    """Two distributions side by side, with the outcomes that differ most first."""
    order = sorted(
        distribution.keys() | wanted.keys(), key=lambda o: (-abs(distribution.get(o, 0) - wanted.get(o, 0)), str(o))
    )
    lines = [f"  {o!s:14} got {distribution.get(o, 0):.12g}, wanted {wanted.get(o, 0):.12g}" for o in order[:most]]
    return ["", "  the distribution of the tokens:", *lines] + (["  ..."] if len(order) > most else [])


NEARLY_RIGHT = (
    "nearly right, off by {:.1g}: compute in float64 throughout, not in float32 (torch's default), and add no epsilon"
)


class Passed(str):
    """The result of a grader: one line that lists its checks."""

    __repr__ = str.__str__


def shortened(value):
    """A value as text of at most 120 characters."""
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


# ------------------------------------------------------------------------------------------------ distributions


# What the cases of check_verifier guarantee: for each limit from 1e-4 to .9999 on p(x), q(x), p(x) / q(x), or on a
# weight of the residual or of the bonus, and each limit up to 9 on the rank of p(x), q(x) or p(x) / q(x), there are
# draft tokens on both sides of it, with p < q and with p > q, as the first draft token and, except for ranks, as the
# second. So a rule that decides differently on one side of such a limit is wrong in one of the cases.
NEARLY_CERTAIN = {  # p and q of three tokens
    "nearly certain p": ((0.99995, 0.00004, 0.00001), (0.4, 0.35, 0.25)),
    "nearly certain q": ((0.55, 0.44998, 0.00002), (0.99996, 0.00004, 0)),
    "nearly certain p and q": ((0.99992, 0.00007, 0.00001), (0.99996, 0.00002, 0.00002)),
    "nearly certain, and different": ((0.99995, 0.00001, 0.00004), (0.00002, 0.99996, 0.00002)),
    "nearly equal": ((0.5, 0.3, 0.2), (0.50002, 0.29998, 0.2)),
}


def random_pair(rng, n_vocab, kind):
    """Two distributions (p, q) [n_vocab]."""
    p, q = rng.dirichlet(np.ones(n_vocab), 2)
    if kind == "many":  # of the least probable token of both p < q; all others but the last are in the residual
        p, q = np.array([0.5, *range(10, n_vocab + 8), 9]), np.array([0.9, *[1] * (n_vocab - 2), 30])
    if kind == "many, of a flat q":
        p, q = np.append(np.full(n_vocab - 1, 1.0), 30), np.arange(n_vocab) + 9.0
    if kind == "equal":
        return p, p
    if kind == "tie":  # equal for every token but two
        return p, p[[1, 0, *range(2, n_vocab)]]
    if kind == "disjoint":
        p[n_vocab // 2 :], q[: n_vocab // 2] = 0, 0
    if kind in NEARLY_CERTAIN:
        shift = rng.integers(n_vocab)
        p, q = (np.roll(row, shift) for row in np.array(NEARLY_CERTAIN[kind]))
    for name, row in (("p", p), ("q", q)):
        if kind.startswith("zeros") and name in kind:
            row[rng.integers(n_vocab)] = 0
        if kind.startswith("one-hot") and name in kind.split():
            row[:] = np.eye(n_vocab)[rng.integers(n_vocab)]
    return p / p.sum(), q / q.sum()


def one_then_the_most_likely(q, k, rng):
    """Greedy multi-draft: one token drawn from q without its k - 1 most likely, which follow deterministically."""
    rest = q.copy()
    rest[np.argsort(-q, kind="stable")[: k - 1]] = 0
    drawn = [(sample_token(rest, rng), rest / rest.sum())] if rest.any() else []
    return drawn + [(int(x), np.eye(len(q))[x]) for x in np.argsort(-q, kind="stable")[: k - 1]]


def the_most_likely(q, k, rng):
    return [(int(x), np.eye(len(q))[x]) for x in np.argsort(-q, kind="stable")[:k] if q[x] > 0]


WAYS = {  # (q [n_vocab], k, rng) -> up to k siblings in order, each (token, the distribution it comes from)
    "drawn independently": lambda q, k, rng: [(sample_token(q, rng), q) for _ in range(k)],
    "drawn without replacement": lambda q, k, rng: list(zip(*sample_distinct(q, k, rng))),
    "one drawn, then the most likely": one_then_the_most_likely,
    "the most likely": the_most_likely,
}


class Case:
    """Distributions that depend on the tokens before them: p and q, dicts from a tuple of tokens to a row [n_vocab].

    Parameters
    ----------
    n_vocab : int
    shape : int or list of int
        K, the length of a chain; or the parents of a tree, which gets fewer nodes if there are not enough tokens.
    kind : str
        The kind of distributions (see `random_pair`).
    rng : np.random.Generator
    way : str
        How siblings are drawn, a key of WAYS.
    """

    def __init__(self, n_vocab, shape, kind, rng, way="drawn independently"):
        self.n_vocab, self.kind, self.way, self.p, self.q = n_vocab, kind, way, {}, {}
        self.parents = chain(shape).tolist() if np.ndim(shape) == 0 else list(shape)
        self.K = depth_of(self.parents)
        for length in range(self.K + 1):
            for tokens in itertools.product(range(n_vocab), repeat=length):
                self.p[tokens], self.q[tokens] = random_pair(rng, n_vocab, kind)

    def probability(self, tokens, n_given=0):
        """The target's probability of a tuple of tokens, given the first n_given of them."""
        return math.prod(self.p[tokens[:i]][tokens[i]] for i in range(n_given, len(tokens)))

    def wanted(self):
        """The target's distribution of K + 1 tokens."""
        texts = itertools.product(range(self.n_vocab), repeat=self.K + 1)
        return {tokens: self.probability(tokens) for tokens in texts}

    def continued(self, runs):
        """The distribution of K + 1 tokens: the tokens that a run adds, continued by the target."""
        distribution = {}
        for (drafted, n_accepted, next_token), share in runs.items():
            tokens = *drafted[:n_accepted], next_token
            for rest in itertools.product(range(self.n_vocab), repeat=self.K + 1 - len(tokens)):
                text = tokens + rest
                distribution[text] = distribution.get(text, 0) + share * self.probability(text, len(tokens))
        return distribution

    def drawn(self, rng):
        """(draft, target_probs), with tokens drawn from q; siblings in this case's way."""
        paths, rows = {-1: ()}, {}
        for node in range(-1, len(self.parents)):
            below = children(self.parents, node) if node in paths else []
            siblings = WAYS[self.way](self.q[paths[node]], len(below), rng) if below else []
            for child, (token, row) in zip(below, siblings):
                paths[child], rows[child] = (*paths[node], int(token)), row
        nodes = sorted(rows)
        tokens = np.array([paths[node][-1] for node in nodes], np.int64)
        parents = np.array([([-1, *nodes].index(self.parents[node]) - 1) for node in nodes], np.int64)
        draft = Draft(tokens, np.reshape([rows[node] for node in nodes], (len(nodes), self.n_vocab)), parents)
        return draft, np.array([self.p[paths[node]] for node in [-1, *nodes]])

    def run(self, verifier, rng):
        """(draft tokens, n_accepted, next_token) of one run; in a tree, the accepted draft tokens come first."""
        draft, target_probs = self.drawn(rng)
        nodes, next_token = decided(verifier, draft, target_probs, rng)
        order = [*nodes, *(node for node in range(len(draft.tokens)) if node not in nodes)]
        return tuple(int(draft.tokens[node]) for node in order), len(nodes), next_token


# ------------------------------------------------------------------------------------------------ decisions


def decided(verifier, draft, target_probs, rng):
    """(accepted draft tokens, next token) of a verdict; AssertionError unless it is valid."""
    tokens, parents, n_drafted, n_vocab = draft.tokens.tolist(), draft.parents.tolist(), *draft.probs.shape

    def where():
        if not is_chain(parents):
            return f"for draft.tokens = {tokens}, draft.parents = {parents}"
        shapes = f"draft.probs of shape {draft.probs.shape}, target_probs of shape {target_probs.shape}"
        return f"for K = {n_drafted}, draft.tokens = {tokens}, {shapes}"

    arguments = draft.tokens, draft.probs, draft.parents, target_probs
    verdict = asked(lambda: verifier(draft, target_probs, rng), "your verifier", where, arguments)
    if (n := getattr(rng, "most_whole", 0)) > MOST_WHOLE:
        fail(f"your verifier draws one of {n} whole numbers: {THRESHOLDS}", f"  {where()}")
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
        low = "  the cumulative sum ends below the uniform number: divide the residual by its sum before drawing"
        hint = f"next_token must be a token from 0 to {n_vocab - 1}; you returned {next_token}"
        fail(hint, f"  {where()}", *([low] if next_token == n_vocab else []))
    nodes = tuple(getattr(verdict, "nodes", range(n_accepted)))
    if len(nodes) != n_accepted or any(b not in children(parents, a) for a, b in zip((-1, *nodes), nodes)):
        fail(
            "the accepted draft tokens of a tree are a path: from the text down, each a child of the one before, and "
            f"n_accepted is their number; you returned n_accepted = {n_accepted}, nodes = {nodes}",
            f"  {where()}",
        )
    return nodes, next_token


def why_no_verdict(verdict):
    if verdict is None:
        return ["  is a `return` missing on one of the paths through the function?"]
    if hasattr(verdict, "send"):
        return ["  a function with `yield` returns a generator: write `return`"]
    if isinstance(verdict, (tuple, list)):
        return ["  make it Verdict(...): from speculative import Verdict"]
    return []
