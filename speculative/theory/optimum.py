"""The most that any rule can accept of k candidates, and what common random numbers accept of them.

p is the target's distribution and q the draft's, both [n_vocab]. No rule with a given way of drawing candidates can do
better than a maximum flow from the sets of candidates to the tokens, and the minimum cut is easy to find: it takes one
sort. What common random numbers accept is an integral over one variable.
Sources: Hu et al., arXiv:2502.18779 (the optimum); Daliri et al., arXiv:2408.07978 (one candidate).
"""

import functools

import numpy as np


def acceptance_rule(fn):
    """fn(p, q, k) with a check of its arguments: two distributions [n_vocab], and a number k of candidates."""

    @functools.wraps(fn)
    def checked(p, q, k):
        p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if p.ndim != 1 or p.shape != q.shape:
            raise ValueError(f"expected p and q of one shape [n_vocab], got {p.shape} and {q.shape}")
        for name, row in (("p", p), ("q", q)):
            if not ((row >= 0).all() and abs(row.sum() - 1) < 1e-6):
                raise ValueError(f"expected {name} to be a distribution, not negative and with sum 1, got {row!s:.100}")
        if not k >= 1 or k != int(k):
            raise ValueError(f"expected a number k of candidates of 1 or more, got {k!r:.100}")
        return float(fn(p, q, int(k)))

    return checked


@acceptance_rule
def optimum(p, q, k):
    """min p(H) + 1 - q(H)^k over sets H of tokens: the most that any lossless rule accepts of k draws from q.

    A rule sends the probability of each set of candidates to tokens in it, at most p(x) to token x; the largest such
    flow is the smallest cut. The best H are the first of the tokens sorted by p / q, so it takes one sort
    (arXiv:2502.18779).
    """
    order = by_ratio(p, q)
    return (prefix_sums(p[order]) + 1 - prefix_sums(q[order]) ** k).min()


@acceptance_rule
def optimum_without_replacement(p, q, k):
    """The same for k different tokens, drawn one after the other: min p(H) + 1 - Q(H), Q(H) = Pr[all of them in H].

    As E / q with exponential E orders the tokens as such draws do, Q(H) is the probability that at least k of H come
    before the first of the others.
    """
    order, k = by_ratio(p, q), min(k, int((q > 0).sum()))
    cuts = [p[order[:n]].sum() + 1 - all_drawn_from(q[order[:n]], q[order[n:]].sum(), k) for n in range(len(order) + 1)]
    return min(cuts)


def all_drawn_from(inside, outside, k):
    """The probability that the first k of E / q are tokens of `inside` (their q); the others have q `outside` in all.

    For k = 2 it is sum_i q_i / (outside + inside) * (inside - q_i) / (outside + inside - q_i), as one may check.
    """
    if (inside > 0).sum() < k:
        return 0.0
    if outside <= 0:
        return 1.0
    # the first of the others comes at time -log(u) / outside: by then a token of H has come with 1 - u^(q / outside)
    return integral(lambda u: 1 - fewer_than(k, 1 - u ** (inside / outside)))


def by_ratio(p, q):
    """Token ids by p / q, the smallest first; a token that is never drafted comes last."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.argsort(np.where(q > 0, p / q, np.inf), kind="stable")


def prefix_sums(row):
    return np.concatenate([[0], np.cumsum(row)])


# ------------------------------------------------------------------------------------------------ common random numbers


@acceptance_rule
def common_random_numbers(p, q, k):
    """Pr[the smallest of E / p is among the k smallest of E / q], E exponential: `Gumbel` with `exact_match`.

    The target takes token j with probability p_j, at a time s = min E / p that is exponential and independent of j.
    Given both, E_i - p_i s is exponential again for every other i, and i comes before j in the draft's order with
    probability 1 - exp(-w_i s), where w_i = max(0, q_i p_j / q_j - p_i). So with u = exp(-s)

        sum_j p_j integral_0^1 Pr[fewer than k of the others come before j | u] du

    which is sum_j p_j / (1 + W), W = sum_i w_i, for k = 1 (arXiv:2408.07978, theorem 3), and for k = 2
    sum_j p_j (1 / (1 + W) + sum_i (1 / (1 + W - w_i) - 1 / (1 + W))).

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> [round(common_random_numbers(p, q, k), 4) for k in (1, 2, 3)]
    [0.4818, 0.8962, 0.9815]
    """
    return sum(p[j] * share_of(smaller_first(p, q, j), k) for j in np.flatnonzero((p > 0) & (q > 0)))


def smaller_first(p, q, j):
    """The w_i > 0 of `common_random_numbers` for token j."""
    with np.errstate(over="ignore"):
        w = np.maximum(q * p[j] / q[j] - p, 0)
    w[j] = 0
    return w[w > 0]


def share_of(w, k):
    """The integral there, for these w: in closed form for k = 1 and 2."""
    none = 1 / (1 + w.sum())
    if k == 1:
        return none
    if k == 2:
        others = prefix_sums(w)[:-1] + prefix_sums(w[::-1])[-2::-1]  # W - w_i, of which nothing cancels
        return none + (1 / (1 + others) - none).sum()
    return integral(lambda u: fewer_than(k, 1 - u**w))


def fewer_than(k, probs):
    """Pr[fewer than k of independent events happen], of these probabilities [n_points, n]: a row for each point."""
    counts = np.zeros((len(probs), k))  # [:, m]: the probability of m so far
    counts[:, 0] = 1
    for happens in probs.T:
        more = counts * happens[:, None]
        counts -= more
        counts[:, 1:] += more[:, :-1]
    return counts.sum(axis=1)


POINTS = np.linspace(-4.2, 4.2, 400)


def integral(function):
    """The integral of function(u [n, 1]) -> [n] over u from 0 to 1: tanh-sinh, made for powers of u at the ends."""
    u = 1 / (1 + np.exp(-np.pi * np.sinh(POINTS)))
    weights = np.pi * np.cosh(POINTS) * u * (1 - u) * (POINTS[1] - POINTS[0])
    return float((weights * function(u[:, None])).sum() / weights.sum())
