"""Slabs: a weight matrix cut so that each part stays in the caches while one row after the other is multiplied with it.

w [n_in, n_out] is cut by columns into slabs. A slab is read from memory for the first row, and from the caches for the
others. Each product is that of one row and one slab. It is the same call whatever the number of rows, so the result is
batch-invariant by construction, with any BLAS. In three lines:

    >>> x, w = np.eye(3, 6, dtype=np.float32), np.arange(6 * 128, dtype=np.float32).reshape(6, 128)
    >>> slabs = w.reshape(6, 2, 64).transpose(1, 0, 2).copy()  # [n_slabs, n_in, 64]: once, when the model is loaded
    >>> y = np.stack([x[:, None, :] @ slab for slab in slabs])  # [n_slabs, n_new, 1, 64]: a row and a slab each
    >>> np.array_equal(y[:, :, 0].transpose(1, 0, 2).reshape(3, 128), x @ w)
    True

A product of a row and a large slab is shared among the BLAS's own threads. They wait for it in a loop, so handing over
costs little on any number of cores. Python's threads (threads.py) would have to be woken for every matrix.
"""

import numpy as np

from .cores import blas_threads
from .packed import Parts

LARGE = 2**19  # weights, 2 MB: OpenBLAS shares a matrix-vector product of this size among its threads
SMALL = 2**17  # weights of a slab of a smaller matrix, which stays in one core's cache
SHARE = 2**18  # weights of a large slab for each thread, at least for two: they stay in its cache


class Slabs(Parts):
    """A weight matrix [n_in, n_out] in slabs.

    A large matrix has the columns of a slab one after the other in memory, so that each result is a sum over adjacent
    numbers. A small one has its longer side adjacent.
    """

    strategy = "slabs"

    def store(self, w):
        n_in, n_out = w.shape
        is_large = w.size > LARGE
        size = max(LARGE, SHARE * blas_threads()) if is_large else SMALL
        n_slabs = max(1, w.size // size)
        width = -(-n_out // n_slabs)
        self.cut(w, width + -width % 16, transposed=is_large or n_in > n_out)
        self.slabs = [*self.parts]

    def product(self, x):
        n_new, (n_slabs, _, width) = len(x), self.parts.shape
        if n_new == n_slabs == 1:  # the same call without the loop: a small model has hundreds of these in a token
            return (x @ self.slabs[0])[:, : self.shape[1]]
        y = np.empty((n_new, n_slabs, 1, width), np.float32)
        rows = x[:, None, :]
        for i, slab in enumerate(self.slabs):
            np.matmul(rows, slab, y[:, i])  # [n_new, 1, n_in] @ [n_in, width]
        return y.reshape(n_new, -1)[:, : self.shape[1]]
