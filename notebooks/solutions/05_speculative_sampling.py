"""The exercises of notebook 05."""

import numpy as np

from speculative import Verdict, residual, sample_token


def chance_to_be_kept(p, q):
    """q(x) min(1, p(x) / q(x)) = min(p(x), q(x)), and the words add up."""
    return float(np.minimum(p, q).sum())


def my_residual(p, q):
    """Where nothing is missing, nothing is ever rejected, and p is as good an answer as any."""
    missing = np.maximum(p - q, 0)
    return missing / missing.sum() if missing.any() else p


def my_verifier(draft, target_probs, rng):
    """The first rejection ends the round; behind it, the guesses follow a text that is not the text any more."""
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if rng.random() * q[x] >= p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))
