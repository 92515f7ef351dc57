"""Token recycling: the logits of earlier target calls draft the next tree.

Each row of the target's logits says which tokens are likely after a token, whether that token was accepted or not. A
matrix keeps, for each token of the vocabulary, the most probable followers in the latest row after it. The draft is a
chain, or a tree of fixed shape: the child of rank r takes the r-th follower of its parent's token. It needs no model
and no training, and drafting costs almost nothing. So it pays where a few more rows add little to the cost of a call.

The rows are one-hot, so the draft is exact with `rejection` and `exact_match`, at any temperature.
Source: Luo et al., arXiv:2408.08696.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Tokens
from .ranked import fixed_tree, top
from .shapes import Shape, check_shape

WEIGHTS = (0.4, 0.15, 0.08, 0.05, 0.03, 0.02, 0.015, 0.01)  # roughly how often the follower of this rank is right


class RecyclingDrafter:
    """A tree of followers. A node is left out while its parent's followers are unknown.

    Parameters
    ----------
    n_vocab
        The target's number of tokens.
    tree
        By default a chain of K tokens. `Shape.best(n, WEIGHTS)` is the best tree of n nodes.
    n_followers
        The number of followers to keep for each token, in a matrix [n_vocab, n_followers]; by default those drafted.
    keep
        Whether a new text starts with the followers learned from earlier texts, or with none.
    """

    def __init__(self, n_vocab: int, tree: Shape | None = None, *, n_followers: int | None = None, keep: bool = False):
        ranks = getattr(tree, "ranks", ())
        n_followers = min(1 + max(ranks, default=0) if n_followers is None else n_followers, n_vocab)
        self.tree: Shape | None = None if tree is None else check_shape(tree, n_followers, "followers kept")
        self.n_vocab, self.keep = n_vocab, keep
        self.followers = np.full((n_vocab, n_followers), -1)  # -1 means not known yet
        self.text = []  # the text of the target's last call

    def observe(self, tokens: list[int], logits: np.ndarray, parents: np.ndarray) -> None:
        """Keep the most probable followers of the token before each row."""
        n_text = len(tokens) - len(parents)
        self.text = tokens[:n_text]
        self.followers[tokens[n_text - 1 :]] = top(logits, self.followers.shape[1])

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens = [int(token) for token in tokens]
        continues = len(tokens) > len(self.text) and tokens[: len(self.text)] == self.text
        if not continues and not self.keep:
            self.followers[:], self.text = -1, []
        tree = Shape.chain(K) if self.tree is None else self.tree

        def most_likely(paths, n):
            return self.followers[np.insert(paths, 0, tokens[-1], axis=1)[:, -1], :n]

        return fixed_tree(tree, K, most_likely, self.n_vocab)
