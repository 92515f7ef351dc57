"""LOSSY: typical acceptance, which keeps every guess that is likely enough for the target.

Source: Cai et al. (Medusa), arXiv:2401.10774, section 2.3.1.
"""

from dataclasses import dataclass

import numpy as np

from ..interfaces import Verdict


@dataclass(frozen=True)
class Typical:
    """LOSSY: accepts a guess x where p(x) > min(epsilon, delta * exp(-H(p))), H the entropy in nats.

    The token behind the accepted guesses is the target's likeliest. Nothing is drawn. At temperature 0 it gives the
    target's greedy text.

    Parameters
    ----------
    epsilon, delta : float
        Thresholds; delta = sqrt(epsilon) is the authors' choice.

    Examples
    --------
    The bias, for a guess from q = (0.75, 0.25) where the target has p = (0.5, 0.5): whatever is guessed, passes.

    >>> from speculative import Draft, exact_law
    >>> p, q = np.array([[0.5, 0.5]] * 2), np.array([[0.75, 0.25]])
    >>> def first_token(rng):
    ...     guess = int(rng.choice(2, p=q[0]))
    ...     verdict = Typical()(Draft(np.array([guess]), q), p, rng)
    ...     return guess if verdict.n_accepted else verdict.next_token
    >>> exact_law(first_token)
    {0: 0.75, 1: 0.25}
    """

    epsilon: float = 0.09
    delta: float = 0.3
    exactness = "LOSSY"

    def __repr__(self):
        return f"Typical(epsilon={self.epsilon}, delta={self.delta}) LOSSY"

    def __call__(self, draft, target_probs, rng):
        n_accepted = 0
        for token, p in zip(draft.tokens, target_probs):
            if not p[token] > min(self.epsilon, self.delta * np.exp(-entropy(p))):
                break
            n_accepted += 1
        return Verdict(n_accepted, int(np.argmax(target_probs[n_accepted])))


def entropy(p):
    """-sum p log p of one distribution [n_vocab], in nats."""
    p = p[p > 0]
    return -(p * np.log(p)).sum()
