"""Expected tokens per target call, speedup and best draft length, from the acceptance and measured costs.

The first part uses one number alpha: each draft token is accepted with this probability, independently of the others
(arXiv:2211.17192, section 3). The second is for a given text: real texts have easier and harder parts, and
`acceptance_of` and `expected_time` do not assume a constant alpha. docs/glossary.md distinguishes the many "rates".

    c           time to draft a token, relative to an autoregressive step
    v[m - 1]    time of a round for m tokens, without drafting, relative to an autoregressive step; v[0] = 1
"""

import math

import numpy as np


def expected_tokens(alpha, K):
    """Tokens per target call, 1 + alpha + ... + alpha^K (arXiv:2211.17192, equation 1).

    Here and below, alpha (0 to 1) and K (whole numbers of 0 or more) may be arrays, which are broadcast.

    >>> round(expected_tokens(0.8, 4), 2)
    3.36
    """
    alpha, K = check_alpha(alpha), check_K(K)
    i = np.arange(K.max(initial=0) + 1)
    return plain(np.where(i <= K[..., None], alpha[..., None] ** i, 0).sum(axis=-1))


def speedup(alpha, K, c, v=None):
    """Speedup over the target alone: expected tokens / the cost of a round, K c + v(K + 1) (theorem 3.8, with v = 1).

    >>> round(speedup(0.8, 5, 0), 2)
    3.69
    >>> speedup(np.array([0.6, 0.8]), 5, 0).round(2)
    array([2.38, 3.69])
    """
    K = check_K(K)
    if v is not None and len(v) <= K.max():
        raise ValueError(
            f"expected v with the cost of a pass over each of 1 to K + 1 = {K.max() + 1} tokens, got {len(v)}"
        )
    verification = 1.0 if v is None else np.asarray(v)[K]
    return plain(expected_tokens(alpha, K) / (np.multiply(K, c) + verification))


def best_K(alpha, c, v=None, most=20):
    """The K from 0 to `most` (or len(v) - 1) with the best speedup; 0 if speculation does not pay, or alpha is NaN.

    >>> [best_K(alpha, 0.1) for alpha in (0.05, 0.5, 0.9)]
    [0, 2, 10]
    """
    K = np.arange(most + 1 if v is None else len(v))
    return 0 if np.isnan(alpha) else int(np.argmax(speedup(alpha, K, c, v)))


def check_alpha(alpha):
    """alpha as an array. ValueError unless it is from 0 to 1; NaN means unknown and stays."""
    alpha = np.asarray(alpha, dtype=np.float64)
    if ((alpha < 0) | (alpha > 1)).any():
        raise ValueError(f"expected acceptance probabilities from 0 to 1, got {alpha.min():g} to {alpha.max():g}")
    return alpha


def check_K(K):
    """K as an array. ValueError unless it contains only whole numbers of 0 or more."""
    K = np.asarray(K)
    if K.dtype.kind not in "iu" or (K < 0).any():
        raise ValueError(f"expected draft lengths K of 0 or more, whole numbers, got {K!s:.100}")
    return K


def plain(array):
    """An array without dimensions as a Python number; any other array unchanged."""
    return array.item() if np.ndim(array) == 0 else array


# ------------------------------------------------------------------------------------------------ alpha


def overlap(target_probs, draft_probs):
    """sum_x min(p(x), q(x)) of each row [n, n_vocab]: the probability that a draft token there is accepted.

    Its mean over contexts is alpha (corollary 3.6), estimated with the least noise, as no draws are used.
    """
    return np.minimum(target_probs, draft_probs).sum(axis=-1)


def estimate_alpha(n_accepted, n_rejected):
    """(alpha, low, high): A / (A + J), for A accepted tokens and J rounds that end in a rejection; a 95 % interval.

    Tokens after a rejection were never tested, which is why accepted / drafted is lower. The interval is Wilson's
    (1927), for independent tests. Without any test the result is (nan, 0, 1).

    >>> [round(number, 3) for number in estimate_alpha(80, 20)]
    [0.8, 0.711, 0.867]
    """
    n, z = n_accepted + n_rejected, 1.959964
    if not n:
        return math.nan, 0.0, 1.0
    alpha = float(n_accepted / n)
    middle, spread = alpha + z**2 / (2 * n), z * math.sqrt(alpha * (1 - alpha) / n + z**2 / (4 * n**2))
    low, high = (middle - spread) / (1 + z**2 / n), (middle + spread) / (1 + z**2 / n)
    return alpha, max(0.0, float(low)), min(1.0, float(high))  # rounding may overshoot: -1e-17 would be shown as -0.00


# ------------------------------------------------------------------------------------------------ a given text


def acceptance_of(tokens, target_probs, draft_probs):
    """min(1, q(x) / p(x)) [n] of tokens x [n] drawn by the target; p, q [n, n_vocab] are the rows at their positions.

    With rejection sampling a token x comes from an accepted draft token with probability min(p(x), q(x)), and in either
    way with p(x). So given x, this is the probability that it was drafted and accepted, if its position had a draft
    token. Its mean over x drawn from p is the overlap. Given the text, the positions are independent if q depends on
    the text alone.
    """
    rows = np.arange(len(tokens))
    return np.minimum(1, draft_probs[rows, tokens] / target_probs[rows, tokens])


def expected_time(acceptance, K, c=0.0, v=None):
    """The expected time to generate a text with drafts of K tokens, in autoregressive steps.

    With c = 0 and v = 1 it is the number of target calls. T(i) is the time from token i on. A round drafts
    k = min(K, n - i - 1) tokens. The j-th is the first one rejected with probability
    P(j) = a_i ... a_(i + j - 2) (1 - a_(i + j - 1)), and the round then adds j tokens:

        T(i) = k c + v(k + 1) + sum_j P(j) T(i + j) + a_i ... a_(i + k - 1) T(i + k + 1)

    Parameters
    ----------
    acceptance : array [n]
        a_i: the probability that a draft token is accepted at the i-th position of the text (see `acceptance_of`).
    K, c, v
        As in `speedup`.

    Examples
    --------
    Ten tokens, K = 4: two rounds if every draft token is accepted, ten if none is.

    >>> expected_time([1.0] * 10, K=4), expected_time([0.0] * 10, K=4)
    (2.0, 10.0)
    """
    n = len(acceptance)
    check_alpha(acceptance)
    check_K(K)
    times = [0.0] * (n + 1)
    for i in range(n - 1, -1, -1):
        k, reached = min(K, n - i - 1), 1.0
        times[i] = k * c + (v[k] if v is not None else 1.0)
        for j in range(k):
            times[i] += reached * (1 - acceptance[i + j]) * times[i + j + 1]
            reached *= float(acceptance[i + j])
        times[i] += reached * times[i + k + 1]
    return times[0]


def tree_tokens(parents, weights):
    """Tokens per call of a tree, if the b-th candidate of any node is the accepted one with probability weights[b].

    parents [n] int, with parents[i] < i and -1 for the end of the text. A rank past the end of `weights` has weight 0.
    Source: Chen et al. (Sequoia), arXiv:2402.12374, section 3.1.

    >>> tree_tokens([-1, 0, 1], [0.5])  # a chain of three, 1 + 1/2 + 1/4 + 1/8
    1.875
    >>> tree_tokens([-1, -1, 0], [0.5, 0.25])
    2.0
    """
    n_children = [0] * (len(parents) + 1)  # the children of the text, and of each node
    reached = [1.0]  # the probabilities that the text and each node are reached
    for parent in parents:
        rank = n_children[parent + 1]
        n_children[parent + 1] += 1
        reached.append(reached[parent + 1] * (weights[rank] if rank < len(weights) else 0.0))
    return float(sum(reached))
