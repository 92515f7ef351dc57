import numpy as np

from speculative import Verdict, residual, sample_token


# Exercise 1. Only tokens of positive probability take part; the smallest ratio wins.
def draw_with(noise, probs):
    """The token id (int) at a position, drawn with the random numbers of that position.

    noise : [n_vocab] float64, independent exponential numbers, all above 0.
    probs : [n_vocab] float64, with sum 1; some may be 0, and such a token is never drawn.

    draw_with([0.2, 0.9], [0.25, 0.75]) is 0: 0.8 is less than 1.2.
    """
    possible = np.flatnonzero(np.asarray(probs) > 0)
    return int(possible[np.argmin(np.asarray(noise)[possible] / np.asarray(probs)[possible])])


# Exercise 2. min(q, p / l) is kept; the rest of the mass is filled in from max(0, p - l q), normalised.
def distribution_by_hand(p, q, lenience):
    """The distribution under Lenient(lenience), and how often a draft token is accepted.

    p, q : [n_vocab] float64, the distributions of target and draft; they differ and are
        nowhere 0.
    lenience : float, the l above, 0 < l <= 1. With l = 1 the distribution is p.

    Returns (distribution [n_vocab], accepted). For p = (0.5, 0.5), q = (0.75, 0.25) and
    l = 0.8 they are (0.625, 0.375) and 0.875.
    """
    kept = np.minimum(q, p / lenience)
    return kept + (1 - kept.sum()) * residual(p, lenience * q), kept.sum()


# Exercise 3. Go through all prefixes, one uniform number each; remember the longest that passes, and its ratio.
def my_block(draft, target_probs, rng):
    """Accept the longest prefix of the draft that passes, and add one token.

    draft.tokens : [k] int64, the draft tokens; k may be 0.
    draft.probs : [k, n_vocab] float64, q.
    target_probs : [k + 1, n_vocab] float64, p before each draft token and after the last.
    rng : rng.random() is a uniform number from [0, 1).

    Returns speculative.Verdict(n_accepted, next_token). Use speculative.residual(a, b),
    which is max(0, a - b) normalised, and speculative.sample_token(probs, rng).
    """
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
