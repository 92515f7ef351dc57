"""Drafting with a smaller language model, the original method.

Every drafter that draws a chain is this one with another model or another sampling: see ngram.py, early_exit.py and
dials.py. model_tree.py draws trees.
Sources: arXiv:2211.17192, algorithm 1, step 1. The threshold: Zhang et al., Draft & Verify, arXiv:2309.08168; the
uncertain token stays in the draft there as well, as it must.
"""

from collections.abc import Callable

import numpy as np

from ..checks import ask_model, ask_sampling, check_model
from ..interfaces import Draft
from ..logits.probs import Sampling, sample_token


class ModelDrafter:
    """Draws each token from `model`, given the text and the draft tokens before it.

    Parameters
    ----------
    model : LanguageModel
        With the target's vocabulary.
    sampling : Sampling, optional
        By default the sampler's own, which accepts the most tokens. Any other will do: the distribution of the output
        does not depend on it.
    threshold : float
        The draft ends after the first token whose probability is below this (at temperature 1, whatever `sampling` is).
        From 0, where the draft never ends early, to 1, where it ends after the first token that is not certain.
    """

    def __init__(self, model, *, sampling: Callable | None = None, threshold=0.0):
        self.model = check_model(model, "a draft model")
        self.sampling = sampling
        self.threshold = threshold
        if not 0 <= threshold <= 1:
            raise ValueError(f"expected a threshold from 0 to 1, got {threshold}")

    def __repr__(self):
        return f"{type(self).__name__}({self.model})"

    def propose(self, tokens, K, rng):
        """Up to K tokens; fewer if the model's n_ctx is reached, which may be smaller than the target's."""
        text = list(tokens)
        drafted, rows = [], []
        while len(drafted) < K and len(text) <= self.model.n_ctx:
            logits = ask_model(self.model, text, whose="the draft model")
            rows.append(ask_sampling(self.sampling or Sampling(), logits, text)[0])
            drafted.append(sample_token(rows[-1], rng))
            text.append(drafted[-1])
            # subtle: the uncertain token stays. If it were dropped, the kept tokens would not be draws from their rows.
            if self.threshold and Sampling()(logits)[0, drafted[-1]] < self.threshold:
                break
        return Draft(np.array(drafted, dtype=np.int64), np.reshape(rows, (len(rows), self.model.n_vocab)))
