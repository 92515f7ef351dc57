"""Drafting from counts: how often each token followed the last one or two in some text.

The rows are real distributions, so that the whole of speculative sampling applies. Orders are interpolated as Witten
and Bell do: a context seen c times, with t different tokens after it, gives its own counts the weight c / (c + t), and
the shorter context the rest; at the bottom all tokens are equal. So no token has probability 0.
Source: Witten and Bell, "The zero-frequency problem", IEEE Transactions on Information Theory 37 (1991), method C;
bigrams as drafts: arXiv:2211.17192, section 4.3.
Next: prompt_lookup.py
"""

import numpy as np

from ..interfaces import Draft
from ..probs import Sampling, sample_token


class NGramDrafter:
    """Draws guesses from n-gram counts.

    Parameters
    ----------
    counts : list of (codes, counts)
        For each length 1 .. n two arrays [n_grams] int64: the n-grams that occur, in order, each as one number in base
        n_vocab, and how often. `from_tokens` makes them.
    n_vocab : int
    sampling : Sampling
        Applied to the distribution of the counts; with the target's own temperature more is accepted.
    """

    def __init__(self, counts, n_vocab, *, sampling=Sampling()):
        self.counts = counts
        self.n_vocab = n_vocab
        self.sampling = sampling
        self.unigrams = self.interpolated(np.full(n_vocab, 1 / n_vocab), 0, 1)

    @classmethod
    def from_tokens(cls, tokens, n_vocab, n=3, *, sampling=Sampling()):
        """Count the n-grams up to length n (3: trigrams) in token ids [n_tokens]; some seconds for millions."""
        tokens = np.asarray(tokens, dtype=np.int64)
        if len(tokens) < n or tokens.min() < 0 or tokens.max() >= n_vocab:
            raise ValueError(f"expected at least {n} tokens from 0 to {n_vocab - 1} to count n-grams in")
        if n_vocab**n >= 2**63:
            raise ValueError(
                f"{n}-grams over {n_vocab} tokens are too many to be told apart in 64 bits: take a smaller n"
            )
        codes, counts = np.zeros_like(tokens), []
        for length in range(1, n + 1):
            codes = codes[: len(tokens) - length + 1] * n_vocab + tokens[length - 1 :]
            counts.append(np.unique(codes, return_counts=True))
        return cls(counts, n_vocab, sampling=sampling)

    def save(self, path):
        """Write the counts to a .npz file."""
        arrays = {
            f"{what}{n}": part for n, pair in enumerate(self.counts, 1) for what, part in zip(("codes", "counts"), pair)
        }
        np.savez(path, n_vocab=self.n_vocab, **arrays)

    @classmethod
    def load(cls, path, *, sampling=Sampling()):
        """Read what `save` wrote."""
        with np.load(path) as file:
            counts = [(file[f"codes{n}"], file[f"counts{n}"]) for n in range(1, len(file.files) // 2 + 1)]
            return cls(counts, int(file["n_vocab"]), sampling=sampling)

    def row(self, tokens):
        """The interpolated distribution [n_vocab] of what follows the tokens."""
        probs, context = self.unigrams, 0
        for length in range(2, min(len(self.counts), len(tokens) + 1) + 1):
            context += int(tokens[1 - length]) * self.n_vocab ** (length - 2)
            probs = self.interpolated(probs, context, length)
        return probs

    def interpolated(self, shorter, context, length):
        """The distribution after a context (a number in base n_vocab), from that of the shorter context."""
        codes, counts = self.counts[length - 1]
        begin, end = np.searchsorted(codes, [context * self.n_vocab, (context + 1) * self.n_vocab])
        if begin == end:
            return shorter
        following, counts = codes[begin:end] - context * self.n_vocab, counts[begin:end]
        n_times, n_different = counts.sum(), end - begin
        probs = shorter * (n_different / (n_times + n_different))
        probs[following] += counts / (n_times + n_different)
        return probs

    def propose(self, tokens, K, rng):
        tokens, guesses, probs = list(tokens), [], np.empty((K, self.n_vocab))
        for row in probs:
            row[:] = self.sampling(np.log(self.row(tokens))[None], tokens)[0]
            guesses.append(sample_token(row, rng))
            tokens.append(guesses[-1])
        return Draft(np.array(guesses, dtype=np.int64), probs)
