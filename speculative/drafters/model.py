"""Drafting with a smaller language model, the original method.

Every drafter that samples a chain is this one with a different model: see ngram.py and early_exit.py. model_tree.py
drafts trees.
Sources: arXiv:2211.17192, algorithm 1, step 1. The threshold: Zhang et al., Draft & Verify, arXiv:2309.08168. They also
keep the low-confidence token in the draft, as an exact method must.
"""

from collections.abc import Callable

import numpy as np

from ..checks import ask_model, ask_sampling, check_model
from ..interfaces import Draft, LanguageModel, RandomSource, Tokens
from ..logits.probs import Sampling, sample_token


class ModelDrafter:
    """Samples each draft token from `model`, given the prefix and the draft tokens before it.

    Parameters
    ----------
    model
        The draft model, with the target's vocabulary.
    sampling
        A `Sampling`; by default the sampler's, which gives the highest acceptance rate. Any choice leaves the
        distribution of the output unchanged.
    threshold
        The draft ends after the first token whose probability is below this (at temperature 1, whatever `sampling` is).
        At 0 the draft never ends early; at 1 it ends after the first token whose probability is below 1.

    Examples
    --------
    >>> from speculative import ModelDrafter, Sampling
    >>> from speculative.testing import TableModel
    >>> draft_model = TableModel([[0.25, 0.75], [0.6, 0.4]])  # one row for each previous token
    >>> draft = ModelDrafter(draft_model, sampling=Sampling(0)).propose([0], 3, np.random.default_rng(0))
    >>> draft.tokens  # greedy: 1 after 0, 0 after 1
    array([1, 0, 1])
    """

    def __init__(
        self, model: LanguageModel, *, sampling: Callable[..., np.ndarray] | None = None, threshold: float = 0.0
    ):
        self.model: LanguageModel = check_model(model, "a draft model")
        self.sampling = sampling
        self.threshold = threshold
        if not 0 <= threshold <= 1:
            raise ValueError(f"expected a threshold from 0 to 1, got {threshold}")

    def __repr__(self):
        return f"{type(self).__name__}({self.model})"

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        """Up to K tokens; fewer if the model's n_ctx, which may be smaller than the target's, ends the draft."""
        text = list(tokens)
        drafted, rows = [], []
        while len(drafted) < K and len(text) <= self.model.n_ctx:
            logits = ask_model(self.model, text, whose="the draft model")
            rows.append(ask_sampling(self.sampling or Sampling(), logits, text)[0])
            drafted.append(sample_token(rows[-1], rng))
            text.append(drafted[-1])
            # subtle: the low-confidence token stays. Without it the kept tokens would no longer be samples from q.
            if self.threshold and Sampling()(logits)[0, drafted[-1]] < self.threshold:
                break
        return Draft(np.array(drafted, dtype=np.int64), np.reshape(rows, (len(rows), self.model.n_vocab)))
