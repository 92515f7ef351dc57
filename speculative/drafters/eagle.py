"""Drafting with EAGLE: a block that continues the target's own hidden states (gpt2np/drafting/eagle.py).

After a given text the block is a language model like any other, so chains are `ModelDrafter`'s and trees
`TreeDrafter`'s, and exact for the same reasons. But its input is the target's hidden states up to the end of the text,
and its own hidden states after that. So each draft asks it for a new model.

Heads rank candidates. The block samples, and each draft token depends on the earlier ones, so it helps at any
temperature. With `Grown(n)` and siblings="top" the tree grows where the block is confident (EAGLE-2).
Sources: Li et al. (EAGLE), arXiv:2401.15077; Li et al. (EAGLE-2), arXiv:2406.16858, section 4.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from ..interfaces import Draft, LanguageModel, RandomSource, Tokens
from .model import ModelDrafter
from .model_tree import TreeDrafter
from .shapes import Grown, Shape


class EagleDrafter:
    """A chain or a tree of tokens from a block on the target's hidden states.

    Parameters
    ----------
    model
        The target, with hidden states, such as a gpt2np.GPT2.
    block
        A gpt2np.EagleBlock, as gpt2np.load_eagle returns it, or any object with the same method. `on(model,
        n_frequent)` is called once. Each draft then calls its result's `draft_model(n_text) -> LanguageModel`, for
        texts whose first n_text tokens are given.
    tree, siblings
        As in `TreeDrafter`; without a tree, a chain.
    n_frequent
        Draft only this many of the most frequent tokens; 0 means all.
    sampling, threshold
        As in `ModelDrafter`; the threshold applies only to chains.
    """

    def __init__(
        self,
        model: LanguageModel,
        block: Any,
        tree: Shape | Grown | None = None,
        *,
        siblings: Literal["without", "drawn", "top"] = "without",
        n_frequent: int = 0,
        sampling: Callable[..., np.ndarray] | None = None,
        threshold: float = 0.0,
    ):
        if not hasattr(block, "on"):
            raise ValueError(
                f"expected a block that drafts, such as gpt2np.load_eagle returns, got {block!r:.80}: use a different "
                "drafter, or train a block for this model"
            )
        self.block = block.on(model, n_frequent)
        self.tree, self.sampling = tree, sampling
        if tree is None:
            self.drafter = partial(ModelDrafter, threshold=threshold)
        else:
            self.drafter = partial(TreeDrafter, tree=tree, siblings=siblings)
        self.drafter(model)  # runs its checks

    def __repr__(self):
        return f"{type(self).__name__}({self.block.model}, tree={self.tree})"

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        """At most K tokens, or a tree of depth at most K."""
        draft_model = self.block.draft_model(len(tokens))
        return self.drafter(draft_model, sampling=self.sampling).propose(tokens, K, rng)
