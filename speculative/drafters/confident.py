"""Stopping to draft when the draft itself is unsure.

The guess of low probability is kept, and the draft ends behind it. To throw it away would be wrong: what is left is
then no draw from the row (see the museum, "confidence stop that throws the token away").
Source: Zhang et al., Draft & Verify, arXiv:2309.08168; Hugging Face's assisted generation (2024) keeps the guess, too.
"""

import numpy as np

from ..interfaces import Draft


class Confident:
    """Drafts with `drafter`, and ends behind the first guess x with q(x) < threshold.

    Parameters
    ----------
    drafter : Drafter
    threshold : float
        From 0, never, to 1, after one guess.
    """

    def __init__(self, drafter, threshold=0.4):
        if not 0 <= threshold <= 1:
            raise ValueError(f"expected a threshold from 0 to 1, got {threshold}")
        self.drafter, self.threshold = drafter, threshold

    def propose(self, tokens, K, rng):
        tokens, drafts = list(tokens), [self.drafter.propose(tokens, 0, rng)]
        for _ in range(K):
            drafts.append(self.drafter.propose(tokens, 1, rng))
            tokens += drafts[-1].tokens.tolist()
            if not len(drafts[-1].tokens) or drafts[-1].probs[0, tokens[-1]] < self.threshold:
                break
        return Draft(np.concatenate([d.tokens for d in drafts]), np.concatenate([d.probs for d in drafts]))
