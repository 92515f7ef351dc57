"""Several candidates for one position: the probability that one of them is accepted, for each rule, in closed form.

A tree gives the target k candidates for a token where a chain gives one. p is the target's distribution and q the
draft's, both [n_vocab]; a rule is a way of drawing candidates together with a way of accepting them. `tree_tokens` in
shapes.py computes the tokens per call from the acceptance of each candidate.

    python -m speculative.theory.candidates     all of them for p = (.2, .2, .4, .2), q = (.1, .1, .1, .7)
"""

import functools

import numpy as np

from ..probs import residual
from .expected import overlap


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
def with_replacement(p, q, k):
    """k draws from q, tested in turn, p replaced by the residual after each rejection: 1 - prod (1 - a_j).

    a_j = sum min(p_j, q), with p_1 = p and p_(j + 1) = residual(p_j, q) (SpecInfer, arXiv:2305.09781, algorithm 2).

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> [round(with_replacement(p, q, k), 4) for k in (1, 2, 3)]
    [0.5, 0.65, 0.755]
    """
    missed = 1.0
    for _ in range(k):
        missed *= 1 - overlap(p, q)
        p = residual(p, q)
    return 1 - missed


@acceptance_rule
def without_replacement(p, q, k):
    """The same, but no token is drawn twice (Sequoia, arXiv:2402.12374; RSD, arXiv:2402.14160). Time n_vocab ** k.

    overlap(p, q), and the sum over the tokens x, each drawn and rejected with probability max(0, q(x) - p(x)); after x,
    the next candidate comes from q without x, renormalised.

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> [round(without_replacement(p, q, k), 4) for k in (1, 2, 3)]
    [0.5, 0.8667, 0.9333]
    """
    accepted, rest = float(overlap(p, q)), residual(p, q)
    for x in np.flatnonzero(q > p) if k > 1 else ():
        accepted += float(q[x] - p[x]) * without_replacement.__wrapped__(rest, without(q, x), k - 1)
    return accepted


def without(q, tokens):
    """q [n_vocab] with these tokens set to 0, renormalised; zeros if nothing is left."""
    left = q.copy()
    left[tokens] = 0
    return left / left.sum() if left.any() else left


@acceptance_rule
def k_seq(p, q, k):
    """k draws from q, each accepted with probability p(x) / (rho q(x)): 1 - (1 - b)^k with b = sum min(p / rho, q).

    For comparison: there is no verifier for it here (SpecTr, arXiv:2310.15141, algorithm 3).
    """
    return 1 - (1 - overlap(p / k_seq_divisor(p, q, k), q)) ** k


def k_seq_divisor(p, q, k):
    """rho, the smallest number from 1 to k with 1 - (1 - b)^k <= rho b, from which on the residual is not negative."""
    low, high = 1.0, float(k)
    for _ in range(100):
        rho = (low + high) / 2
        b = overlap(p / rho, q)
        low, high = (rho, high) if 1 - (1 - b) ** k > rho * b else (low, rho)
    return high


@acceptance_rule
def matched(p, q, k):
    """sum p(x) (1 - (1 - q(x))^k): the target's own draw x is accepted if it is among k draws from q."""
    return (p * (1 - (1 - q) ** k)).sum()


@acceptance_rule
def likeliest(p, q, k):
    """The sum of p over the k likeliest tokens of q: the target's own draw is accepted if it is among them."""
    return p[ranked(q)[:k]].sum()


def ranked(q):
    """Token ids, the most probable first."""
    return np.argsort(-q, kind="stable")


@acceptance_rule
def drawn_then_likeliest(p, q, k):
    """A, the k - 1 likeliest tokens, and one drawn from the others, tested first: p(A) + sum min(p, q') outside of A.

    q' is q without A, renormalised. Greedy multi-draft (arXiv:2502.18779); for k = 2 SpecHub's (arXiv:2411.05289).
    """
    top = ranked(q)[: k - 1]
    others = np.ones(len(q), bool)
    others[top] = False
    return p[top].sum() + overlap(p[others], without(q, top)[others])


# ------------------------------------------------------------------------------------------------ the optimum


@acceptance_rule
def optimum(p, q, k):
    """min p(H) + 1 - q(H)^k over sets H of tokens: the most that any lossless rule accepts of k draws from q.

    A rule sends the probability of each set of candidates to tokens in it, at most p(x) to token x; the largest such
    flow is the smallest cut. The best H are the first of the tokens sorted by p / q, so it takes one sort
    (arXiv:2502.18779).
    """
    order = by_ratio(p, q)
    inside_p, inside_q = (np.concatenate([[0], np.cumsum(row[order])]) for row in (p, q))
    return (inside_p + 1 - inside_q**k).min()


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


# ------------------------------------------------------------------------------------------------ common random numbers


@acceptance_rule
def common_random_numbers(p, q, k):
    """Pr[the smallest of E / p is among the k smallest of E / q], E exponential: `Gumbel` with `exact_match`.

    The target takes token j with probability p_j, at a time s = min E / p that is exponential and independent of j.
    Given both, E_i - p_i s is exponential again for every other i, and i comes before j in the draft's order with
    probability 1 - exp(-w_i s), where w_i = max(0, q_i p_j / q_j - p_i). So with u = exp(-s)

        sum_j p_j integral_0^1 Pr[fewer than k of the others come before j | u] du

    which is sum_j p_j / (1 + W), W = sum_i w_i, for k = 1 (arXiv:2408.07978, theorem 3).

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> [round(common_random_numbers(p, q, k), 4) for k in (1, 2, 3)]
    [0.4818, 0.8962, 0.9815]
    """
    accepted = 0.0
    for j in np.flatnonzero((p > 0) & (q > 0)):
        with np.errstate(over="ignore"):
            w = np.maximum(q * p[j] / q[j] - p, 0)
        w[j] = 0
        accepted += p[j] * integral(lambda u, w=w[w > 0]: fewer_than(k, 1 - u**w))
    return accepted


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


# ------------------------------------------------------------------------------------------------ all of them


RULES = {
    "the target's draw among k draws from q": matched,
    "k draws from q, one by one (SpecInfer)": with_replacement,
    "k draws from q, k-SEQ (SpecTr)": k_seq,
    "k draws from q, the optimum": optimum,
    "k different draws, one by one (Sequoia)": without_replacement,
    "one drawn, then the likeliest (greedy)": drawn_then_likeliest,
    "common random numbers, k smallest E / q": common_random_numbers,
    "k different draws, the optimum": optimum_without_replacement,
    "the k likeliest": likeliest,
}
P, Q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])


def table(p=P, q=Q, most=3):
    """The acceptance of every rule for 1 to `most` candidates, as text."""
    lines = [f"{'':42}" + "".join(f"k = {k:<6}" for k in range(1, most + 1))]
    for name, rule in RULES.items():
        lines.append(f"{name:42}" + "".join(f"{rule(p, q, k):<10.4f}" for k in range(1, most + 1)))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    print(f"p = {P.tolist()}, q = {Q.tolist()}: the probability that one of k candidates is accepted\n")
    print(table())
