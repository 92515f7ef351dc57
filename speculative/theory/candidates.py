"""Several candidates for one position: the probability that one of them is accepted, for each rule, in closed form.

A tree offers the target k candidates for a token where a chain offers one. p is the target's distribution and q the
draft's, both [n_vocab] float64; a rule is a way of drawing candidates together with a way of accepting them.
`tree_tokens` (expected.py) computes the tokens per call from the acceptance of each candidate.
"""

import numpy as np

from ..logits.probs import residual
from .expected import overlap


def with_replacement(p, q, k):
    """k draws from q, tested one by one, p replaced by the residual after each rejection: 1 - prod (1 - a_j).

    a_j = sum min(p_j, q), with p_1 = p and p_(j + 1) = residual(p_j, q) (SpecInfer, arXiv:2305.09781, algorithm 2).

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> np.round([with_replacement(p, q, k) for k in (1, 2, 3)], 4)
    array([0.5  , 0.65 , 0.755])
    """
    missed = 1.0
    for _ in range(k):
        missed *= 1 - overlap(p, q)
        p = residual(p, q)
    return 1 - missed


def without_replacement(p, q, k):
    """The same, but no token is drawn twice (Sequoia, arXiv:2402.12374; RSD, arXiv:2402.14160). Time n_vocab ** k.

    overlap(p, q), plus a sum over the tokens x. Each is drawn and rejected with probability max(0, q(x) - p(x)); after
    it, the next candidate comes from q without x, renormalised.

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> np.round([without_replacement(p, q, k) for k in (1, 2, 3)], 4)
    array([0.5   , 0.8667, 0.9333])
    """
    accepted, rest = overlap(p, q), residual(p, q)
    for x in np.flatnonzero(q > p) if k > 1 else ():
        accepted += (q[x] - p[x]) * without_replacement(rest, without(q, x), k - 1)
    return accepted


def without(q, tokens):
    """q [n_vocab] with these tokens set to 0, renormalised; zeros if nothing is left."""
    left = q.copy()
    left[tokens] = 0
    return left / left.sum() if left.any() else left


def k_seq_divisor(p, q, k):
    """rho of k-SEQ, which accepts each of k draws with probability p(x) / (rho q(x)) (SpecTr, arXiv:2310.15141).

    The smallest number from 1 to k with 1 - (1 - b)^k <= rho b and b = sum min(p / rho, q): the residual is then not
    negative.
    """
    low, high = 1.0, float(k)
    for _ in range(100):
        rho = (low + high) / 2
        b = overlap(p / rho, q)
        low, high = (rho, high) if 1 - (1 - b) ** k > rho * b else (low, rho)
    return high


def most_likely(p, q, k):
    """The sum of p over the k most likely tokens of q: the target's own draw is accepted if it is among them."""
    return p[ranked(q)[:k]].sum()


def ranked(q):
    """Token ids, the most probable first."""
    return np.argsort(-q, kind="stable")


def drawn_then_most_likely(p, q, k):
    """A, the k - 1 most likely tokens, and one drawn from the others, tested first: p(A) + sum min(p, q') outside A.

    q' is q without A, renormalised. Greedy multi-draft (arXiv:2502.18779); for k = 2 it is SpecHub (arXiv:2411.05289).
    """
    top = ranked(q)[: k - 1]
    others = np.ones(len(q), bool)
    others[top] = False
    return p[top].sum() + overlap(p[others], without(q, top)[others])


def optimum(p, q, k):
    """min p(H) + 1 - q(H)^k over sets H of tokens: the most that any lossless rule accepts of k draws from q.

    A rule sends the probability of each set of candidates to tokens in it, at most p(x) to token x; the largest such
    flow is the smallest cut. The best H are the first of the tokens sorted by p / q: one sort (arXiv:2502.18779).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(np.where(q > 0, p / q, np.inf), kind="stable")
    inside_p, inside_q = (np.concatenate([[0], np.cumsum(row[order])]) for row in (p, q))
    return (inside_p + 1 - inside_q**k).min()


P, Q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])  # a pair on which the rules differ a lot
