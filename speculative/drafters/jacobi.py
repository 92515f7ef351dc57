"""Jacobi decoding: the target's most probable tokens over its last, rejected draft are the next draft.

Write a text as a system of equations, each token the argmax after the tokens before it, and solve all of them at once
by iteration from any start. The usual loop with this drafter is that iteration. A call verifies m draft tokens and
returns m + 1 rows. The rows after the first wrong token were computed from a wrong prefix, but still serve as the next
draft. At temperature 0 each call solves at least one equation, and few solve more. It is included as a lesson, and as
the first half of lookahead.py.
Source: Santilli et al., arXiv:2305.10427, algorithm 1.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Tokens
from .deterministic import one_hot


class JacobiDrafter:
    """A chain of the target's most probable tokens for these positions in its last call.

    It is padded to K tokens with the last token of the text. `n_vocab` is the size of the target's vocabulary.
    """

    def __init__(self, n_vocab: int):
        self.n_vocab = n_vocab
        self.text = []  # the text of the target's last call, ...
        self.best = []  # ... and the most probable token for each position after it

    def observe(self, tokens: list[int], logits: np.ndarray, parents: np.ndarray) -> None:
        self.text = tokens[: len(tokens) - len(parents)]
        self.best = logits.argmax(axis=-1).tolist()

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens, n_text = [int(token) for token in tokens], len(self.text)
        continues = len(tokens) > n_text and tokens[:n_text] == self.text
        guesses = self.best[len(tokens) - n_text :][:K] if continues else []
        return one_hot([*guesses, *tokens[-1:] * (K - len(guesses))], self.n_vocab)
