"""Trees for any language model: each node is one call with the text and the path to that node.

A model that takes trees itself computes all nodes in one pass, which is the point of a tree. This one shows what such a
model must return, and makes every rule for trees usable with table models, n-gram models and other people's models.
"""

from collections.abc import Sequence

import numpy as np

from ..checks import check_model
from ..interfaces import LanguageModel, Tokens
from ..tree import texts_of_rows


class Wrapper:
    """A language model that wraps one with the same vocabulary and context."""

    def __init__(self, model: LanguageModel):
        self.model = check_model(model, "a language model")
        self.n_vocab, self.n_ctx = model.n_vocab, model.n_ctx

    def reset(self) -> None:
        """Reset the model's cache, if it has one."""
        if hasattr(self.model, "reset"):
            self.model.reset()


class ByPaths(Wrapper):
    """The LanguageModel `model`, which now takes trees: it is called once for each row of a tree, with chains only."""

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """Logits [n_last, n_vocab] (see `LanguageModel`). ValueError unless the parents form a tree."""
        if len(parents) == 0:
            return self.model(list(tokens), n_last=n_last)
        if len(parents) >= len(tokens) or any(not -1 <= parent < i for i, parent in enumerate(parents)):
            raise ValueError(
                "expected parents of a tree after at least one token of text, each -1 or the index of an earlier "
                f"token of the tree, got {list(parents)} for {len(tokens)} tokens"
            )
        return np.array([self.model(text)[0] for text in texts_of_rows(tokens, n_last, parents)])
