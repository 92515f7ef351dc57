"""The exercises of notebook 11."""

import heapq

import numpy as np

from speculative import sample_token


def without_replacement(q, k, rng):
    """k pairs (token, row): k different tokens, each drawn from its row.

    `sample_token(row, rng)` draws a token from a row, which is a distribution [n_vocab].

    q : [n_vocab] float64; it must not be written to. If it has fewer than k tokens of
    positive probability, there are fewer pairs.

    The first row is q. Each later one is the distribution that its token was drawn from,
    given those before it.
    """
    # What is left is renormalised before each draw: that is the row, and the draw comes from it.
    left, found = q.copy(), []
    while len(found) < k and left.any():
        row = left / left.sum()
        found.append((sample_token(row, rng), row))
        left[found[-1][0]] = 0
    return found


def my_mask(parents, n_text):
    """[n, n_text + n] bool: row i is True where node i attends to.

    It attends to the text, to the nodes on its path, and to itself.

    parents : list of int, parents[i] < i; -1 stands for the text.
    n_text : int, the tokens of text; the nodes come after them, in order.
    """
    # A node sees what its parent sees, and itself.
    mask = np.zeros((len(parents), n_text + len(parents)), dtype=bool)
    mask[:, :n_text] = True
    for i, parent in enumerate(parents):
        if parent >= 0:
            mask[i] |= mask[parent]
        mask[i, n_text + i] = True
    return mask


def most_valuable(n, w):
    """A list of the n nodes with the largest products of w along their paths.

    A node is a tuple of ranks from 0. The list may have any order.

    w : list of float, w[b] is the value of rank b; not increasing. Nodes have at most
    len(w) children.

    For n = 4 and w = [0.6, 0.3] they are (0,), (0, 0), (1,), (0, 0, 0): values 0.6, 0.36,
    0.3, 0.216.
    """
    # Each node taken from the heap puts its first child and its next sibling into it.
    found, heap = [], [(-w[0], (0,))]
    while len(found) < n:
        value, node = heapq.heappop(heap)
        found.append(node)
        heapq.heappush(heap, (value * w[0], (*node, 0)))
        if node[-1] + 1 < len(w):
            sibling = value / w[node[-1]] * w[node[-1] + 1]
            heapq.heappush(heap, (sibling, (*node[:-1], node[-1] + 1)))
    return found
