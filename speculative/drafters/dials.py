"""Drafts of a known quality, for lessons: the target itself, and the target with so much noise.

With NoisyDrafter(target, epsilon) a share of about epsilon of the guesses is rejected: the overlap of p with
q = (1 - epsilon) p + epsilon / n_vocab is 1 - epsilon * TV(p, uniform).
"""

import numpy as np

from ..interfaces import Draft
from ..probs import Sampling, sample_token


class NoisyDrafter:
    """Draws guesses from the target's own distribution, mixed with a share of epsilon of equal probabilities.

    Parameters
    ----------
    target : LanguageModel
    epsilon : float
        From 0, the target itself, to 1, a blind guess.
    sampling : Sampling
        The target's.
    """

    def __init__(self, target, epsilon, *, sampling=Sampling()):
        if not 0 <= epsilon <= 1:
            raise ValueError(f"expected an epsilon from 0 to 1, got {epsilon}")
        self.target, self.epsilon, self.sampling = target, epsilon, sampling

    def propose(self, tokens, K, rng):
        tokens, guesses, probs = list(tokens), [], np.empty((K, self.target.n_vocab))
        for row in probs:
            row[:] = (1 - self.epsilon) * self.sampling(self.target(tokens), tokens)[0] + self.epsilon / len(row)
            guesses.append(sample_token(row, rng))
            tokens.append(guesses[-1])
        return Draft(np.array(guesses, dtype=np.int64), probs)


def OracleDrafter(target, *, sampling=Sampling()):
    """The target as its own draft: every guess is accepted, at the target's own cost."""
    return NoisyDrafter(target, 0.0, sampling=sampling)
