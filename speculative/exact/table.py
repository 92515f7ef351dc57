"""A language model small enough to enumerate completely: for tests, proofs and lessons."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..interfaces import Tokens
from ..logits.probs import Sampling


class TableModel:
    """A LanguageModel whose next token depends on the last few tokens through a table.

    Parameters
    ----------
    probs
        [n_vocab, ..., n_vocab]: probs[a, b] is the distribution after the tokens ..., a, b, so the model looks back one
        token for each axis but the last. A shorter text is padded with token 0 at the front.
    n_ctx
        The largest number of tokens in a text.

    Examples
    --------
    >>> model = TableModel([[0.5, 0.5], [0.125, 0.875]])
    >>> np.exp(model([0, 1]))
    array([[0.125, 0.875]], dtype=float32)
    """

    def __init__(self, probs: Sequence[Any] | np.ndarray, n_ctx: int = 64):
        self.probs: np.ndarray = np.array(probs, dtype=np.float64)
        with np.errstate(divide="ignore"):
            self.logits = np.log(self.probs).astype(np.float32)
        self.n_vocab = self.probs.shape[-1]
        self.n_ctx = n_ctx

    @classmethod
    def random(cls, n_vocab: int, n_back: int = 2, seed: int = 0, n_ctx: int = 64) -> "TableModel":
        """A table of random distributions."""
        return cls(np.random.default_rng(seed).dirichlet(np.ones(n_vocab), size=(n_vocab,) * n_back), n_ctx)

    def __call__(self, tokens: Tokens, n_last: int = 1) -> np.ndarray:
        n_back = self.probs.ndim - 1
        padded = [0] * n_back + [int(token) for token in tokens]
        ends = range(len(padded) - n_last + 1, len(padded) + 1)
        return np.array([self.logits[tuple(padded[end - n_back : end])] for end in ends])

    def distribution(
        self, prompt: Tokens, n_tokens: int, sampling: Callable[..., np.ndarray] = Sampling()
    ) -> dict[tuple[int, ...], float]:
        """The exact distribution of the next n_tokens tokens: a dict {tokens (a tuple): probability}.

        It contains all n_vocab ** n_tokens continuations; every exact sampler must reproduce these probabilities.

        >>> round(TableModel([[0.5, 0.5], [0.125, 0.875]]).distribution([1], 2)[0, 1], 6)  # 0.125 * 0.5
        0.0625
        """
        probs = {}
        for tokens in itertools.product(range(self.n_vocab), repeat=n_tokens):
            rows = sampling(self([*prompt, *tokens], n_last=n_tokens + 1), [*prompt, *tokens])
            probs[tokens] = math.prod(float(rows[i][token]) for i, token in enumerate(tokens))
        return probs
