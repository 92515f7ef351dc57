"""LOSSY: rejection sampling with the draft's probabilities scaled down, so that more draft tokens pass.

Source: Leviathan et al., arXiv:2211.17192, appendix A.5.
"""

from dataclasses import dataclass

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict
from ..logits.probs import residual, sample_token


@dataclass(frozen=True)
class Lenient:
    """LOSSY: accepts a draft token x with probability min(1, p(x) / (l q(x))); its probability is at most p(x) / l.

    Parameters
    ----------
    l
        The lenience, 0 < l <= 1, otherwise ValueError. With l = 1 it is `rejection`, and exact.

    Examples
    --------
    The bias, for a draft token from q = (0.75, 0.25) where the target has p = (0.5, 0.5):

    >>> import numpy as np
    >>> from speculative import Draft, exact_distribution
    >>> p, q = np.array([[0.5, 0.5]] * 2), np.array([[0.75, 0.25]])
    >>> def first_token(rng, l):
    ...     token = int(rng.choice(2, p=q[0]))
    ...     verdict = Lenient(l)(Draft(np.array([token]), q), p, rng)
    ...     return token if verdict.n_accepted else verdict.next_token
    >>> {l: exact_distribution(lambda rng: first_token(rng, l))[0] for l in (1, 0.8, 0.5)}
    {1: 0.5, 0.8: 0.625, 0.5: 0.75}
    """

    l: float = 0.5  # noqa: E741, the paper's letter
    draws = "tested"

    @property
    def exactness(self) -> str:
        """LOSSY, unless l = 1."""
        return "exact" if self.l == 1 else "LOSSY"

    def __post_init__(self):
        if not 0 < self.l <= 1:
            raise ValueError(f"expected a lenience l above 0 and at most 1, got {self.l}")

    def __repr__(self):
        return f"Lenient(l={self.l})" + " LOSSY" * (self.exactness == "LOSSY")

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
        for i, token in enumerate(draft.tokens):
            p, lowered = target_probs[i], self.l * draft.probs[i]
            if not rng.random() * lowered[token] < p[token]:
                return Verdict(i, sample_token(residual(p, lowered), rng))
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))
