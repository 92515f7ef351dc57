"""The arithmetic of token trees: a draft with several alternatives for one place, of which the target accepts a path.

A tree of n draft tokens, its nodes, is a list `parents` of n whole numbers: parents[i] < i is the node that node i
follows, and -1 stands for the end of the text, the tree's root. A chain is parents[i] = i - 1. Nodes that follow the
same node are siblings, in the order of their indices. Everything else follows from that list: how deep a node lies, the
path to it, and what it may see in attention.

`best_tree` is the shape that gives the most tokens per target call. Let w_b be the probability that the b-th child of a
node is the one accepted, the same at every node. A node is reached with the product of the w along its path, and the
expected number of tokens per call is 1 plus the sum of these products over all nodes. If w falls with the rank, a
node's value is at most that of its parent and of its elder sibling; so the n most valuable nodes form a tree, and a
heap finds them. Sequoia's dynamic program, for any w, finds the same trees then.
Source: Miao et al. (SpecInfer), arXiv:2305.09781, section 3; Chen et al. (Sequoia), arXiv:2402.12374, section 3.1.
Next: generation.py
"""

import heapq
import itertools

import numpy as np


def is_chain(parents):
    """Whether every node follows the one before it: one branch, no alternatives.

    >>> is_chain([-1, 0, 1]), is_chain([-1, 0, 0])
    (True, False)
    """
    return all(parent == i - 1 for i, parent in enumerate(parents))


def check_shape(tree):
    """The (parents, ranks) of a tree; ValueError unless they are two lists of one length that describe one.

    >>> check_shape(([-1, -1, 0], [0, 1, 0]))
    ([-1, -1, 0], [0, 1, 0])
    """
    try:
        parents, ranks = tree
        is_tree = len(parents) == len(ranks) and all(-1 <= parent < i for i, parent in enumerate(parents))
        is_tree = is_tree and min(ranks, default=0) >= 0
    except (TypeError, ValueError):
        is_tree = False
    if not is_tree:
        raise ValueError(
            "expected a tree as (parents, ranks), two lists of one length, each parent -1 or an earlier node, such as "
            f"best_tree and widths return it, got {tree!r:.100}"
        )
    return tree


def children(parents, node=-1):
    """The nodes that follow this one, in order; by default those that follow the text.

    >>> children([-1, -1, 0, 0], 0)
    [2, 3]
    """
    return [i for i, parent in enumerate(parents) if parent == node]


def path(parents, node):
    """The nodes from the text down to this one, itself included.

    >>> path([-1, -1, 0, 2], 3)
    [0, 2, 3]
    """
    found = []
    while node >= 0:
        found.append(int(node))
        node = parents[node]
    return found[::-1]


def depths(parents):
    """How many nodes lie above each node: 0 for those that follow the text.

    >>> depths([-1, -1, 0, 2])
    [0, 0, 1, 2]
    """
    found = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return found


def visible(parents):
    """[n, n] bool: row i is true at node i and at the nodes above it, which is what node i may attend to.

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


def children_of(node, n_drafted, parents):
    """`children` for a chain, too, whose parents are None."""
    if parents is None:
        return [node + 1] if node + 1 < n_drafted else []
    return children(parents, node)


def depth_of(n_drafted, parents):
    """The number of draft tokens on the longest path; parents are None for a chain."""
    return n_drafted if parents is None else max(depths(parents), default=-1) + 1


def best_tree(n, weights, max_depth=None):
    """The tree of n nodes with the most expected tokens per target call: (parents, ranks), two lists of n int.

    Parameters
    ----------
    n : int
        The number of nodes; there are fewer if `weights` or `max_depth` leave no place for more.
    weights : array [n_ranks] or [n_depths, n_ranks] float64
        The probability that the child of this rank is the one accepted, at every node or for each depth; not increasing
        with the rank.
    max_depth : int, optional
        The most levels of nodes.

    Returns
    -------
    parents, ranks : list of int
        Level by level, and in a level by parent and rank. The ranks count the siblings from 0.

    Raises
    ------
    ValueError
        If the weights are negative or increase with the rank.

    Examples
    --------
    >>> best_tree(4, [0.6, 0.3])
    ([-1, -1, 0, 2], [0, 1, 0, 0])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim not in (1, 2) or (np.diff(weights, axis=-1) > 0).any() or not (weights >= 0).all():
        raise ValueError(f"expected weights of 0 or more that do not increase with the rank, got {weights}")
    n_ranks, n_levels = weights.shape[-1], len(weights) if weights.ndim == 2 else n
    n_levels = n_levels if max_depth is None else min(n_levels, max_depth)
    found, heap = [], []  # found: (ranks of the path, from the text down) of each node, the most valuable first

    def push(ranks, value):
        """Put the node with this path into the heap; value is that of its parent."""
        depth, rank = len(ranks) - 1, ranks[-1]
        if depth < n_levels and rank < n_ranks:
            weight = weights[depth, rank] if weights.ndim == 2 else weights[rank]
            heapq.heappush(heap, (-value * weight, ranks, value))

    push((0,), 1.0)
    while heap and len(found) < n:
        negative, ranks, of_parent = heapq.heappop(heap)
        found.append(ranks)
        push((*ranks[:-1], ranks[-1] + 1), of_parent)  # the next sibling
        push((*ranks, 0), -negative)  # the first child
    return of_ranks(found)


def widths(*numbers):
    """The tree in which each node of a level has so many children: (parents, ranks), as `best_tree` returns them.

    >>> widths(2, 1)
    ([-1, -1, 0, 1], [0, 1, 0, 0])
    """
    levels = range(1, len(numbers) + 1)
    return of_ranks([ranks for n in levels for ranks in itertools.product(*map(range, numbers[:n]))])


def of_ranks(paths):
    """The tree with a node for each of these paths, tuples of ranks from the text down: Medusa's choices.

    >>> of_ranks([(0,), (1,), (0, 0), (1, 0)])
    ([-1, -1, 0, 1], [0, 1, 0, 0])
    """
    found = sorted(map(tuple, paths), key=lambda ranks: (len(ranks), ranks))
    index = {(): -1} | {ranks: i for i, ranks in enumerate(found)}
    missing = [r for r in found if r[:-1] not in index or (r[-1] and (*r[:-1], r[-1] - 1) not in index)]
    if missing:
        raise ValueError(f"expected with each path its parent and its elder sibling, which {missing[0]} lacks")
    return [index[ranks[:-1]] for ranks in found], [ranks[-1] for ranks in found]
