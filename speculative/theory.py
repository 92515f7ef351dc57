"""What to expect: tokens per call, speedup, the best draft length, from the rate of acceptance and measured costs.

Assumed is that each guess is accepted with the same probability alpha, whatever came before (arXiv:2211.17192, section
3). Real texts are easier and harder by turns, and then no single alpha makes the formulas hold precisely.

The same run has many "rates". In the words of this library, and of others, for alpha = 0.8 and K = 4:

    estimate_alpha          0.80    accepted / (accepted + rounds that end in a rejection)
    Stats.acceptance        0.59    accepted / drafted. llama.cpp: accept %; vLLM: draft acceptance rate
    accepted per round      2.36    gpt-fast: mean accepted
    tokens_per_target_call  3.36    1 + accepted per round. vLLM: mean acceptance length; Spec-Bench: #mean accepted tokens
    acceptance_by_position  0.8, 0.64, 0.51, 0.41    of the rounds that drafted so far. vLLM: per position; NeMo's
                                    is conditional, 0.8 each. Transformers prints none of these

    c           time to draft a token, over that of a target call for one token
    v[m - 1]    time of a target call for m tokens, over that for one

Next: costs.py
"""

import math

import numpy as np


def expected_tokens(alpha, K):
    """Tokens per target call, 1 + alpha + ... + alpha^K (arXiv:2211.17192, equation 1).

    >>> round(expected_tokens(0.8, 4), 2)
    3.36
    """
    return float(sum(alpha**i for i in range(K + 1)))


def speedup(alpha, K, c, v=None):
    """Over plain generation: expected tokens over the cost of a round, K c + v(K + 1) (theorem 3.8; v = 1 there).

    >>> round(speedup(0.8, 5, 0), 2)
    3.69
    """
    return expected_tokens(alpha, K) / (K * c + (v[K] if v is not None else 1.0))


def operations_factor(alpha, K, c_hat):
    """How much more arithmetic than plain generation, for a draft of c_hat times the target's (theorem 3.11).

    >>> round(operations_factor(0.8, 5, 0), 2)
    1.63
    """
    return (K * c_hat + K + 1) / expected_tokens(alpha, K)


def best_K(alpha, c, v=None, most=20):
    """The K from 0 to `most` (or to what v has) with the best speedup; 0 where speculation does not pay.

    >>> [best_K(alpha, 0.1) for alpha in (0.05, 0.5, 0.9)]
    [0, 2, 10]
    """
    return max(range(len(v) if v is not None else most + 1), key=lambda K: speedup(alpha, K, c, v))


def overlap(target_probs, draft_probs):
    """sum_x min(p(x), q(x)) of each row [n, n_vocab]: the probability that a guess there is accepted.

    Its mean over contexts is alpha (corollary 3.6): the estimate with the least noise, as it needs no draws.
    """
    return np.minimum(target_probs, draft_probs).sum(axis=-1)


def estimate_alpha(history):
    """(alpha, low, high) from rounds of (drafted, accepted): A / (A + J) with a 95 % interval.

    A guesses were accepted, and J rounds ended in a rejection. Guesses behind a rejection were never tested, which is
    why accepted / drafted is less. The interval is Wilson's (1927). With nothing tested it is (nan, 0, 1).
    """
    n_accepted = sum(accepted for _, accepted in history)
    n = n_accepted + sum(accepted < drafted for drafted, accepted in history)
    if n == 0:
        return math.nan, 0.0, 1.0
    alpha, z = n_accepted / n, 1.959964
    middle, spread = alpha + z**2 / (2 * n), z * math.sqrt(alpha * (1 - alpha) / n + z**2 / (4 * n**2))
    return alpha, (middle - spread) / (1 + z**2 / n), (middle + spread) / (1 + z**2 / n)
