"""Drafters of known quality, for lessons: the target itself, and the target with a chosen amount of noise.

With NoisyDrafter(target, epsilon) a share of about epsilon of the draft tokens is rejected: the overlap of p with
q = (1 - epsilon) p + epsilon / n_vocab is 1 - epsilon TV(p, uniform).
"""

from collections.abc import Callable
from functools import partial

from ..logits.probs import Sampling
from .model import ModelDrafter


def noisy(sampling, epsilon, logits, tokens):
    """The rows [n, n_vocab] of `sampling`, mixed with the uniform distribution."""
    return (1 - epsilon) * sampling(logits, tokens) + epsilon / logits.shape[-1]


class NoisyDrafter(ModelDrafter):
    """A `ModelDrafter` on the target, with a share epsilon of the uniform distribution mixed into its rows.

    Parameters
    ----------
    target : LanguageModel
    epsilon : float
        Between 0 (the target itself) and 1 (uniform sampling).
    sampling : Sampling, optional
        By default the sampler's.
    """

    def __init__(self, target, epsilon, *, sampling: Callable | None = None):
        if not 0 <= epsilon <= 1:
            raise ValueError(f"expected an epsilon from 0 to 1, got {epsilon}")
        super().__init__(target, sampling=sampling)
        self.epsilon = epsilon

    def propose(self, tokens, K, rng):
        mixed = partial(noisy, self.sampling or Sampling(), self.epsilon)
        return ModelDrafter(self.model, sampling=mixed).propose(tokens, K, rng)


class OracleDrafter(ModelDrafter):
    """The target as its own draft model: every token is accepted, at the target's cost."""
