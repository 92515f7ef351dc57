"""The source of random numbers for samplers, drafters and verifiers, and two sources besides NumPy's generator.

The loop and the library's own drafters and verifiers call only the methods of a `RandomSource` (interfaces.py), so an
object with these methods can record, replay or enumerate (exact/) the draws of a sampler.

`Gumbel` is such a source of common random numbers (Gumbel coupling), with which one seed gives one text, with any
drafter and any draft length. Each position of the text has one vector of exponential numbers E, computed from the seed
and the position alone. To draw a token for a position from probabilities p, take argmin E / p; it has the distribution
p. The target's text is then a function of the seed, and a drafter that draws from q with the same numbers finds the
same token with probability sum_j 1 / sum_i max(p_i / p_j, q_i / q_j). Pass it as `rng` to AutoregressiveSampler, or to
SpeculativeSampler with the verifier `exact_match`, which accepts draft tokens as long as they equal the target's own
draw. In a token tree the children of a node are the k smallest of E / q, in order, so one seed still gives one text.
Source: Daliri, Musco, Suresh, arXiv:2408.07978, algorithm 1 and theorem 3.
"""

from typing import Any

import numpy as np

from .checks import check_length
from .interfaces import RandomSource


def as_generator(rng: Any) -> RandomSource:
    """An np.random.Generator from a seed (None: a fresh one). An object with a method `random` is returned as it is."""
    if hasattr(rng, "random"):
        return rng
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected a seed of 0 or more, a np.random.Generator, or an object with a method random, got {rng!r:.100}"
        ) from error


def at_position(rng: RandomSource, position: int) -> RandomSource:
    """The source for tokens at this position and after it: `rng` itself, unless its numbers belong to positions."""
    return rng.at(position) if hasattr(rng, "at") else rng


class Recorder:
    """Wraps a source and records the uniform numbers that it returns; otherwise behaves like the source."""

    def __init__(self, rng):
        self.rng, self.uniforms = rng, []

    def random(self, *arguments, **keywords):
        self.uniforms.append(self.rng.random(*arguments, **keywords))
        return self.uniforms[-1]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.rng, name)


class Gumbel:
    """Common random numbers, a function of a seed and the position in the text; to be passed as `rng`.

    Parameters
    ----------
    seed
        0 or more.
    position
        The position in the text of the token that `draw` draws next.

    Raises
    ------
    ValueError
        If the seed is negative. `random()` raises it as well: a rule that needs uniform numbers cannot use this source.

    Examples
    --------
    >>> noise = Gumbel(seed=3)
    >>> p = np.array([0.25, 0.75])
    >>> [noise.at(position).draw(p) for position in (7, 8, 7, 8)]
    [1, 0, 1, 0]
    """

    def __init__(self, seed: int = 0, position: int = 0):
        self.seed = check_length(seed, 0, "a seed")
        self.position = position

    def at(self, position: int) -> "Gumbel":
        """The same random numbers, starting at this position."""
        return Gumbel(self.seed, position)

    def draw(self, probs: np.ndarray) -> int:
        """The token id at this position, drawn from probs [n_vocab]; then moves on to the next position."""
        return int(np.argmin(self.times(probs)))

    def draw_distinct(self, probs: np.ndarray, k: int) -> list[int]:
        """The token ids of the k smallest E / probs here, in order; fewer if fewer are possible. Then moves on."""
        times = self.times(probs)
        return np.argsort(times, kind="stable")[: min(k, np.isfinite(times).sum())].tolist()

    def times(self, probs: np.ndarray) -> np.ndarray:
        """E / probs [n_vocab] at this position; then moves on to the next position."""
        noise = np.random.default_rng((self.seed, self.position)).standard_exponential(len(probs))
        self.position += 1
        with np.errstate(divide="ignore", over="ignore"):  # infinite where probs is 0, or nearly so
            return noise / probs

    def random(self, *_: Any) -> float:
        raise ValueError("Gumbel has no independent uniform numbers: use it with the verifier exact_match")
