"""Several candidates for one position: the probability that one of them is accepted, for each rule, in closed form.

A tree gives the target k candidates for a token where a chain gives one. p is the target's distribution and q the
draft's, both [n_vocab]; a rule is a way of drawing candidates together with a way of accepting them. `tree_tokens` in
expected.py computes the tokens per call from the acceptance of each candidate.

    matched                       k draws from q; the target's own draw is accepted if it is among them
    with_replacement              k draws from q, tested in turn, p replaced by the residual after each rejection
                                  (SpecInfer, arXiv:2305.09781, algorithm 2)
    k_seq                         k draws from q, tested against p / rho (SpecTr, arXiv:2310.15141, algorithm 3): for
                                  comparison, since there is no verifier for it here
    optimum                       the most that any rule can accept of k draws from q
    without_replacement           as with_replacement, but no token is drawn twice (Sequoia, arXiv:2402.12374; RSD,
                                  arXiv:2402.14160)
    drawn_then_likeliest          greedy multi-draft: the k - 1 likeliest tokens, and one drawn from the others, which
                                  is tested first (arXiv:2502.18779; for k = 2 the candidates of SpecHub,
                                  arXiv:2411.05289)
    common_random_numbers         the k smallest of E / q, where the target takes the smallest of E / p
    optimum_without_replacement   the most that any rule can accept of k different draws
    likeliest                     the k likeliest tokens of q; the target's own draw is accepted if it is among them

    python -m speculative.theory.candidates     all of them for p = (.2, .2, .4, .2), q = (.1, .1, .1, .7)

"""

import numpy as np

from ..probs import residual
from .expected import overlap
from .optimum import acceptance_rule, common_random_numbers, optimum, optimum_without_replacement


@acceptance_rule
def with_replacement(p, q, k):
    """1 - prod (1 - a_j), a_j = sum min(p_j, q), with p_1 = p and p_(j + 1) = residual(p_j, q).

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
    """overlap(p, q), and the sum over the tokens x, each drawn and rejected with probability max(0, q(x) - p(x)).

    After x, the next candidate comes from q without x, renormalised. Time n_vocab ** k.

    >>> p, q = np.array([0.2, 0.2, 0.4, 0.2]), np.array([0.1, 0.1, 0.1, 0.7])
    >>> [round(without_replacement(p, q, k), 4) for k in (1, 2, 3)]
    [0.5, 0.8667, 0.9333]
    """
    return accepted_in_turn(p, q, k)


def accepted_in_turn(p, q, k):
    if k == 0 or not q.any():
        return 0.0
    accepted, rest = float(overlap(p, q)), residual(p, q)
    if k > 1:
        for x in np.flatnonzero(q > p):
            accepted += float(q[x] - p[x]) * accepted_in_turn(rest, without(q, x), k - 1)
    return accepted


def without(q, tokens):
    """q [n_vocab] with these tokens set to 0, renormalised; zeros if nothing is left."""
    left = q.copy()
    left[tokens] = 0
    return left / left.sum() if left.any() else left


@acceptance_rule
def k_seq(p, q, k):
    """1 - (1 - b)^k with b = sum min(p / rho, q): each candidate x is accepted with probability p(x) / (rho q(x))."""
    return 1 - (1 - overlap(p / k_seq_divisor(p, q, k), q)) ** k


def k_seq_divisor(p, q, k):
    """rho, the smallest number from 1 to k with 1 - (1 - b)^k <= rho b, from which on the residual is not negative."""

    def excess(rho):
        return 1 - (1 - overlap(p / rho, q)) ** k - rho * overlap(p / rho, q)

    low, high = 1.0, float(k)
    if excess(low) <= 0:
        return low
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


@acceptance_rule
def matched(p, q, k):
    """sum p(x) (1 - (1 - q(x))^k): the target's own draw x is among k draws from q."""
    return (p * (1 - (1 - q) ** k)).sum()


@acceptance_rule
def likeliest(p, q, k):
    """The sum of p over the k likeliest tokens of q; of equal ones, those with the lower ids."""
    return p[ranked(q)[:k]].sum()


def ranked(q):
    """Token ids, the most probable first."""
    return np.argsort(-q, kind="stable")


@acceptance_rule
def drawn_then_likeliest(p, q, k):
    """p(A) + sum min(p, q') outside of A, the k - 1 likeliest tokens; q' is q without A, renormalised."""
    top = ranked(q)[: k - 1]
    others = np.ones(len(q), bool)
    others[top] = False
    return p[top].sum() + overlap(p[others], without(q, top)[others])


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
