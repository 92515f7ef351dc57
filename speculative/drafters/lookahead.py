"""Lookahead decoding: the target itself writes a pool of n-grams while it verifies those found so far.

Each draft is a tree of two parts:

    candidates   what followed the text's last token in the pool: up to G sequences of N - 1 tokens
    comb         W columns of Jacobi iterations. Row 0 is a chain after the text, and the tooth of column c hangs from
                 its node c: row 1, row 2, ..., where each token answers the row above, one target call earlier

The comb is an ordinary token tree: a tooth sees row 0 up to its own column. After the call, the target's answer at the
tip of each tooth completes an n-gram, which goes into the pool. The oldest row is dropped, and the answers become the
newest. The comb is the main cost, W (N - 1) nodes in each call, and only fills the pool. With the defaults a draft has
15 nodes for the comb and up to 15 for candidates; a draft of token recycling (recycling.py) has 16 in all.

All tokens are functions of the text so far: one-hot rows, exact with `rejection` and `exact_match`.
Source: Fu et al., arXiv:2402.02057, algorithm 2; with a tree here in place of the paper's mask of two branches.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Tokens
from .deterministic import merged, one_hot


class LookaheadDrafter:
    """The candidates of the pool and the comb. It needs K >= W + N - 2, the depth of the last tooth's tip.

    Parameters
    ----------
    n_vocab
        The target's number of tokens.
    W, N, G
        The number of columns; the length of the n-grams, at least 2; the number of candidates.
    """

    def __init__(self, n_vocab: int, W: int = 5, N: int = 4, G: int = 5):
        if W < 1 or N < 2 or G < 1:
            raise ValueError(f"expected W of 1 or more, N of 2 or more and G of 1 or more, got {W}, {N} and {G}")
        self.n_vocab = n_vocab
        self.W, self.N = W, N
        self.G = G
        self.best = []  # the most probable token at each position of the target's last call
        self.tokens = []  # the tokens of the previous draft
        self.begin([])

    def begin(self, tokens):
        """Start a text with one row of tokens from the prompt and an empty pool."""
        self.pool, self.tips = {}, None
        self.levels = [[tokens[-1 - c % len(tokens)] for c in range(self.W)]] if tokens else []

    def observe(self, tokens: list[int], logits: np.ndarray, parents: np.ndarray) -> None:
        self.best = logits.argmax(axis=-1).tolist()

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens = [int(token) for token in tokens]
        before, self.tokens = self.tokens, []  # if this is interrupted, the next draft starts again
        if tokens[: len(before)] != before or not 0 < len(before) < len(tokens):
            self.begin(tokens)
        elif self.tips is not None and len(self.best) > max(self.tips) + 1:
            self.learn([self.best[tip + 1] for tip in self.tips])
        self.tips = None
        candidates = [sequence[:K] for sequence in reversed(self.pool.get(tokens[-1], []))]
        drafted, parents, _ = merged(candidates)
        if K >= self.W + len(self.levels) - 1:
            self.tips = self.comb(drafted, parents)
        self.tokens = tokens
        return one_hot(drafted, self.n_vocab, parents)

    def comb(self, drafted, parents):
        """Append the comb to the tree; returns the last node of each column."""
        above, tips = -1, []
        for column in zip(*self.levels):
            for level, token in enumerate(column):
                parents.append(above if level == 0 else len(drafted) - 1)
                drafted.append(token)
                if level == 0:
                    above = len(drafted) - 1
            tips.append(len(drafted) - 1)
        return tips

    def learn(self, answers):
        """The target's answers after the tips: each completes an n-gram, and together they are the newest row."""
        self.levels.append(answers)
        if len(self.levels) == self.N:
            for first, *rest in zip(*self.levels):
                known = self.pool.setdefault(first, [])
                if rest in known:
                    known.remove(rest)  # the most recent is the last
                known.append(rest)
                del known[: -self.G]
            del self.levels[0]
