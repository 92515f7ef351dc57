"""Jacobi decoding: the target's own rows after its last, rejected draft are the next draft.

Write a text as a system of equations, each token the argmax after the tokens before it, and solve all of them at once
by iteration from any start: that is this drafter in the usual loop. A call verifies m draft tokens and returns m + 1
rows; those after the first wrong token were computed from a wrong text, and are the next draft nevertheless. At
temperature 0 each call solves at least one equation, and few solve more. A lesson, and the first half of lookahead.py.
Source: Santilli et al., arXiv:2305.10427, algorithm 1.
"""

from ..by_paths import Wrapper
from ..checks import ask_model
from .deterministic import one_hot


class LastRows(Wrapper):
    """A language model with the logits of `model`, which keeps the most probable token of each row of its last call."""

    def __init__(self, model):
        super().__init__(model)
        self.tokens, self.best = [], []

    def __call__(self, tokens, n_last=1, parents=()):
        """Logits [n_last, n_vocab], see `LanguageModel`."""
        logits = ask_model(self.model, tokens, n_last, parents)
        self.tokens, self.best = [int(token) for token in tokens], logits.argmax(axis=-1).tolist()
        return logits


class JacobiDrafter:
    """A chain of the target's most probable tokens for these positions in its last call; the text's last token fills up
    K.

    Parameters
    ----------
    target : LastRows
        It must also be the sampler's target.
    """

    def __init__(self, target):
        self.target = target

    def propose(self, tokens, K, rng):
        tokens, last, best = [int(token) for token in tokens], self.target.tokens, self.target.best
        n_text = len(last) - len(best) + 1  # of the last call, before its draft; best[0] is for the position after it
        continues = len(tokens) > n_text and tokens[:n_text] == last[:n_text]
        guesses = best[len(tokens) - n_text :][:K] if continues else []
        return one_hot([*guesses, *tokens[-1:] * (K - len(guesses))], self.target.n_vocab)
