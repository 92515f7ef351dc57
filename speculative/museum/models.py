"""Language models whose answer is for other tokens than they were given; then tree attention with a mistake."""

import numpy as np

from ..tree import children, depths, n_common, visible


class Around:
    """A class of models around a right one."""

    drafts = False  # whether the mistake is one of draft models: the text stays exact, and fewer tokens are accepted

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx, self.seen = model, model.n_vocab, model.n_ctx, []


class NotRolledBack(Around):
    """Keys and values of rejected draft tokens stay in the cache, and later rows attend to them.

    Seen: https://github.com/ml-explore/mlx-lm/pull/1109 (for caches that cannot be trimmed, before it)
    """

    n_forgotten = 0

    def __call__(self, tokens, n_last=1):
        tokens = [int(token) for token in tokens]
        kept = self.seen[: len(self.seen) - self.n_forgotten]
        self.seen = [*kept, *tokens[-n_last:]] if kept else tokens
        return self.model(self.seen, n_last)


class RolledBackByOne(NotRolledBack):
    """The cache forgets one token, however many were rejected."""

    n_forgotten = 1


class RowsOneOff(Around):
    """Row j of a pass predicts token j + 1; these rows begin one too early."""

    def __call__(self, tokens, n_last=1):
        if len(tokens) <= n_last:
            return self.model(tokens, n_last)
        return self.model(tokens, n_last + 1)[:-1]


class FeaturesOneOff(RowsOneOff):
    """EAGLE's block is given each hidden state with its own token, not with the next one, so a draft does not depend on
    the last token of the text. The text stays exact, but hardly a draft token is accepted.
    """

    drafts = True


class PredictedStateStays(Around):
    """A draft token is accepted, but the block's cache keeps the results of its own prediction of the hidden
    state, where the target's is now known. The text stays exact, but fewer tokens are accepted.

    Seen: https://github.com/vllm-project/vllm/issues/14649
    """

    drafts, is_predicted = True, ()

    def __call__(self, tokens, n_last=1):
        tokens, n_kept = [int(token) for token in tokens], n_common(self.seen, tokens)
        is_draft = 0 < len(self.seen) == n_kept  # tokens are added to those of the last call
        self.is_predicted = [*self.is_predicted[:n_kept], *[is_draft] * (len(tokens) - n_kept)]
        self.seen = tokens
        blur = 1 + np.cumsum(self.is_predicted, dtype=np.float32)[-n_last:, None]  # a stand-in for the small errors
        return self.model(tokens, n_last) / blur


EXHIBITS = {  # name: (class around a model, how the grader's message begins)
    "cache not rolled back": (NotRolledBack, "your model's answer depends on what it was asked before"),
    "cache rolled back by a fixed number": (RolledBackByOne, "your model's answer depends on what it was asked before"),
    "rows one off": (RowsOneOff, "your rows are one off"),
    "features one off": (FeaturesOneOff, "your rows are one off"),
    "predicted state stays in the draft's cache": (
        PredictedStateStays,
        "your model's answer depends on what it was asked before",
    ),
}


# ------------------------------------------------------------------------------------------------ trees


class TreeAttention:
    """A language model over three tokens that takes trees, small enough to read: one layer of attention with random
    weights, positions, and a cache of keys and values, whose slot n_text + i holds node i of the last tree. It is
    right; the mistakes are in its mask, in its positions, and in what remains of the cache after an accepted branch.

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
        self.text, self.nodes, self.parents = [], [], []  # the contents of the slots

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
        n, node, n_text = n_common(self.text, text), -1, len(self.text)
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
    """A node has the position n_text + i, its place in the list, instead of n_text + depth."""

    def positions(self, n_text, parents):
        return [n_text + i for i in range(len(parents))]


class PositionsOneTooDeep(TreeAttention):
    """The first level of the tree has depth 1: every node is one position too far to the right."""

    def positions(self, n_text, parents):
        return [n_text + depth + 1 for depth in depths(parents)]


class SiblingsVisible(TreeAttention):
    """A node attends to its elder siblings, as tokens of a chain attend to those before them."""

    def visible(self, parents):
        return visible(parents) | np.tril(np.equal.outer(parents, parents))


class OnlyTheParentVisible(TreeAttention):
    """A node attends to the text, its parent and itself, but not to the nodes above."""

    def visible(self, parents):
        nodes = np.arange(len(parents))
        return np.equal.outer(nodes, nodes) | np.equal.outer(parents, nodes)


class NotItself(TreeAttention):
    """The mask has the ancestors of a node, but not its own diagonal."""

    def visible(self, parents):
        return visible(parents) & ~np.eye(len(parents), dtype=bool)


class SlotsNotMoved(TreeAttention):
    """After a branch is accepted, keys and values of other nodes stay where those of the text should be."""

    def move(self, slot, to):
        pass


class MaskIn32Bits(TreeAttention):
    """The mask of a node is an integer with bits 1 << j, an int of 32 bits, in trees of up to 64 nodes.

    Seen: https://github.com/flexflow/flexflow-serve/blob/HEAD/src/runtime/request_manager.cc (before 1ULL)
    """

    def visible(self, parents):
        bits = [sum(1 << j for j in set(np.flatnonzero(row) % 32)) for row in visible(parents)]  # 1 << j wraps round
        seen = [[row >> j % 32 & 1 for j in range(len(parents))] for row in bits]
        return np.array(seen, bool).reshape(len(parents), len(parents))


TREE_EXHIBITS = {  # name: (class, how the grader's message begins)
    "positions by slot": (PositionsBySlot, r"the position of a node is n_text \+ its depth"),
    "positions one too deep": (PositionsOneTooDeep, "wrong already for a tree of one node"),
    "siblings visible": (SiblingsVisible, "a node sees its sibling"),
    "only the parent visible": (OnlyTheParentVisible, "a node sees its parent, but not the nodes above that"),
    "a node that does not see itself": (NotItself, "wrong already for a tree of one node"),
    "slots not moved": (SlotsNotMoved, "after a tree the model's answer changes along an accepted branch"),
    "mask in 32 bits": (MaskIn32Bits, "right for small trees, but not from 32 nodes on"),
}
