"""Token recycling: the target's logits after other tokens are not thrown away, but draft the next tree.

Each row of the target's logits says which tokens are likely after a token, whether that token was accepted or not. A
matrix keeps, for each token of the vocabulary, the most probable followers in the latest row after it. The draft is a
tree of fixed shape: the child of rank r takes the r-th follower of its parent's token. It needs no model and no
training, and drafting costs almost nothing; so it pays where a call with some more rows costs little more.

The rows are one-hot, so the draft is exact with `rejection` and `exact_match`, at any temperature.
Source: Luo et al., arXiv:2408.08696.
"""

import numpy as np

from ..by_paths import Wrapper
from ..checks import ask_model
from ..theory.shapes import best_tree, check_shape
from .deterministic import one_hot
from .ranked import top

WEIGHTS = (0.4, 0.15, 0.08, 0.05, 0.03, 0.02, 0.015, 0.01)  # roughly how often the follower of this rank is right


class Recycling(Wrapper):
    """A language model with the logits of `model`, which keeps the most probable followers of each token.

    Parameters
    ----------
    model : LanguageModel
        The target.
    n_followers : int
        How many to keep for each token: a matrix [n_vocab, n_followers].
    """

    def __init__(self, model, n_followers=8):
        super().__init__(model)
        self.followers = np.full((model.n_vocab, min(n_followers, model.n_vocab)), -1)  # -1: not known yet
        self.called = False  # since the drafter's last proposal

    def forget(self):
        """Forget all followers."""
        self.followers[:] = -1

    def __call__(self, tokens, n_last=1, parents=()):
        """Logits [n_last, n_vocab], see `LanguageModel`."""
        logits, self.called = ask_model(self.model, tokens, n_last, parents), True
        self.followers[list(tokens[len(tokens) - n_last :])] = top(logits, self.followers.shape[1])
        return logits


class RecyclingDrafter:
    """A tree of followers; a node whose parent's followers are not known yet is left out.

    Parameters
    ----------
    target : Recycling
        It must also be the sampler's target.
    tree : (parents, ranks)
        The shape, two lists of n int, as `best_tree` returns them; by default one of 16 nodes, for as many ranks as
        there are followers.
    keep : bool
        Whether a new text starts with the followers learned from the texts before it; otherwise with none.
    """

    def __init__(self, target, tree=None, *, keep=False):
        if not hasattr(target, "followers"):
            raise ValueError(f"expected Recycling(model), which must also be the sampler's target, got {target!r:.80}")
        n_followers = target.followers.shape[1]
        tree = best_tree(16, WEIGHTS[: max(1, n_followers)]) if tree is None else tree
        if max(check_shape(tree)[1], default=0) >= n_followers:
            raise ValueError(f"expected ranks below {n_followers}, the number of followers kept, got {max(tree[1])}")
        self.target, self.tree, self.keep = target, tree, keep
        self.tokens = None  # of the previous draft

    def propose(self, tokens, K, rng):
        tokens = [int(token) for token in tokens]
        if not self.keep and not self.continues(tokens):
            self.target.forget()
        self.tokens, self.target.called = tokens, False
        drafted, parents, place = [], [], {-1: (-1, 0, tokens[-1])}  # node of the shape: its place, depth, token
        for node, (parent, rank) in enumerate(zip(*self.tree)):
            above, depth, token = place.get(parent, (-1, K, 0))
            follower = self.target.followers[token][rank] if depth < K else -1
            if follower >= 0:
                place[node] = len(drafted), depth + 1, int(follower)
                drafted.append(int(follower))
                parents.append(above)
        return one_hot(drafted, self.target.n_vocab, parents)

    def continues(self, tokens):
        """Whether this is the text of the previous draft: after a call of the target, it has become longer."""
        n = len(self.tokens or ())
        return self.tokens is not None and tokens[:n] == self.tokens and not (self.target.called and len(tokens) == n)
