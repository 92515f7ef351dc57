"""Drafting with a smaller language model, the original way.

Every drafter that draws its guesses is this one, with another model in it or another sampling: see early_exit.py,
ngram.py and dials.py.
Sources: arXiv:2211.17192, algorithm 1, step 1; the threshold: Zhang et al., Draft & Verify, arXiv:2309.08168, where
the guess stays in the draft, as it must.
Next: ../verifiers/rejection.py
"""

import numpy as np

from ..interfaces import Draft
from ..probs import Sampling, sample_token


class ModelDrafter:
    """Draws each guess from `model`, after the text and the guesses before it.

    Parameters
    ----------
    model : LanguageModel
        With the target's vocabulary.
    sampling : Sampling
        Any will do without a change of the output's law. The target's own makes for the most acceptance.
    threshold : float
        The draft ends behind the first guess to which the model gives less than this probability (at temperature 1,
        whatever the sampling): from 0, never, to 1, after one guess.
    """

    def __init__(self, model, *, sampling=Sampling(), threshold=0.0):
        if not 0 <= threshold <= 1:
            raise ValueError(f"expected a threshold from 0 to 1, got {threshold}")
        self.model = model
        self.sampling = sampling
        self.threshold = threshold

    def propose(self, tokens, K, rng):
        """Up to K guesses; fewer where the model's n_ctx is reached, which may be smaller than the target's."""
        tokens, guesses = list(tokens), []
        probs = np.empty((max(0, min(K, self.model.n_ctx - len(tokens) + 1)), self.model.n_vocab))
        for row in probs:
            logits = self.model(tokens)
            row[:] = self.sampling(logits, tokens)[0]
            guesses.append(sample_token(row, rng))
            tokens.append(guesses[-1])
            # subtle: the unsure guess stays. Were it thrown away, what is left would be no draw from its row.
            if self.threshold and Sampling()(logits)[0, guesses[-1]] < self.threshold:
                break
        return Draft(np.array(guesses, dtype=np.int64), probs[: len(guesses)])
