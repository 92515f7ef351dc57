"""Drafts of a known quality, for lessons: the target itself, and the target with so much noise.

With NoisyDrafter(target, epsilon) a share of about epsilon of the guesses is rejected: the overlap of p with
q = (1 - epsilon) p + epsilon / n_vocab is 1 - epsilon TV(p, uniform).
"""

from ..probs import Sampling
from .model import ModelDrafter


def NoisyDrafter(target, epsilon, *, sampling=Sampling()):
    """A `ModelDrafter` on the target, whose distribution is mixed with a share of epsilon of equal probabilities.

    Parameters
    ----------
    target : LanguageModel
    epsilon : float
        From 0, the target itself, to 1, a blind guess.
    sampling : Sampling
        The target's.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"expected an epsilon from 0 to 1, got {epsilon}")

    def noisy(logits, tokens):
        return (1 - epsilon) * sampling(logits, tokens) + epsilon / target.n_vocab

    return ModelDrafter(target, sampling=noisy)


def OracleDrafter(target, *, sampling=Sampling()):
    """The target as its own draft: every guess is accepted, at the target's own cost."""
    return ModelDrafter(target, sampling=sampling)
