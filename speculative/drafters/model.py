"""Drafting with a smaller language model, the original way.

Source: arXiv:2211.17192, algorithm 1, step 1.
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
    """

    def __init__(self, model, *, sampling=Sampling()):
        self.model = model
        self.sampling = sampling

    def propose(self, tokens, K, rng):
        """Up to K guesses; fewer where the model's n_ctx is reached, which may be smaller than the target's."""
        tokens, guesses = list(tokens), []
        probs = np.empty((max(0, min(K, self.model.n_ctx - len(tokens) + 1)), self.model.n_vocab))
        for row in probs:
            row[:] = self.sampling(self.model(tokens), tokens)[0]
            guesses.append(sample_token(row, rng))
            tokens.append(guesses[-1])
        return Draft(np.array(guesses, dtype=np.int64), probs)
