"""The grader of language models that take trees: each row must be that of the model on the text and the path alone."""

import inspect

import numpy as np

from ..tree import path
from .model_hints import same
from .watch import asked, fail

SHAPES = [[-1], [-1, -1], [-1, 0, 0, -1], [-1, -1, 0, 0, 1, 2, 2], [-1, 0, -1, 2, 1, 0, -1, 6, 3]]
MANY = 40  # nodes of the largest tree, if the context holds them


def takes_parents(model):
    try:
        return "parents" in inspect.signature(model).parameters
    except (TypeError, ValueError):  # without a signature
        return False


def check_trees(model, ask, seed):
    """Raise AssertionError unless the rows of trees are those of their paths, and the model goes on along a branch.

    `ask` is a function (tokens, n_last) -> logits of `model` without a tree.
    """
    rng = np.random.default_rng(seed)
    shapes = [*SHAPES, *SHAPES[::-1]]
    if model.n_ctx > MANY + 8:
        shapes.append([int(rng.integers(-1, i)) for i in range(MANY)])
    for parents in shapes:
        text = rng.integers(0, min(model.n_vocab, 3), int(rng.integers(1, 6))).tolist()
        nodes = rng.integers(0, min(model.n_vocab, 3), len(parents)).tolist()
        if not is_right(model, ask, text, nodes, parents):
            told = (text, nodes, parents)
            fail(mistake(model, ask) or "a row of a tree is not that of the model on the text and the path to the node",
                 "", "  for the text {}, draft tokens {}, parents = {}".format(*told))  # fmt: skip


def is_right(model, ask, text, nodes, parents):
    """Whether a tree has the rows of its paths, and the model the same answer as before along its last path."""
    wanted = [ask(text, 1)[0], *(ask(on_path(text, nodes, parents, i), 1)[0] for i in range(len(nodes)))]
    further = [*on_path(text, nodes, parents, len(nodes) - 1), 0]
    after = ask(further, 1) if len(further) <= model.n_ctx else None
    rows = ask_tree(model, text, nodes, parents)
    return same(rows, wanted) and (after is None or same(ask(further, 1), after))


def on_path(text, nodes, parents, i):
    return [*text, *(nodes[node] for node in path(parents, i))]


def ask_tree(model, text, nodes, parents):
    """A copy of the logits [n + 1, n_vocab]; AssertionError unless they have the right form."""
    tokens, n_last = [*text, *nodes], len(nodes) + 1

    def where():
        return f"for tokens = {tokens}, n_last = {n_last}, parents = {parents}"

    logits = asked(lambda: model(tokens, n_last=n_last, parents=list(parents)), "your model", where, (tokens, parents))
    if np.shape(logits) != (n_last, model.n_vocab):
        fail(
            f"with a tree the logits have the shape (n_last, n_vocab) = {(n_last, model.n_vocab)}, the row after the "
            f"text and one for each node; yours have {np.shape(logits)}",
            f"  {where()}",
        )
    return logits.copy()


# ------------------------------------------------------------------------------------------------ hints

TEXT = [0, 1, 1]


def mistake(model, ask):
    """The mistake in a sentence, found on small trees; None if they are right."""

    def rows(nodes, parents):
        return ask_tree(model, TEXT, nodes, parents)

    if not same(rows([0], [-1])[0], ask(TEXT, 1)[0]):
        return "the row after the text changes if a tree follows: the text must not see the tree"
    return of_one(ask, rows) or of_siblings(ask, rows) or of_ancestors(ask, rows) or of_branch(ask, rows) or of_many(
        model, ask
    )  # fmt: skip


def of_one(ask, rows):
    one, other = rows([0], [-1])[1], rows([1], [-1])[1]
    if same(one, ask([*TEXT, 0], 1)[0]) and same(other, ask([*TEXT, 1], 1)[0]):
        return None
    if same(one, other) and not same(*(ask([*TEXT, token], 1)[0] for token in (0, 1))):
        return "a node of a tree does not see itself: its row sees the text, its ancestors and its own token"
    return (
        "wrong already for a tree of one node, which is a chain: the position of a node is n_text + its depth, 0 for "
        "one that follows the text, and its mask lets it see the text and itself"
    )


def of_siblings(ask, rows):
    wanted = ask([*TEXT, 0], 1)[0]
    with_0, with_1 = rows([0, 0], [-1, -1])[2], rows([1, 0], [-1, -1])[2]
    if same(with_0, wanted) and same(with_1, wanted):
        return None
    if not same(with_0, with_1):
        return "a node sees its sibling: mask all nodes but its ancestors and itself"
    return (
        "the position of a node is n_text + its depth, that of its siblings; yours seems to be its place in the list, "
        "n_text + i"
    )


def of_ancestors(ask, rows):
    parents = [-1, 0, 1, -1]
    for first in (0, 1):
        if not same(rows([first, 0, 1, 1], parents)[3], ask([*TEXT, first, 0, 1], 1)[0]):
            if same(*(rows([token, 0, 1, 1], parents)[3] for token in (0, 1))):
                return "a node sees its parent, but not the nodes above that: its row sees its whole path"
            return "a node sees the wrong nodes: its row sees the text, all its ancestors and itself, and nothing else"
    return None


def of_branch(ask, rows):
    wanted = ask([*TEXT, 1, 0], 1)
    rows([0, 1], [-1, -1])
    if not same(ask([*TEXT, 1, 0], 1), wanted):
        return (
            "after a tree the model's answer changes along an accepted branch: the keys and values of its nodes must "
            "be moved together, after the text, and those of the other nodes forgotten"
        )
    return None


def of_many(model, ask):
    """Whether the last nodes of a tree with many are wrong: all of them follow the text."""
    n = min(MANY, model.n_ctx - len(TEXT))
    rows = ask_tree(model, TEXT, [i % 2 for i in range(n)], [-1] * n)[1:]
    right = [same(row, ask([*TEXT, i % 2], 1)[0]) for i, row in enumerate(rows)]
    if n > 32 and not all(right[32:]):
        return (
            "right for small trees, but not from 32 nodes on: are the bits of the mask in an integer of 32 bits, as by "
            "1 << j?"
        )
    return None
