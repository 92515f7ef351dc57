"""Shared noise: one seed, one text, whatever the drafter and the draft length.

Instead of a stream of uniform numbers there is, for every position of the text, one vector of exponential numbers E,
made from the seed and the position alone. Whoever draws a token for a position from probabilities p takes argmin E / p,
which has the law p. The target's text is then a function of the seed, and a draft that draws from q with the same noise
comes to the same token with probability sum_j 1 / sum_i max(p_i / p_j, q_i / q_j).

So it is not a verifier but a kind of randomness, handed down as `rng`: to AutoregressiveSampler, and to
SpeculativeSampler with the verifier `exact_match`, which keeps guesses for as long as they equal the target's own draw.
Exact for every drafter; drafters that draw nothing may be used as well.
Source: Daliri, Musco, Suresh, arXiv:2408.07978, algorithm 1 and theorem 3.
"""

import numpy as np


class Gumbel:
    """Noise keyed by a seed and the absolute position in the text; to be used as `rng`.

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
        """The same noise, for the tokens from this position on."""
        return Gumbel(self.seed, position)

    def draw(self, probs):
        """The token id at this position from probs [n_vocab]; the next call is for the next position."""
        noise = np.random.default_rng((self.seed, self.position)).standard_exponential(len(probs))
        self.position += 1
        with np.errstate(divide="ignore"):
            return int(np.argmin(noise / probs))

    def random(self, *_):
        raise ValueError("shared noise has no independent uniform numbers: use it with the verifier exact_match")
