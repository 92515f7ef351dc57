"""Panels: a weight matrix cut so that each part stays in the cache while it is multiplied with all rows.

`Panels` cuts w [n_in, n_out] into panels of 64 columns, each stored row by row. A panel fits into a core's cache, and
its product with a few rows of x is small enough for OpenBLAS's kernels for small matrices, which copy nothing; so each
weight is read from memory once and used for all rows. These kernels keep 16 columns in a register and add the terms in
order, whatever the number of rows. The idea in four lines, without padding and threads:

    >>> x, w = np.eye(3, 6, dtype=np.float32), np.arange(6 * 128, dtype=np.float32).reshape(6, 128)
    >>> panels = w.reshape(6, 2, 64).transpose(1, 0, 2).copy()  # [n_panels, n_in, 64]: once, when the model is loaded
    >>> y = x @ panels  # [n_panels, n_new, 64]: a small product for each panel
    >>> np.array_equal(y.transpose(1, 0, 2).reshape(3, 128), x @ w)
    True

Two strategies use panels. They differ in the number of rows in one product:

    "panels"    several, an even number: a row of zeros is added to an odd number. NumPy would send a single row to
                another routine, and the kernels are slow for an odd last row. Batch-invariant with some kernels only.
    "rows"      one. Each product is the same call whatever the number of rows: invariant by construction.

Next: slabs.py
"""

import mmap

import numpy as np

from .threads import multiply

N_COLUMNS = 64  # of a panel: four registers of 16 float32 each
N_DEEP = 1024  # most rows of a panel; longer ones are cut, to stay within SMALL
N_ROWS = 12  # most rows of x in one product
SMALL = 1_000_000  # multiplications; up to this many, OpenBLAS uses its kernels for small matrices


class Panels:
    """A weight matrix [n_in, n_out] in panels. `x @ panels` is the product; `np.asarray(panels)` is the matrix."""

    __array_ufunc__ = None  # so that NumPy leaves x @ panels to __rmatmul__
    dtype = np.dtype(np.float32)

    def __init__(self, w, strategy):
        self.shape, self.strategy = w.shape, strategy
        if isinstance(w, Panels):
            self.chunks = w.chunks  # the two strategies share a layout
        else:
            self.chunks = [cut(w[begin : begin + N_DEEP]) for begin in range(0, len(w), N_DEEP)]
            give_back(w)

    def __rmatmul__(self, x):
        """x [n_new, n_in] @ w -> [n_new, n_out]"""
        groups = grouped(x, N_ROWS, self.strategy)  # -> [n_groups, n_rows, n_in]
        y = chunk_product(groups[..., :N_DEEP], self.chunks[0])
        for i, chunk in enumerate(self.chunks[1:], 1):
            y += chunk_product(groups[..., i * N_DEEP : (i + 1) * N_DEEP], chunk)
        return y[: len(x), : self.shape[1]]

    def columns(self, indices):
        """The columns of w at these indices, as rows: [n] -> [n, n_in]"""
        panel, column = np.divmod(indices, N_COLUMNS)
        return np.concatenate([chunk[panel, 0, :, column] for chunk in self.chunks], axis=-1)

    def __array__(self, dtype=None, copy=None):
        parts = [chunk[:, 0].transpose(1, 0, 2).reshape(chunk.shape[2], -1) for chunk in self.chunks]
        return np.concatenate(parts)[:, : self.shape[1]].astype(dtype or self.dtype, copy=False)


def chunk_product(groups, chunk):
    """groups [n_groups, n_rows, n_in] @ chunk -> [n_groups * n_rows, n_panels * N_COLUMNS]"""
    n_groups, n_rows, _ = groups.shape
    if n_groups == 1:
        y = np.empty((n_rows, len(chunk), N_COLUMNS), np.float32)
        multiply(groups, chunk, y.swapaxes(0, 1)[:, None], n_rows)
        return y.reshape(n_rows, -1)
    # NumPy computes the products in the order of y in memory. With several groups, y is laid out so that all of
    # them use a panel while it is in the cache; otherwise each group would read all of w again.
    y = np.empty((len(chunk), n_groups, n_rows, N_COLUMNS), np.float32)
    multiply(groups, chunk, y, n_groups * n_rows)
    return y.transpose(1, 2, 0, 3).reshape(n_groups * n_rows, -1)


def cut(w):
    """w [depth, n_out] in panels, [n_panels, 1, depth, N_COLUMNS] float32; the last one is padded with zeros."""
    depth, n_out = w.shape
    n_whole, rest = divmod(n_out, N_COLUMNS)
    panels = np.empty((n_whole + bool(rest), 1, depth, N_COLUMNS), np.float32)
    panels[:n_whole, 0] = w[:, : n_out - rest].reshape(depth, n_whole, N_COLUMNS).transpose(1, 0, 2)
    if rest:
        panels[-1, 0, :, :rest] = w[:, n_out - rest :]
        panels[-1, 0, :, rest:] = 0
    return panels


def give_back(array):
    """If the array is a view of a mapped file, release the memory of its pages; they are read again when touched."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap) and memoryview(array).readonly and hasattr(array, "madvise"):
        array.madvise(mmap.MADV_DONTNEED)


def grouped(x, max_rows, strategy):
    """The rows of x [..., n_new, n_in] in groups of one product each, [..., n_groups, n_rows, n_in], zeros added.

    n_rows is 1 with "rows" and max_rows with "eights"; with "panels" it is even and at most max_rows, an even number.
    """
    *before, n_new, n_in = x.shape
    if strategy == "rows":
        return x.reshape(*before, n_new, 1, n_in)
    n_groups = -(-n_new // max_rows)
    n_rows = -(-n_new // n_groups)
    n_rows = n_rows + n_rows % 2 if strategy == "panels" else max_rows
    if n_new < n_groups * n_rows:
        filled = np.zeros((*before, n_groups * n_rows, n_in), np.float32)
        filled[..., :n_new, :] = x
        x = filled
    return x.reshape(*before, n_groups, n_rows, n_in)
