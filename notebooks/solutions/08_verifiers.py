import numpy as np

from speculative import Verdict, residual, sample_token


# Exercise 1. Only tokens of positive probability take part; the smallest ratio wins.
def draw_with(noise, probs):
    possible = np.flatnonzero(np.asarray(probs) > 0)
    return int(possible[np.argmin(np.asarray(noise)[possible] / np.asarray(probs)[possible])])


# Exercise 2. min(q, p / l) is kept; the rest of the mass is filled in from max(0, p - l q), normalised.
def distribution_by_hand(p, q, lenience):
    kept = np.minimum(q, p / lenience)
    return kept + (1 - kept.sum()) * residual(p, lenience * q), kept.sum()


# Exercise 3. Go through all prefixes, one uniform number each; remember the longest that passes, and its ratio.
def my_block(draft, target_probs, rng):
    k, longest, ratio_there, ratio = len(draft.tokens), 0, 1.0, 1.0
    for i, token in enumerate(draft.tokens, 1):
        ratio = min(1.0, ratio * target_probs[i - 1, token] / draft.probs[i - 1, token])
        passes = ratio
        if i < k and ratio < 1:
            excess = np.maximum(ratio * target_probs[i] - draft.probs[i], 0).sum()
            passes = excess / (excess + 1 - ratio)
        if rng.random() < passes:
            longest, ratio_there = i, ratio
    if longest == k:
        return Verdict(k, sample_token(target_probs[k], rng))
    rest = residual(ratio_there * target_probs[longest], draft.probs[longest])
    return Verdict(longest, sample_token(rest, rng))
