"""The arithmetic of token trees: a draft may offer alternatives for a position, and the target accepts one path.

A tree of n draft tokens, its nodes, is a list `parents` of n whole numbers: parents[i] < i is the node that node i
follows, and -1 is the root of the tree, the end of the text. A chain has parents[i] = i - 1. Nodes that follow the same
node are siblings, in the order of their indices. Everything else follows from that list: a node's depth, the path to
it, and the nodes it may attend to.
Source: Miao et al. (SpecInfer), arXiv:2305.09781.
"""

import numpy as np


def chain(n):
    """The parents [n] int64 of a chain: the tree with one branch.

    >>> chain(3)
    array([-1,  0,  1])
    """
    return np.arange(-1, n - 1, dtype=np.int64)


def is_chain(parents):
    """Whether every node follows the one before it: one branch, no alternatives.

    >>> is_chain([-1, 0, 1]), is_chain([-1, 0, 0])
    (True, False)
    """
    return all(parent == i - 1 for i, parent in enumerate(parents))


def children(parents, node=-1):
    """The nodes that directly follow this one, in order; by default those that follow the text.

    >>> children([-1, -1, 0, 0], 0)
    [2, 3]
    """
    return [i for i, parent in enumerate(parents) if parent == node]


def path(parents, node):
    """The nodes from the text down to this one, inclusive.

    >>> path([-1, -1, 0, 2], 3)
    [0, 2, 3]
    """
    nodes = []  # from the last one up
    while node >= 0:
        nodes.append(int(node))
        node = parents[node]
    return nodes[::-1]


def depths(parents):
    """The number of nodes above each node: 0 for those that follow the text.

    >>> depths([-1, -1, 0, 2])
    [0, 0, 1, 2]
    """
    depth = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return depth


def depth_of(parents):
    """The number of nodes on the longest path.

    >>> depth_of([-1, -1, 0, 2])
    3
    """
    return max(depths(parents), default=-1) + 1


def texts_of_rows(tokens, n_rows, parents=()):
    """The text before each of the last n_rows rows, a list of lists of tokens; in a tree it is the path to the node.

    Without `parents`, row i follows tokens[: len(tokens) - n_rows + 1 + i]; with them, the last len(parents) tokens are
    a tree. A row may depend only on its text, not on siblings or on rejected draft tokens of earlier rounds.

    >>> texts_of_rows([5, 6, 7], 2)
    [[5, 6], [5, 6, 7]]
    >>> texts_of_rows([5, 6, 7, 8], 4, [-1, -1, 0])
    [[5], [5, 6], [5, 7], [5, 6, 8]]
    """
    tokens, texts = list(tokens), []
    n_text = len(tokens) - len(parents)
    for end in range(len(tokens) - n_rows + 1, len(tokens) + 1):
        nodes = path(parents, end - n_text - 1) if end > n_text else []
        texts.append(tokens[: min(end, n_text)] + [tokens[n_text + node] for node in nodes])
    return texts


def visible(parents):
    """[n, n] bool: row i is true at node i and at the nodes above it, which node i may attend to.

    >>> visible([-1, -1, 0]).astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [1, 0, 1]])
    """
    seen = np.eye(len(parents), dtype=bool)
    for i, parent in enumerate(parents):
        if parent >= 0:
            seen[i] |= seen[parent]
    return seen


def n_common(a, b):
    """The length of the common prefix of two lists of tokens."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def n_kept(previous, parents, tokens, new_parents=()):
    """The number of `tokens` in a cache after a call with `previous`; the last len(parents) tokens of each are a tree.

    >>> n_kept([5, 6, 7, 8], [-1, -1, 1], [5, 8, 9])  # the text 5, then 6 or 7, and 8 after 7: none begins with 8
    1
    >>> n_kept([5, 6, 7, 8], [-1, -1, 1], [5, 7, 8, 9])
    3
    >>> n_kept([5, 6, 7], [-1, -1], [5, 6, 7, 8, 9], [-1, -1, 0, 1])  # the same tree, one token deeper
    3
    """
    n_text, node = len(previous) - len(parents), -1
    if new_parents and n_text == len(tokens) - len(new_parents) and previous[:n_text] == tokens[:n_text]:
        nodes, new_nodes = zip(previous[n_text:], parents), zip(tokens[n_text:], new_parents)
        return n_text + n_common(list(nodes), list(new_nodes))
    n, tokens = n_common(previous[:n_text], tokens), tokens[: len(tokens) - len(new_parents)]
    while n_text <= n < len(tokens):
        branch = (i for i, parent in enumerate(parents) if parent == node and previous[n_text + i] == tokens[n])
        node = next(branch, None)
        if node is None:
            break
        n += 1
    return n
