"""The exercises of notebook 06."""

import math


def my_expected_tokens(alpha, K):
    """The average number of tokens per call of the target (float).

    alpha : float from 0 to 1, the probability that a draft token is accepted, whatever
        came before.
    K : int, draft tokens per round, 0 or more.

    A round ends at the first rejection. The target adds one token to the accepted ones.
    """
    # The i-th draft token is accepted with probability alpha^i; the target's own token always follows: alpha^0.
    return float(sum(alpha**i for i in range(K + 1)))


def my_best_K(alpha, c, v):
    """The number of draft tokens per round with the largest speedup (int).

    The speedup is E(alpha, K) / (K c + v(K + 1)).

    alpha : float
    c : float, the time to draft one token, over that of an autoregressive step.
    v : sequence of float, v[m - 1] is the time of the target's pass for m tokens, over
        that of a step.

    K ranges from 0 (no draft, speedup 1) to the largest K for which v has an entry.
    """
    # Tokens per round over its cost; `max` looks at every K and takes the smaller of two equally good ones.
    return max(range(len(v)), key=lambda K: my_expected_tokens(alpha, K) / (K * c + v[K]))


def my_alpha(rounds):
    """An estimate of the probability that a draft token is accepted (float).

    It is nan if none was tested.

    rounds : list of (drafted, accepted), int: a round tests its draft tokens up to the
        first rejection.

    For [(4, 4), (4, 2), (4, 0)] it is 6 / 8: six draft tokens were accepted, two were
    rejected, four never tested.
    """
    # A round tested its accepted draft tokens and, if those were not all, the one that was rejected.
    accepted = sum(n for _, n in rounds)
    rejected = sum(n < k for k, n in rounds)
    return accepted / (accepted + rejected) if accepted + rejected else math.nan
