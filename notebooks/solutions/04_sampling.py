"""The exercises of notebook 04."""

import numpy as np


def my_probs(logits, temperature):
    """Probabilities [n_vocab] float64: the softmax of logits / temperature.

    logits : array [n_vocab] float32, of any size: thousands must not overflow.
    temperature : float, 0 or more. 0 puts all probability on the largest logit, on the
        first of equal ones.

    For logits log(1), log(3) it is (0.25, 0.75) at temperature 1, and (0.1, 0.9) at 0.5.
    """
    # With the largest logit subtracted, the largest exponential is exp(0) = 1.
    z = np.asarray(logits, np.float64)
    if temperature == 0:
        return np.eye(len(z))[np.argmax(z)]
    p = np.exp((z - z.max()) / temperature)
    return p / p.sum()


def my_top_p(probs, top_p):
    """Probabilities [n_vocab] float64 without the tail, renormalised, in the same order.

    probs : array [n_vocab] float64, in any order.
    top_p : float above 0, at most 1. The most probable tokens are kept until their sum
        reaches it.

    For (0.1, 0.4, 0.2, 0.3) and top_p = 0.6 it is (0, 4/7, 0, 3/7): the token that
    crosses the line stays.
    """
    # A token is kept if the sum before it is below top_p, so the one that crosses top_p is kept.
    order = np.argsort(-probs, kind="stable")
    before = np.cumsum(probs[order]) - probs[order]
    kept = np.zeros(len(probs))
    kept[order[before < top_p]] = probs[order[before < top_p]]
    return kept / kept.sum()


def my_draw(probs, u):
    """The token id (int) that u selects: the first with cumulative probability above u.

    probs : array [n_vocab] with zeros anywhere; its sum is 1 up to rounding.
    u : float, 0 <= u < 1.

    A token of probability 0 is never selected. For (0.5, 0, 0.5) the result is 0 for u
    below 0.5, else 2.
    """
    # u is scaled by the last sum. If rounding lifts it to that sum, the last possible token is drawn.
    ends = np.cumsum(probs, dtype=np.float64)
    last = np.flatnonzero(probs)[-1]
    return int(min(np.searchsorted(ends, u * ends[-1], side="right"), last))
