"""LOSSY: typical acceptance, which accepts every draft token that is probable enough for the target.

Source: Cai et al. (Medusa), arXiv:2401.10774, section 2.3.1.
"""

from dataclasses import dataclass

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict


@dataclass(frozen=True)
class Typical:
    """LOSSY: accepts a draft token x if p(x) > min(epsilon, delta * exp(-H(p))), H the entropy in nats.

    In a tree it accepts the longest path of such tokens, or the first of several. The token after the accepted ones is
    the target's most probable one. Nothing is sampled. At temperature 0 the output is the target's greedy text.

    Parameters
    ----------
    epsilon, delta
        Thresholds; delta = sqrt(epsilon) is the authors' choice.

    Examples
    --------
    The bias, for a draft token from q = (0.75, 0.25) where the target has p = (0.5, 0.5): any draft token passes.

    >>> from speculative import Draft, exact_distribution
    >>> p, q = np.array([[0.5, 0.5]] * 2), np.array([[0.75, 0.25]])
    >>> def first_token(rng):
    ...     token = int(rng.choice(2, p=q[0]))
    ...     verdict = Typical()(Draft(np.array([token]), q), p, rng)
    ...     return token if verdict.n_accepted else verdict.next_token
    >>> exact_distribution(first_token)
    {0: 0.75, 1: 0.25}
    """

    epsilon: float = 0.09
    delta: float = 0.3
    exactness = "LOSSY"
    trees = True

    def __post_init__(self):
        if not (self.epsilon >= 0 and self.delta >= 0):  # also false for NaN
            raise ValueError(f"expected epsilon and delta of 0 or more, got {self.epsilon} and {self.delta}")

    def __repr__(self):
        return f"Typical(epsilon={self.epsilon}, delta={self.delta}) LOSSY"

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
        paths = [[]]  # paths on which every token is accepted
        for path in paths:  # subtle: the list grows while it is read
            node = path[-1] if path else -1
            p = target_probs[node + 1]
            least = min(self.epsilon, self.delta * np.exp(-entropy(p)))
            paths += [[*path, child] for child in draft.children(node) if p[draft.tokens[child]] > least]
        longest = max(paths, key=len)
        return Verdict(longest, int(np.argmax(target_probs[([-1, *longest])[-1] + 1])))


def entropy(p):
    """-sum p log p of one distribution [n_vocab], in nats."""
    p = p[p > 0]
    return -(p * np.log(p)).sum()
