"""The exercises of notebook 11."""

import heapq

import numpy as np

from speculative import sample_token


def without_replacement(q, k, rng):
    """What is left is renormalised before each draw: that is the row, and the draw comes from it."""
    left, found = q.copy(), []
    while len(found) < k and left.any():
        row = left / left.sum()
        found.append((sample_token(row, rng), row))
        left[found[-1][0]] = 0
    return found


def my_mask(parents, n_text):
    """A node sees what its parent sees, and itself."""
    mask = np.zeros((len(parents), n_text + len(parents)), dtype=bool)
    mask[:, :n_text] = True
    for i, parent in enumerate(parents):
        if parent >= 0:
            mask[i] |= mask[parent]
        mask[i, n_text + i] = True
    return mask


def most_valuable(n, w):
    """Each node taken from the heap puts its first child and its next sibling into it."""
    found, heap = [], [(-w[0], (0,))]
    while len(found) < n:
        value, node = heapq.heappop(heap)
        found.append(node)
        heapq.heappush(heap, (value * w[0], (*node, 0)))
        if node[-1] + 1 < len(w):
            sibling = value / w[node[-1]] * w[node[-1] + 1]
            heapq.heappush(heap, (sibling, (*node[:-1], node[-1] + 1)))
    return found
