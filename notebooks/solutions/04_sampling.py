"""The exercises of notebook 04."""

import numpy as np


def my_probs(logits, temperature):
    """With the largest logit subtracted, the largest exponential is exp(0) = 1."""
    z = np.asarray(logits, np.float64)
    if temperature == 0:
        return np.eye(len(z))[np.argmax(z)]
    p = np.exp((z - z.max()) / temperature)
    return p / p.sum()


def my_top_p(probs, top_p):
    """A token is kept if the sum before it is below top_p, so the one that crosses top_p is kept."""
    order = np.argsort(-probs, kind="stable")
    before = np.cumsum(probs[order]) - probs[order]
    kept = np.zeros(len(probs))
    kept[order[before < top_p]] = probs[order[before < top_p]]
    return kept / kept.sum()


def my_draw(probs, u):
    """u is scaled by the last sum. If rounding lifts it to that sum, the last possible token is drawn."""
    ends = np.cumsum(probs, dtype=np.float64)
    last = np.flatnonzero(probs)[-1]
    return int(min(np.searchsorted(ends, u * ends[-1], side="right"), last))
