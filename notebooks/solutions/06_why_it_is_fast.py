"""The exercises of notebook 06."""

import math


def my_expected_tokens(alpha, K):
    """The i-th draft token is accepted with probability alpha^i; the target's own token always follows: alpha^0."""
    return float(sum(alpha**i for i in range(K + 1)))


def my_best_K(alpha, c, v):
    """Tokens per round over its cost; `max` looks at every K and takes the smaller of two equally good ones."""
    return max(range(len(v)), key=lambda K: my_expected_tokens(alpha, K) / (K * c + v[K]))


def my_alpha(rounds):
    """A round tested its accepted draft tokens and, if those were not all, the one that was rejected."""
    accepted = sum(n for _, n in rounds)
    rejected = sum(n < k for k, n in rounds)
    return accepted / (accepted + rejected) if accepted + rejected else math.nan
