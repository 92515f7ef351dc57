"""Drafting from n-gram counts: how often each token followed the last one or two in some text.

The counts make a language model with proper distributions, so speculative sampling applies to it without changes. The
orders are interpolated following Witten and Bell. If a context was seen c times, followed by t different tokens, its
counts get the weight c / (c + t), and the shorter context gets the rest; after the shortest context comes the uniform
distribution. So no token has probability 0.
Source: Witten and Bell, "The zero-frequency problem", IEEE Transactions on Information Theory 37 (1991), method C;
bigrams as drafts: arXiv:2211.17192, sections 3.6 and 4.2.
"""

import sys
from collections.abc import Sequence

import numpy as np

from ..interfaces import Tokens
from .model import ModelDrafter


class NGramDrafter(ModelDrafter):
    """A `ModelDrafter` whose model is an `NGramModel`."""


class NGramModel:
    """A language model from n-gram counts.

    Parameters
    ----------
    counts
        For each length 1 .. n two arrays (codes, counts) [n_grams] int64: the n-grams that occur, sorted, each encoded
        as one number in base n_vocab, and how often each occurs. `from_tokens` returns them.
    n_vocab
        The number of tokens in the vocabulary.

    Examples
    --------
    The unigrams: 5 tokens, 2 different ones, 5/7 (3/5, 2/5) + 2/7 (1/2, 1/2) = (4/7, 3/7). After token 0: 3 tokens, 2
    different ones, 3/5 (1/3, 2/3) + 2/5 (4/7, 3/7) = (3/7, 4/7).

    >>> model = NGramModel.from_tokens([0, 0, 1, 0, 1], n_vocab=2, n=2)
    >>> model.row([0]).round(6)
    array([0.428571, 0.571429])
    """

    n_ctx: int = sys.maxsize  # no limit

    def __init__(self, counts: Sequence[tuple[np.ndarray, np.ndarray]], n_vocab: int):
        self.counts = counts
        self.n_vocab = n_vocab
        self.unigrams = self.interpolated(np.full(n_vocab, 1 / n_vocab), 0, 1)

    @classmethod
    def from_tokens(cls, tokens: Tokens, n_vocab: int, n: int = 3) -> "NGramModel":
        """Count the n-grams up to length n (3: trigrams) in token ids [n_tokens]. Millions take a few seconds.

        ValueError if there are fewer than n tokens, one is not in the vocabulary, or n-grams do not fit in 64 bits.
        """
        tokens = np.asarray(tokens)
        if tokens.ndim != 1 or (len(tokens) and tokens.dtype.kind not in "iu"):
            raise ValueError(f"expected token ids in one list, got {tokens.dtype} in {tokens.ndim} dimensions")
        tokens = tokens.astype(np.int64)
        if n < 1 or n_vocab**n >= 2**63:
            n_max = int(63 / np.log2(max(n_vocab, 2)))
            raise ValueError(
                f"expected n from 1 to {n_max} for {n_vocab} tokens, so that n-grams fit in 64 bits, got {n}"
            )
        if len(tokens) < n or tokens.min() < 0 or tokens.max() >= n_vocab:
            raise ValueError(
                f"expected at least {n} tokens from 0 to {n_vocab - 1}, got {len(tokens)} tokens: take a longer text, "
                "encoded with the target's tokenizer"
            )
        codes, counts = np.zeros_like(tokens), []
        for length in range(1, n + 1):
            codes = codes[: len(tokens) - length + 1] * n_vocab + tokens[length - 1 :]
            n_grams, times = np.unique(codes, return_counts=True)
            counts.append((n_grams, times.astype(np.int64)))  # np.intp has 32 bits on some platforms
        return cls(counts, n_vocab)

    def __call__(self, tokens: Tokens, n_last: int = 1) -> np.ndarray:
        ends = range(len(tokens) - n_last + 1, len(tokens) + 1)
        return np.log([self.row(tokens[:end]) for end in ends]).astype(np.float32)

    def row(self, tokens: Tokens) -> np.ndarray:
        """The interpolated distribution [n_vocab] of the next token."""
        probs, context = self.unigrams, 0
        for length in range(2, min(len(self.counts), len(tokens) + 1) + 1):
            context += int(tokens[1 - length]) * self.n_vocab ** (length - 2)
            probs = self.interpolated(probs, context, length)
        return probs

    def interpolated(self, shorter, context, length):
        """The distribution after a context (a number in base n_vocab), given that of the shorter context."""
        codes, counts = self.counts[length - 1]
        begin, end = np.searchsorted(codes, [context * self.n_vocab, (context + 1) * self.n_vocab])
        if begin == end:
            return shorter
        following, counts = codes[begin:end] - context * self.n_vocab, counts[begin:end]
        n_times, n_different = counts.sum(), end - begin
        probs = shorter * (n_different / (n_times + n_different))
        probs[following] += counts / (n_times + n_different)
        return probs
