"""Drafting with heads on the target's last hidden state: no second model, and no pass of its own.

Where the target keeps the hidden states of its last call and has heads that turn one of them into predictions of the
next tokens, a draft costs a few small products and no call of a model. So several candidates per position are
affordable, and they are needed: heads are right less often than a draft model. The draft is a tree of the heads' most
probable tokens, none of them drawn: one-hot rows, exact with `exact_match` and `rejection` at any temperature.

Head 1 predicts the token after the text, head 2 the one after that, so a tree is no deeper than there are heads.
The first draft of a text costs a pass of the target over the prompt without its last token, if the target has not
processed it; the target's cache keeps that for the call that follows.
Sources: Cai et al. (Medusa), arXiv:2401.10774, section 2.3.3; Ankner et al. (Hydra), arXiv:2402.05109.
"""

import numpy as np

from ..theory.shapes import best_tree, check_shape
from .deterministic import one_hot
from .ranked import fixed_tree, top


class HeadsDrafter:
    """A tree of the heads' most probable tokens.

    Parameters
    ----------
    target : LanguageModel
        With heads, such as a gpt2np.Heads: `n_heads`; `accepted` [n_heads, n_ranks], how often the candidate of each
        rank is right; `head_logits(tokens, paths) -> logits [n_paths, n_vocab]`. It must also be the sampler's target.
    tree : int or (parents, ranks)
        The number of nodes, for the best tree of that size by `accepted`; or a shape, two lists of n int, as
        `best_tree` returns them: ([-1, 0, 1], [0, 0, 0]) is a chain. More nodes yield more tokens per call, and cost
        time: on the bundled target 3 take the least (the default of `--drafter heads`).
    """

    def __init__(self, target, tree=8):
        if not hasattr(target, "head_logits"):
            raise ValueError(
                f"expected a target with heads, such as gpt2np.Heads(model, heads), got {target!r:.80}: "
                "use another drafter, or train heads for it (dev/train/train_heads.py)"
            )
        self.grown = not hasattr(tree, "__len__")
        if self.grown and tree < 1:
            raise ValueError(f"expected a tree of 1 node or more, got {tree}")
        self.target, self.tree = target, tree if self.grown else check_shape(tree)
        if not self.grown and max(self.tree[1], default=0) >= target.n_vocab:
            raise ValueError(f"expected ranks below {target.n_vocab}, the number of tokens, got {max(tree[1])}")
        self.most_levels = target.n_heads  # deeper nodes of a shape are left out

    def propose(self, tokens, K, rng):
        text, n_levels = [int(token) for token in tokens], min(K, self.target.n_heads)
        if n_levels < 1 or len(text) < 2:
            return one_hot([], self.target.n_vocab)
        shape = best_tree(self.tree, self.weights(), n_levels) if self.grown else self.tree
        most_likely = lambda paths, n: top(self.target.head_logits(text, paths), n)  # noqa: E731
        return fixed_tree(shape, n_levels, most_likely, self.target.n_vocab)

    def weights(self):
        """`accepted`, at most n_vocab ranks, without the increases that are chance."""
        return np.minimum.accumulate(self.target.accepted[:, : self.target.n_vocab], axis=-1)
