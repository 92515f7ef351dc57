"""Drafting with EAGLE: a block that continues the target's own hidden states (gpt2np/eagle.py).

After a given text the block is a language model like any other, so chains are `ModelDrafter`'s and trees
`TreeDrafter`'s, and exact for the same reasons. What sets it apart is which texts: its input is the target's hidden
states up to the end of the text, and its own from there on. So it is asked for a new model at each draft.

Heads rank candidates; the block draws, and each draft token depends on those before it, so it helps at any temperature.
With a number of nodes and siblings="top" the tree grows where the block is sure (EAGLE-2).
Sources: Li et al. (EAGLE), arXiv:2401.15077; Li et al. (EAGLE-2), arXiv:2406.16858, section 4.
"""

from collections.abc import Callable
from functools import partial

from ..probs import Sampling
from .model import ModelDrafter
from .model_tree import TreeDrafter


class EagleDrafter:
    """A chain or a tree of tokens from the target's own block.

    Parameters
    ----------
    target : LanguageModel
        With a block, such as a gpt2np.Eagle: `draft_model(n_text) -> LanguageModel`, for texts whose first n_text
        tokens are given. It must also be the sampler's target.
    tree, siblings
        As in `TreeDrafter`; without a tree, a chain.
    sampling, threshold
        As in `ModelDrafter`; the threshold is for chains.
    """

    def __init__(self, target, tree=None, *, siblings="without", sampling: Callable | None = None, threshold=0.0):
        if not hasattr(target, "draft_model"):
            raise ValueError(
                f"expected a target with a block that drafts, such as gpt2np.Eagle(model, block), got {target!r:.80}: "
                "use another drafter, or train a block for it (dev/train/train_eagle.py)"
            )
        self.target, self.tree, self.sampling, self.threshold = target, tree, sampling, threshold
        if tree is None:
            self.drafter = partial(ModelDrafter, sampling=sampling, threshold=threshold)
        else:
            self.drafter = partial(TreeDrafter, tree=tree, siblings=siblings, sampling=sampling)
        self.depends_on_siblings = getattr(self.drafter(target), "depends_on_siblings", False)

    def __repr__(self):
        return f"EagleDrafter({self.target}, tree={self.tree})"

    def propose(self, tokens, K, rng, sampling=Sampling()):
        """At most K tokens, or a tree of depth K at most."""
        return self.drafter(self.target.draft_model(len(tokens))).propose(tokens, K, rng, sampling)
