"""The random source: what samplers, drafters and verifiers draw from, and two that can stand in for a generator.

What a source is, interfaces.py says: an object with `random()`, and perhaps `draw(probs)` and `at(position)`. The loop
and the library's own drafters and verifiers call nothing else, so whoever answers these can record, replay or enumerate
(exact.py) what a sampler does.

`Gumbel` is such a source: common random numbers, by which one seed gives one text whatever the drafter and the draft
length. For every position of the text there is one vector of exponential numbers E, made from the seed and the position
alone. Whoever draws a token for a position from probabilities p takes argmin E / p, which has the distribution p. The
target's text is then a function of the seed, and a draft that draws from q with the same numbers finds the same token
with probability sum_j 1 / sum_i max(p_i / p_j, q_i / q_j). It is handed down as `rng`: to AutoregressiveSampler, and to
SpeculativeSampler with the verifier `exact_match`, which accepts drafted tokens for as long as they equal the target's
own draw. Exact for every drafter; drafters that draw nothing may be used as well.
Source: Daliri, Musco, Suresh, arXiv:2408.07978, algorithm 1 and theorem 3.
Next: probs.py
"""

from typing import Any

import numpy as np

from .interfaces import RandomSource


def as_generator(rng: Any) -> RandomSource:
    """A seed (or None: a fresh one) as an np.random.Generator; anything with a method `random` as it is."""
    if hasattr(rng, "random"):
        return rng
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected a seed of 0 or more, a np.random.Generator, or an object with a method random, got {rng!r:.100}"
        ) from error


def at_position(rng: RandomSource, position: int) -> RandomSource:
    """The source for the tokens from this position of the text on: itself, unless its numbers belong to positions."""
    return rng.at(position) if hasattr(rng, "at") else rng


class Recorder:
    """A source that records the uniform numbers it hands out; in everything else the one that it wraps."""

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
    """Common random numbers, keyed by a seed and the position in the text; to be used as `rng`.

    Parameters
    ----------
    seed : int
        0 or more.
    position : int
        Of the token that `draw` draws next.

    Examples
    --------
    >>> noise = Gumbel(seed=3)
    >>> p = np.array([0.25, 0.75])
    >>> [noise.at(position).draw(p) for position in (7, 8, 7, 8)]
    [1, 0, 1, 0]
    """

    def __init__(self, seed=0, position=0):
        self.seed = seed
        self.position = position

    def at(self, position):
        """The same numbers, for the tokens from this position on."""
        return Gumbel(self.seed, position)

    def draw(self, probs):
        """The token id at this position from probs [n_vocab]; the next call is for the next position."""
        noise = np.random.default_rng((self.seed, self.position)).standard_exponential(len(probs))
        self.position += 1
        with np.errstate(divide="ignore"):
            return int(np.argmin(noise / probs))

    def random(self, *_):
        raise ValueError("Gumbel has no independent uniform numbers: use it with the verifier exact_match")
