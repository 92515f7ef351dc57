"""The shapes of token trees: the best one for given acceptance rates, and trees of given widths.

Let w_b be the probability that the b-th child of a node is the one accepted, the same at every node. A node is reached
with the product of the w along its path, and the expected number of tokens per target call is 1 plus the sum of these
products over all nodes. If w falls with the rank, a node's value is at most that of its parent and of its elder
sibling; so the n most valuable nodes form a tree, and a heap finds them. Sequoia's dynamic program, for any w, finds
the same trees then.
Source: Chen et al. (Sequoia), arXiv:2402.12374, section 3.1.
"""

import heapq
import itertools

import numpy as np


def best_tree(n, weights, max_depth=None):
    """The tree of n nodes with the most expected tokens per target call: (parents, ranks), two lists of n int.

    Parameters
    ----------
    n : int
        The number of nodes; there are fewer if `weights` or `max_depth` leave no room for more.
    weights : array [n_ranks] or [n_depths, n_ranks] float64
        The probability that the child of this rank is the one accepted, at every node or for each depth; not increasing
        with the rank.
    max_depth : int, optional
        The greatest depth of a node.

    Returns
    -------
    parents, ranks : list of int
        Ordered by depth, then by parent and rank. The ranks count the siblings from 0.

    Examples
    --------
    >>> best_tree(4, [0.6, 0.3])
    ([-1, -1, 0, 2], [0, 1, 0, 0])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim not in (1, 2) or (np.diff(weights, axis=-1) > 0).any() or not (weights >= 0).all():
        raise ValueError(f"expected weights of 0 or more that do not increase with the rank, got {weights}")
    if weights.ndim == 1:
        weights = np.broadcast_to(weights, (n, len(weights)))
    weights = weights[:max_depth]  # [n_depths, n_ranks]
    found, heap = [], []  # found: (ranks of the path, from the text down) of each node, the most valuable first

    def push(ranks, value):
        """Put the node with this path into the heap; value is that of its parent."""
        depth, rank = len(ranks) - 1, ranks[-1]
        if depth < len(weights) and rank < weights.shape[1]:
            heapq.heappush(heap, (-value * weights[depth, rank], ranks, value))

    push((0,), 1.0)
    while heap and len(found) < n:
        negative, ranks, of_parent = heapq.heappop(heap)
        found.append(ranks)
        push((*ranks[:-1], ranks[-1] + 1), of_parent)  # the next sibling
        push((*ranks, 0), -negative)  # the first child
    return of_ranks(found)


def tree_tokens(parents, weights):
    """Tokens per call of a tree, if the b-th candidate of any node is the accepted one with probability weights[b].

    parents [n] int, with parents[i] < i and -1 for the end of the text. A rank past the end of `weights` has weight 0.

    >>> tree_tokens([-1, 0, 1], [0.5])  # a chain of three, 1 + 1/2 + 1/4 + 1/8
    1.875
    >>> tree_tokens([-1, -1, 0], [0.5, 0.25])
    2.0
    """
    n_children, reached = [0] * (len(parents) + 1), [1.0]
    for parent in parents:
        rank = n_children[parent + 1]
        n_children[parent + 1] += 1
        reached.append(reached[parent + 1] * (weights[rank] if rank < len(weights) else 0.0))
    return float(sum(reached))


def widths(*numbers):
    """The tree in which each node of a depth has the given number of children: (parents, ranks), as `best_tree` returns
    them.

    >>> widths(2, 1)
    ([-1, -1, 0, 1], [0, 1, 0, 0])
    """
    levels = range(1, len(numbers) + 1)
    return of_ranks([ranks for n in levels for ranks in itertools.product(*map(range, numbers[:n]))])


def of_ranks(paths):
    """The tree with a node for each of these paths, tuples of ranks from the text down: Medusa's choices."""
    found = sorted(paths, key=lambda ranks: (len(ranks), ranks))
    index = {(): -1} | {ranks: i for i, ranks in enumerate(found)}
    return [index[ranks[:-1]] for ranks in found], [ranks[-1] for ranks in found]


def check_shape(tree):
    """The (parents, ranks) of a tree; ValueError unless they are two lists of one length that describe one."""
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
