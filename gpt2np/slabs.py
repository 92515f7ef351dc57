"""Slabs: always eight rows, so that two to eight rows cost what one row costs, on any BLAS.

Where no kernel is batch-invariant over several rows, as with AVX2, "rows" multiplies the rows of x one by one: more
rows cost more. The strategy "eights" makes every product the same call instead, [8, 64] @ [64, 256], with rows of zeros
added. The same call for any number of rows is invariant by construction, if a row's place among the eight does not
matter (the probe in matmul.py looks). A matrix is cut into slabs of 256 columns, and these into blocks of 64 rows. The
partial sums of a slab's blocks go into one small array, used again for each slab, and are added up there in order, so
that they never leave the cache.

The price is eight times the arithmetic for one row. A model that does not fit into the cache waits for its weights in
any case, and five rows become cheaper than with "rows"; a small model would only be slower. For one token, the plain
`x @ w` is faster than either: that is what batch invariance costs.
Next: threads.py
"""

import numpy as np

from .panels import give_back, grouped
from .threads import share, worthwhile

N_ROWS = 8  # of x in one product
DEEP, WIDE = 64, 256  # most rows and columns of a block


class Slabs:
    """A weight matrix [n_in, n_out] in slabs, [n_slabs, n_blocks, DEEP, at most WIDE]. Used like Panels."""

    __array_ufunc__ = None
    dtype, strategy = np.dtype(np.float32), "eights"

    def __init__(self, w):
        self.shape = n_in, n_out = w.shape
        n_blocks, n_slabs = -(-n_in // DEEP), -(-n_out // WIDE)
        wide = -(-n_out // n_slabs)
        wide += -wide % 16
        self.slabs = np.zeros((n_slabs, n_blocks, DEEP, wide), np.float32)
        for i, slab in enumerate(self.slabs):
            part = w[:, i * wide : (i + 1) * wide]
            slab.reshape(-1, wide)[:n_in, : part.shape[1]] = part
        give_back(w)

    def __rmatmul__(self, x):
        """x [n_new, n_in] @ w -> [n_new, n_out]"""
        n_new, (n_in, n_out) = len(x), self.shape
        n_slabs, n_blocks, _, wide = self.slabs.shape
        if n_in % DEEP:
            x = np.pad(x, ((0, 0), (0, -n_in % DEEP)))
        groups = grouped(x, N_ROWS, self.strategy)  # -> [n_groups, N_ROWS, n_in]
        groups = groups.reshape(-1, N_ROWS, n_blocks, DEEP).transpose(0, 2, 1, 3)
        y = np.empty((len(groups), N_ROWS, n_slabs, wide), np.float32)

        def work(parts):
            sums = np.empty((n_blocks, N_ROWS, wide), np.float32)
            for i in parts:
                for group, row in zip(groups, y):
                    np.matmul(group, self.slabs[i], sums)
                    np.add.reduce(sums, axis=0, out=row[:, i])

        n = min(n_slabs, worthwhile(self.slabs.size, N_ROWS * len(groups)))
        share(work, range(n_slabs), n)
        return y.reshape(-1, n_slabs * wide)[:n_new, :n_out]

    def columns(self, indices):
        """The columns of w at these indices, as rows: [n] -> [n, n_in]"""
        slab, column = np.divmod(indices, self.slabs.shape[-1])
        return self.slabs[slab, :, :, column].reshape(len(slab), -1)[:, : self.shape[0]]

    def __array__(self, dtype=None, copy=None):
        w = self.slabs.transpose(1, 2, 0, 3).reshape(-1, len(self.slabs) * self.slabs.shape[-1])
        return w[: self.shape[0], : self.shape[1]].astype(dtype or self.dtype, copy=False)
