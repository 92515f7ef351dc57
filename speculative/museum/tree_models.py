"""Tree attention with a mistake, in a language model that is small enough to read.

`TreeAttention` is right: one layer of attention with random weights, positions, and a cache of keys and values. The
mistakes are in its mask, in its positions, and in what remains of the cache after a branch was accepted.
"""

import numpy as np

from ..tree import children, depths, visible
from .verifiers import CONSTRUCTED


class TreeAttention:
    """A language model over three tokens that takes trees; slot n_text + i of its cache holds node i of the last tree.

    Parameters
    ----------
    model : object
        Not used: the exhibits of models are classes around a model.
    """

    n_vocab, n_ctx = 3, 64

    def __init__(self, model=None):
        rng = np.random.default_rng(5)
        self.wte, self.wpe = rng.normal(size=(self.n_vocab, 8)), rng.normal(size=(self.n_ctx + 1, 8))
        self.to_query, self.to_key, self.to_value, self.to_logits = rng.normal(size=(4, 8, 8)) / 2
        self.keys, self.values = np.zeros((2, self.n_ctx, 8))
        self.text, self.nodes, self.parents = [], [], []  # what the slots hold

    def __call__(self, tokens, n_last=1, parents=()):
        """Logits [n_last, n_vocab] float32."""
        tokens, parents = [int(token) for token in tokens], [int(parent) for parent in parents]
        n_text, n = len(tokens) - len(parents), len(tokens)
        n_kept = self.keep(tokens[:n_text])
        positions = [*range(n_text), *self.positions(n_text, parents)]
        x = self.wte[tokens] + self.wpe[positions]  # [n, 8]
        self.keys[n_kept:n] = x[n_kept:] @ self.to_key
        self.values[n_kept:n] = x[n_kept:] @ self.to_value
        self.text, self.nodes, self.parents = tokens[:n_text], tokens[n_text:], parents
        mask = np.tril(np.ones((n, n), dtype=bool))
        mask[n_text:, n_text:] = self.visible(parents)
        scores = x[n - n_last :] @ self.to_query @ self.keys[:n].T  # [n_last, n]
        weights = np.where(mask[n - n_last :], np.exp(scores / 4), 0)
        x = x[n - n_last :] + weights @ self.values[:n] / weights.sum(axis=1, keepdims=True)
        return (x @ self.to_logits)[:, : self.n_vocab].astype(np.float32)

    def keep(self, text):
        """How many tokens of the text are in the cache, after the nodes of the branch it goes on along were moved."""
        n = next((i for i, (a, b) in enumerate(zip(self.text, text)) if a != b), min(len(self.text), len(text)))
        node, n_text = -1, len(self.text)
        while n_text <= n < len(text):
            below = [child for child in children(self.parents, node) if self.nodes[child] == text[n]]
            if not below:
                break
            node = below[0]
            self.move(n_text + node, n)
            n += 1
        return n

    def move(self, slot, to):
        self.keys[to], self.values[to] = self.keys[slot], self.values[slot]

    def positions(self, n_text, parents):
        return [n_text + depth for depth in depths(parents)]

    def visible(self, parents):
        return visible(parents)


class PositionsBySlot(TreeAttention):
    def positions(self, n_text, parents):
        return [n_text + i for i in range(len(parents))]


class PositionsOneTooDeep(TreeAttention):
    def positions(self, n_text, parents):
        return [n_text + depth + 1 for depth in depths(parents)]


class SiblingsVisible(TreeAttention):
    def visible(self, parents):
        elder = np.array([[j < i and a == b for j, b in enumerate(parents)] for i, a in enumerate(parents)], bool)
        return visible(parents) | elder.reshape(len(parents), len(parents))


class OnlyTheParentVisible(TreeAttention):
    def visible(self, parents):
        return visible(parents) & np.array(
            [[j in (i, parent) for j in range(len(parents))] for i, parent in enumerate(parents)], bool
        ).reshape(len(parents), len(parents))


class NotItself(TreeAttention):
    def visible(self, parents):
        return visible(parents) & ~np.eye(len(parents), dtype=bool)


class SlotsNotMoved(TreeAttention):
    def move(self, slot, to):
        pass


class MaskIn32Bits(TreeAttention):
    def visible(self, parents):
        bits = [sum(1 << j for j in set(np.flatnonzero(row) % 32)) for row in visible(parents)]  # 1 << j wraps round
        seen = [[row >> j % 32 & 1 for j in range(len(parents))] for row in bits]
        return np.array(seen, bool).reshape(len(parents), len(parents))


EXHIBITS = {  # name: (class, what is wrong, where it was seen, how the grader's message begins)
    "positions by slot": (
        PositionsBySlot,
        "A node has the position n_text + i, its place in the list, instead of n_text + depth.",
        CONSTRUCTED,
        "the position of a node is n_text \\+ its depth",
    ),
    "positions one too deep": (
        PositionsOneTooDeep,
        "The first level of the tree has depth 1: every node stands one place too far to the right.",
        CONSTRUCTED,
        "wrong already for a tree of one node",
    ),
    "siblings visible": (
        SiblingsVisible,
        "A node attends to its elder siblings, as tokens of a chain attend to those before them.",
        CONSTRUCTED,
        "a node sees its sibling",
    ),
    "only the parent visible": (
        OnlyTheParentVisible,
        "A node attends to the text, its parent and itself, but not to the nodes above.",
        CONSTRUCTED,
        "a node sees its parent, but not the nodes above that",
    ),
    "a node that does not see itself": (
        NotItself,
        "The mask has the ancestors of a node, but not its own diagonal.",
        CONSTRUCTED,
        "wrong already for a tree of one node",
    ),
    "slots not moved": (
        SlotsNotMoved,
        "After a branch is accepted, keys and values of other nodes stay where those of the text should be.",
        CONSTRUCTED,
        "after a tree the model's answer changes along an accepted branch",
    ),
    "mask in 32 bits": (
        MaskIn32Bits,
        "The mask of a node is an integer with bits 1 << j, an int of 32 bits, in trees of up to 64 nodes.",
        "https://github.com/flexflow/flexflow-serve/blob/HEAD/src/runtime/request_manager.cc (before 1ULL)",
        "right for small trees, but not from 32 nodes on",
    ),
}
