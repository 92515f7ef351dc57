"""The exact distribution of random code: run it once for every outcome of its random draws.

This is reference.py for code of any style. It adds an np.random.Generator that draws arrays, choices, whole numbers and
waiting times as well, outcomes that are arrays, and sums without loss of digits. It refuses code that draws from a
different source, uses a number not yet drawn as a value, or has too many paths.

`exact_distribution(fn)` calls `fn(rng)` many times, with an `ExactGenerator` in place of np.random.Generator. A draw
from it is not a number but a question that is still open: a uniform u that is compared with a number forks the run in
two, and a choice among n forks it in n. Each run follows one path through the forks, and the path's probability is the
product over its forks; the next run takes the next path. The result is exact up to rounding.

    u = rng.random()
    accept = u * q < p      forks: True with probability min(1, p / q), False with the rest

Several comparisons of one uniform are consistent, because it remembers the interval in which it must lie. What cannot
end in a decision, such as the sum of two uniforms, does not have a finite set of paths and is refused.
"""

import math
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np

from .global_generators import changed, global_states
from .uniform import CannotEnumerate, Uniform
from .waiting import Waiting


def exact_distribution(
    fn: Callable[[np.random.Generator], Any], *, max_leaves: int = 1_000_000, max_draws: int = 500, n_again: int = 12
) -> dict[Any, float]:
    """The distribution of fn(rng): a dict outcome -> probability, whose values add up to 1.

    Parameters
    ----------
    fn
        Takes a generator and returns an outcome. It is run once for each path through its random decisions and must
        not depend on anything else that changes. Arrays and lists in the outcome are returned as tuples.
    max_leaves
        The largest number of runs.
    max_draws
        The largest number of draws in one run. A run that draws more is taken for an endless loop, and so is one with
        many draws whose path has a probability below 1e-15. The time of a run is linear in its number of draws.
    n_again
        How often the most probable path is run again, always with the same outcome.

    Raises
    ------
    CannotEnumerate
        If there are too many paths or draws, if a continuous draw is used as a value, if fn draws from a global
        generator (np.random, the module random, torch), or if it behaves differently when it is run again on the same
        path, as code that creates its own generator does.

    Examples
    --------
    >>> exact_distribution(lambda rng: rng.random() < 0.25)
    {True: 0.25, False: 0.75}
    >>> exact_distribution(lambda rng: [rng.choice(2, p=[0.5, 0.5]), rng.random() * 4 < 3])
    {(0, True): 0.375, (0, False): 0.125, (1, True): 0.375, (1, False): 0.125}
    """
    before = global_states()
    distribution = refusal = None
    try:
        distribution = enumerated(fn, max_leaves, max_draws, n_again)
    except CannotEnumerate as error:
        refusal = error
    sources = changed(before, global_states())
    if sources and (refusal is None or str(refusal) == NOT_THE_SAME):
        raise CannotEnumerate(
            f"the function draws from {sources[0]}, which cannot be enumerated: it must draw everything from the "
            "generator that it is called with"
        ) from refusal
    if refusal is not None:
        raise refusal
    return distribution


def enumerated(fn, max_leaves, max_draws, n_again):
    parts, path = {}, []
    most_probable = 0.0, [], None  # among the paths so far: its probability, the path, its outcome
    rng = ExactGenerator(path, max_draws, max_leaves)
    for _ in range(max_leaves):
        outcome = hashable(fn(rng.from_the_start()))
        if rng.n_asked != len(path):
            raise CannotEnumerate(NOT_THE_SAME)
        parts.setdefault(outcome, []).append(rng.reached())
        if rng.reached() > most_probable[0]:
            most_probable = rng.reached(), [copy(fork) for fork in path], outcome
        while path and path[-1].taken == len(path[-1].probs) - 1:
            path.pop()
        if not path:
            _, path, outcome = most_probable
            rng = ExactGenerator(path, max_draws, max_leaves)
            if any((hashable(fn(rng.from_the_start())),) != (outcome,) for _ in range(n_again)):
                raise CannotEnumerate(NOT_THE_SAME)
            return {outcome: math.fsum(probabilities) for outcome, probabilities in parts.items()}
        path[-1].taken += 1
    covered = math.fsum(probability for probabilities in parts.values() for probability in probabilities)
    raise CannotEnumerate(
        f"more than max_leaves = {max_leaves} paths, and those so far cover {covered:.3g} of the probability: take a "
        "smaller case (fewer tokens, a smaller vocabulary, a smaller K) or raise max_leaves"
    )


def total_variation(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    """The total variation distance of two distributions, dicts outcome -> probability: half of sum |a(x) - b(x)|.

    It is the largest difference in the probability of any event, from 0 for equal distributions to 1 for distributions
    that have no outcome in common. If a drafter has distribution a and the target has b, 1 - total_variation(a, b) is
    the acceptance rate of rejection sampling (arXiv:2211.17192, section 3.2).

    >>> total_variation({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.5, "c": 0.25})
    0.25
    """
    return math.fsum(abs(a.get(outcome, 0) - b.get(outcome, 0)) for outcome in a.keys() | b.keys()) / 2


NOT_THE_SAME = (
    "the function drew differently when it was run again on the same path: it must depend on its generator alone, "
    "without state from an earlier call or a different source of randomness"
)

ENDLESS = (
    "one run has made {n} draws so far: an endless loop, such as `while` until a draw is accepted, has no finite set "
    "of paths, so its distribution cannot be computed: draw a fixed number of times; instead of drawing until a token "
    "is accepted, draw once from the renormalised distribution of the accepted tokens"
)
IMPROBABLE, FEW_DRAWS = 1e-15, 30  # few draws may well be improbable
MOST_OUTCOMES = 60_000  # the most outcomes of one draw
MOST_WHOLE = 256  # the most outcomes of int(u * n)
THRESHOLDS = (
    "compare the uniform number itself, rng.random() * q < p; a threshold such as int(n * p / q) rounds p / q to a "
    "multiple of 1 / n, so that the probabilities are off by up to 1 / n"
)
MOST_QUESTIONS = 60_000  # the most comparisons of one number; GPT-2 has fewer tokens


class Fork:
    """A decision on the path: the probabilities of its outcomes, the outcome taken, the probability of getting here."""

    def __init__(self, probs, reached):
        self.probs = probs
        self.reached = reached
        self.taken = 0


class ExactGenerator(np.random.Generator):
    """A replacement for np.random.Generator that enumerates instead of drawing; created by `exact_distribution`.

    It is a subclass of Generator, so that code which checks for one, or calls np.random.default_rng(rng), accepts it.
    """

    def __init__(self, path, max_draws=500, max_leaves=1_000_000):
        np.random.Generator.__init__(self, np.random.PCG64(0))
        self.path = path
        self.max_draws, self.max_leaves = max_draws, max_leaves
        self.slack = 0.0  # by how much a cache's rounding may change a probability when a path is taken again
        self.most_whole = 0  # the largest number of outcomes of one whole number so far
        self.from_the_start()

    def __reduce__(self):  # called by copy and pickle; NumPy's method makes a generator with a fixed seed
        raise CannotEnumerate("the generator is copied, and a copy cannot be enumerated: draw from rng itself")

    def from_the_start(self):
        """This generator, reset for one more run along the path."""
        self.n_asked = self.n_draws = self.n_questions = 0  # forks, draws, comparisons since the last draw
        self.n_numbers = 1  # how many numbers the last draw returned
        self.n_outcomes = 1  # how many outcomes the whole numbers drawn so far have together
        return self

    def reached(self):
        """The probability of the path so far."""
        if self.n_asked == 0:
            return 1.0
        fork = self.path[self.n_asked - 1]
        return fork.reached * fork.probs[fork.taken]

    def drawn(self):
        """Count a draw. CannotEnumerate if the run looks like an endless loop."""
        self.n_draws += 1
        self.n_questions, self.n_numbers = 0, 1
        if self.n_draws > self.max_draws or (self.n_draws > FEW_DRAWS and self.reached() < IMPROBABLE):
            raise CannotEnumerate(ENDLESS.format(n=self.n_draws))

    def asked(self):
        """Count a comparison. CannotEnumerate if their number suggests an endless loop."""
        self.n_questions += 1
        if self.n_questions > MOST_QUESTIONS * self.n_numbers:
            raise CannotEnumerate(
                f"one draw is compared more than {MOST_QUESTIONS * self.n_numbers} times, which looks like an endless "
                "loop around a number that does not change: draw inside the loop"
            )

    def cut(self, n):
        """Note that a number becomes one of n whole numbers by int(). CannotEnumerate if there are too many."""
        self.most_whole = max(self.most_whole, n)
        if n > MOST_WHOLE:
            raise CannotEnumerate(f"int() makes one of {n} whole numbers of a uniform number: {THRESHOLDS}")

    def fork(self, probs):
        """The index (int) of the outcome taken here, given all probabilities; one of probability 0 is never taken."""
        possible = [i for i, probability in enumerate(probs) if probability > 0]
        if len(possible) == 1:
            return possible[0]
        probs = [float(probs[i]) for i in possible]
        if self.n_asked == len(self.path):
            self.path.append(Fork(probs, self.reached()))
        fork = self.path[self.n_asked]
        if fork.probs != probs and not (self.slack and np.allclose(fork.probs, probs, rtol=0, atol=self.slack)):
            raise CannotEnumerate(NOT_THE_SAME)
        self.n_asked += 1
        return possible[fork.taken]

    def random(self, size=None, dtype=np.float64):
        return self._filled(size, lambda: Uniform(self))

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        size = np.broadcast_shapes(low.shape, high.shape) or None if size is None else size
        np.broadcast_to(low + high, size or ())  # raises ValueError where NumPy does
        return self._filled(size, lambda: Uniform(self)) * (high - low)[()] + low[()]

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        low, high = (0, low) if high is None else (low, high)
        check_numbers("integers", low, high)
        n = int(high) - int(low) + bool(endpoint)
        if n < 1 and size != 0:
            raise ValueError(f"expected low < high, got integers from {low} to {high}")
        if n > MOST_OUTCOMES:
            raise CannotEnumerate(
                f"rng.integers draws one of {n} numbers, too many to enumerate: draw the decision itself, "
                "not a seed for another generator"
            )
        return self._filled(size, lambda: int(low) + self.whole(n), int)

    def whole(self, n):
        """One of n whole numbers, which are equally probable. CannotEnumerate if one run has too many of them."""
        self.n_outcomes *= n
        self.most_whole = max(self.most_whole, n)
        if self.n_outcomes > self.max_leaves:
            raise CannotEnumerate(
                f"the whole numbers that are drawn in one run, such as rng.integers({n}), have {self.n_outcomes} "
                f"outcomes together, each with a path of its own, and max_leaves is {self.max_leaves}: {THRESHOLDS}"
            )
        return self.fork([1 / n] * n)

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        population = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        if not len(population):
            raise ValueError("expected something to choose from, got nothing")
        dtype = p.dtype if isinstance(p, np.ndarray) and p.dtype.kind == "f" else np.dtype(np.float64)
        tolerance = np.finfo(dtype).eps ** 0.5  # the tolerance that NumPy uses
        p = np.full(len(population), 1 / len(population)) if p is None else np.asarray(p, dtype=np.float64)
        if len(p) != len(population) or (p < 0).any() or not abs(math.fsum(p) - 1) <= tolerance:
            raise ValueError(f"expected {len(population)} probabilities that add up to 1, got {p}")
        if axis != 0:
            raise CannotEnumerate(f"choice is supported only along axis 0, got {axis}")
        if size is not None and not replace:
            raise CannotEnumerate("choice without replacement is not supported: draw one by one")
        drawn = self._filled(size, lambda: self.fork(p / p.sum()), int)
        return population[drawn]

    def binomial(self, n, p, size=None):
        if np.any(np.asarray(n) != 1):
            raise CannotEnumerate("rng.binomial is supported only for n = 1")
        check_numbers("binomial", n, p)
        if not 0 <= p <= 1:
            raise ValueError(f"expected a probability p from 0 to 1, got {p}")
        return self._filled(size, lambda: self.fork([1 - p, p]), int)

    def multinomial(self, n, pvals, size=None):
        if n != 1 or size is not None:
            raise CannotEnumerate("rng.multinomial is supported only for n = 1 and without size")
        return np.eye(len(pvals), dtype=np.int64)[self.choice(len(pvals), p=pvals)]

    def exponential(self, scale=1.0, size=None):
        times = self._filled(np.shape(scale) or size, lambda: Waiting(self))
        return times * (np.asarray(scale, dtype=object) if np.ndim(scale) else scale)

    def standard_exponential(self, size=None, dtype=np.float64):
        return self.exponential(size=size)

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        return loc + scale * self._filled(size, lambda: Waiting(self, form="log t", sign=-1))

    def _filled(self, size, draw, dtype=object):
        """One draw, or an array of `size` of them."""
        self.drawn()
        if size is None:
            return draw()
        array = np.empty(size, dtype)
        self.n_numbers = max(1, array.size)
        for i in np.ndindex(array.shape):
            array[i] = draw()
        return array


def check_numbers(name, *parameters):
    if any(map(np.ndim, parameters)):
        raise CannotEnumerate(f"rng.{name} is supported only with numbers as parameters, not arrays: draw one by one")


def refused(name):
    def method(self, *arguments, **keywords):
        raise CannotEnumerate(
            f"rng.{name} cannot be enumerated here: use rng.random(), rng.uniform(), rng.integers() or rng.choice() "
            "and decide by comparisons"
        )

    return method


for name in dir(np.random.Generator):
    if not name.startswith("_") and name not in vars(ExactGenerator):
        setattr(ExactGenerator, name, refused(name))


def hashable(outcome):
    """The outcome, with arrays and lists turned into tuples and NumPy's numbers into Python's."""
    if isinstance(outcome, np.ndarray):
        outcome = outcome.tolist()
    if isinstance(outcome, (list, tuple)):
        return tuple(hashable(part) for part in outcome)
    outcome = outcome.item() if isinstance(outcome, np.generic) else outcome
    hash(outcome)
    return math.nan if isinstance(outcome, float) and math.isnan(outcome) else outcome  # equal to itself in a tuple
