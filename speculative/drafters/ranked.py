"""Trees of ranked candidates: a node's children are the most probable tokens after its path.

Nothing is sampled, so every row is one-hot, and the draft is exact with `exact_match` and with `rejection` at any
temperature. The two functions differ in the shape of the tree:

    fixed_tree    a given shape, for instance by `Shape.best` from the acceptance of each rank
    grown_tree    a shape from the candidates' probabilities: wide where they are uncertain, deep where they are not

Both go depth by depth, so that a model ranks the candidates after all nodes of one depth at once. Its answers come from
`most_likely`. The drafters that use this file differ only in that function.
Source: Cai et al. (Medusa), arXiv:2401.10774, section 2.3.3, for fixed trees; Li et al. (EAGLE-2), arXiv:2406.16858,
section 4, for grown ones.
"""

import numpy as np

from ..tree import depths, path
from .deterministic import one_hot

FEW = 32  # how many of the largest scores count as few


def fixed_tree(shape, n_levels, most_likely, n_vocab):
    """The draft of a given shape.

    Parameters
    ----------
    shape : Shape
        Each node takes the candidate after its parent whose rank is the node's.
    n_levels : int
        Deeper nodes are left out.
    most_likely : callable
        (paths [n_paths, depth] int, n) -> tokens [n_paths, n] int: the n most probable after the text and each path.
        Where one is -1, it is unknown: its node is left out, and so are those after it.
    n_vocab : int
    """
    parents, ranks = shape.parents, shape.ranks
    tokens, level_of = np.full(len(parents), -1), depths(parents)
    for level in range(n_levels):
        at_level = [node for node in range(len(parents)) if level_of[node] == level]
        nodes = [node for node in at_level if level == 0 or tokens[parents[node]] >= 0]
        if not nodes:
            break
        above = sorted({parents[node] for node in nodes})
        candidates = most_likely(paths_to(above, parents, tokens), 1 + max(ranks[node] for node in nodes))
        for node in nodes:
            tokens[node] = candidates[above.index(parents[node]), ranks[node]]
    kept = np.flatnonzero(tokens >= 0).tolist()
    return one_hot(tokens[kept], n_vocab, renumbered(parents, kept))


def grown_tree(n, n_levels, most_likely, n_vocab):
    """The draft of the n tokens with the largest joint probability, which form a tree of depth at most n_levels.

    `most_likely` as for `fixed_tree`, but it returns (tokens, their probabilities), two arrays [n_paths, n].
    """
    tokens, parents = [], []
    values, level = [], [-1]  # the joint probability of each node's path; the nodes of the last depth, -1 for the text
    for _ in range(n_levels):
        # n candidates after each node of the last depth, and the joint probabilities with the paths to these nodes
        candidates, probs = most_likely(paths_to(level, parents, tokens), n)
        joint = probs * np.array([values[node] if node >= 0 else 1.0 for node in level])[:, None]
        # the n best of them are the next depth: the n best of the whole tree cannot have more of this depth
        begin = len(tokens)
        for row, rank in sorted(largest(joint, n)):
            tokens.append(int(candidates[row, rank]))
            parents.append(level[row])
            values.append(joint[row, rank])
        level = list(range(begin, len(tokens)))
    # subtle: the n best of all depths form a tree: no node beats its parent or an elder sibling, and these come first
    kept = sorted(np.argsort(-np.array(values), kind="stable")[:n].tolist())
    return one_hot([tokens[node] for node in kept], n_vocab, renumbered(parents, kept))


def renumbered(parents, kept):
    """The parents of the remaining nodes, by their indices among them."""
    index = {node: i for i, node in enumerate(kept)} | {-1: -1}
    return [index[parents[node]] for node in kept]


def paths_to(nodes, parents, tokens):
    """The tokens on the path to each of these nodes, all of one depth: [n_nodes, depth] int64."""
    return np.array([[tokens[i] for i in path(parents, node)] for node in nodes], dtype=np.int64)


def largest(values, n):
    """(row, column) of the n largest values, ties in order."""
    flat = np.argsort(-values, axis=None, kind="stable")[:n]
    return list(zip(*(part.tolist() for part in np.unravel_index(flat, values.shape))))


def top(scores, n):
    """The indices of the n largest scores in each row, sorted, ties by index: [n_rows, n_vocab] -> [n_rows, n]

    >>> top(np.array([[0.5, 2.0, 0.5, -np.inf]]), 4)
    array([[1, 0, 2, 3]])
    """
    n = min(n, scores.shape[-1])
    if n <= FEW:  # n passes over a row take less time than one partition of it
        left = np.maximum(scores, np.finfo(scores.dtype).min)  # a copy in which only the entries taken become -inf
        indices, rows = np.empty((len(left), n), np.int64), np.arange(len(left))
        for i in range(n):
            indices[:, i] = left.argmax(axis=-1)
            left[rows, indices[:, i]] = -np.inf
        return indices
    unordered = np.argpartition(-scores, n - 1, axis=-1)[:, :n]
    order = np.argsort(-np.take_along_axis(scores, unordered, -1), axis=-1, kind="stable")
    return np.take_along_axis(unordered, order, -1)
