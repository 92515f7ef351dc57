"""The shape of a token tree: the best one for given acceptance rates, or one of given widths.

Let w_b be the probability that the b-th child of a node is the one accepted, the same at every node. A node is reached
with the product of the w along its path, and the expected number of tokens per target call is 1 plus the sum of these
products over all nodes. If w falls with the rank, a node's value is at most that of its parent and of its elder
sibling. So the n most valuable nodes form a tree, and a heap finds them. In that case Sequoia's dynamic program, which
works for any w, finds the same trees.
Source: Chen et al. (Sequoia), arXiv:2402.12374, section 3.1.
"""

import heapq
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tree import depth_of


@dataclass(frozen=True)
class Shape:
    """A tree of n nodes, each with a parent and a rank; `len(shape)` is n.

    Parameters
    ----------
    parents
        parents[i] < i is the node that node i follows, or -1 for the end of the text (see tree.py).
    ranks
        The rank of node i among the candidates after its parent, from 0, the most probable one.

    Raises
    ------
    ValueError
        If they do not describe a tree.
    """

    parents: Sequence[int]
    ranks: Sequence[int]

    def __post_init__(self):
        try:
            parents = tuple(operator.index(parent) for parent in self.parents)
            ranks = tuple(operator.index(rank) for rank in self.ranks)
        except (TypeError, ValueError):
            parents, ranks = (0,), ()
        is_tree = all(-1 <= parent < node for node, parent in enumerate(parents))
        if not is_tree or len(ranks) != len(parents) or min(ranks, default=0) < 0:
            raise ValueError(
                "expected the parents and the ranks of a tree, two lists of one length, each parent -1 or an earlier "
                f"node, each rank 0 or more, got {self.parents!r:.60} and {self.ranks!r:.60}"
            )
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "ranks", ranks)

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path."""
        return depth_of(self.parents)

    @classmethod
    def chain(cls, depth: int) -> "Shape":
        """A tree with one branch.

        >>> Shape.chain(3)
        Shape(parents=(-1, 0, 1), ranks=(0, 0, 0))
        """
        return cls(range(-1, depth - 1), [0] * depth)

    @classmethod
    def widths(cls, *numbers: int) -> "Shape":
        """The tree in which every node at a depth has that depth's number of children.

        >>> Shape.widths(2, 1)
        Shape(parents=(-1, -1, 0, 1), ranks=(0, 1, 0, 0))
        """
        depths = range(1, len(numbers) + 1)
        return cls.of_paths(path for n in depths for path in itertools.product(*map(range, numbers[:n])))

    @classmethod
    def of_paths(cls, paths: Iterable[tuple[int, ...]]) -> "Shape":
        """The tree with a node for each of these paths, which are tuples of ranks from the text down (as in Medusa).

        Nodes are ordered by depth, then by their paths.
        """
        ordered = sorted(paths, key=lambda path: (len(path), path))
        node_of = {(): -1} | {path: node for node, path in enumerate(ordered)}
        return cls([node_of[path[:-1]] for path in ordered], [path[-1] for path in ordered])

    @classmethod
    def best(cls, n: int, weights: Sequence[Any] | np.ndarray, max_depth: int | None = None) -> "Shape":
        """The tree of n nodes with the most expected tokens per target call.

        Parameters
        ----------
        n
            The number of nodes; there are fewer if `weights` or `max_depth` leave no room for more.
        weights
            [n_ranks] or [n_depths, n_ranks]: the probability that the child of this rank is the one accepted, at every
            node or for each depth; not increasing with the rank.
        max_depth
            The greatest depth of a node; by default there is no limit.

        Examples
        --------
        >>> Shape.best(4, [0.6, 0.3])
        Shape(parents=(-1, -1, 0, 2), ranks=(0, 1, 0, 0))
        """
        weights = np.asarray(weights, dtype=np.float64)
        if weights.ndim not in (1, 2) or (np.diff(weights, axis=-1) > 0).any() or not (weights >= 0).all():
            raise ValueError(f"expected weights of 0 or more that do not increase with the rank, got {weights}")
        if weights.ndim == 1:
            weights = np.broadcast_to(weights, (n, len(weights)))
        weights = weights[:max_depth]  # [n_depths, n_ranks]
        chosen = []  # the paths of the nodes, the most valuable first
        waiting = []  # a heap of the nodes whose parent and elder sibling are chosen: (-value, path, parent's value)

        def push(path, of_parent):
            depth, rank = len(path) - 1, path[-1]
            if depth < len(weights) and rank < weights.shape[1]:
                heapq.heappush(waiting, (-of_parent * weights[depth, rank], path, of_parent))

        push((0,), 1.0)
        while waiting and len(chosen) < n:
            negative, path, of_parent = heapq.heappop(waiting)
            chosen.append(path)
            push((*path[:-1], path[-1] + 1), of_parent)  # the next sibling
            push((*path, 0), -negative)  # the first child
        return cls.of_paths(chosen)


@dataclass(frozen=True)
class Grown:
    """A tree that takes a different shape at each draft: the n nodes with the largest probabilities.

    Only trees without sampled tokens can grow: dropping a sampled token afterwards would bias the others.
    """

    n: int

    def __post_init__(self):
        if not (hasattr(self.n, "__index__") and self.n >= 1):
            raise ValueError(f"expected a tree of 1 node or more, a whole number, got {self.n!r:.60}")


def check_shape(tree, n_ranks, counted):
    """The tree. ValueError unless it is a Shape whose ranks are below n_ranks, the number of `counted`."""
    if not isinstance(tree, Shape):
        raise ValueError(f"expected a tree such as Shape.best(8, weights) or Shape.widths(2, 1), got {tree!r:.100}")
    if max(tree.ranks, default=0) >= n_ranks:
        raise ValueError(f"expected ranks below {n_ranks}, the number of {counted}, got {max(tree.ranks)}")
    return tree
