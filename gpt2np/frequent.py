"""A draft model for a few tokens only: GPT-2 without most of its vocabulary projection.

The projection is a third of a small GPT-2: the smallest has 124 million weights, and 39 million of them are the
embeddings of 50,257 tokens, all of which are read for one row of logits. Text consists mostly of a few thousand
frequent tokens. Drafting only these is exact, because q is the distribution that was actually sampled from. Where
the target chooses a different token, the draft is rejected.
Source: Zhao et al., FR-Spec, arXiv:2502.14856, which does this to EAGLE's head.
"""

from copy import copy

import numpy as np

from .kernels.matmul import pack
from .layers import layer_norm


class FrequentTokens:
    """A language model with the logits of `model` for some tokens, and -inf for the others.

    Parameters
    ----------
    model : GPT2
        Shared, with its cache.
    tokens : sequence of int
        The tokens that can be drafted (see `most_frequent`).

    Raises
    ------
    ValueError
        If the list is empty, or a token is not in the vocabulary.
    """

    def __init__(self, model, tokens):
        self.model, self.tokens = model, np.unique(np.asarray(tokens, dtype=np.int64))
        if not len(self.tokens) or self.tokens[0] < 0 or self.tokens[-1] >= model.n_vocab:
            raise ValueError(f"expected one token or more, each from 0 to {model.n_vocab - 1}")
        self.n_vocab, self.n_ctx, self.hparams = model.n_vocab, model.n_ctx, model.hparams
        self.n_params, self.lock = model.n_params, model.lock
        self.projection = pack(model.params["wte"][self.tokens].T, model.strategy)

    def __reduce__(self):
        """A copy has a model with an empty cache: another thread may be writing to this one."""
        return type(self), (copy(self.model), self.tokens)

    def __call__(self, tokens, n_last=1, parents=()):
        with self.lock:
            x = self.model.run(tokens, n_last, parents)
        return scattered(layer_norm(x, **self.model.params["ln_f"]) @ self.projection, self.tokens, self.n_vocab)

    def reset(self):
        """Forget the cache. No result changes."""
        self.model.reset()


def scattered(logits, tokens, n_vocab):
    """[n, n_vocab] float32: these logits [n, len(tokens)] of some tokens, and -inf for the others."""
    whole = np.full((len(logits), n_vocab), -np.inf, np.float32)
    whole[:, tokens] = logits
    return whole


def most_frequent(text, n, n_vocab):
    """The n most frequent tokens of a text [n] int64; of equally frequent tokens, the lowest ids.

    Parameters
    ----------
    text : sequence of int

    Examples
    --------
    >>> most_frequent([4, 1, 4, 0], 3, n_vocab=6)
    array([4, 0, 1])
    """
    return np.argsort(-np.bincount(text, minlength=n_vocab), kind="stable")[:n]
