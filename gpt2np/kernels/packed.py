"""A weight matrix in the layout of a strategy: `x @ packed` is the product, `np.asarray(packed)` the matrix.

`Plain` is the layout that everybody starts with. It is fast for one row and not batch-invariant, and it is here so that
the other two (panels.py, slabs.py) are measured against it.
"""

import numpy as np

from .memory import aligned_zeros, give_back


class Packed:
    """A weight matrix [n_in, n_out] float32. Subclasses store it, multiply with it, and return its columns."""

    ndim = 2
    __array_ufunc__ = None  # so that NumPy leaves x @ packed to __rmatmul__
    dtype = np.dtype(np.float32)

    def __init__(self, w):
        w = np.asarray(w)
        self.shape = w.shape
        self.store(w)
        give_back(w)

    def __reduce__(self):
        """A copy is packed again, in the same order in memory, so its results are bitwise identical."""
        return type(self), (np.asarray(self),)

    def __rmatmul__(self, x):
        """x [n_new, n_in] @ w -> [n_new, n_out]"""
        n_in, n_out = self.shape
        if x.ndim != 2 or x.shape[1] != n_in:
            raise ValueError(f"expected x of shape [n_new, {n_in}], got {list(x.shape)}")
        return self.product(x) if len(x) else np.empty((0, n_out), np.float32)

    def columns(self, indices):
        """The columns of w at these indices, as rows: [...] int -> [..., n_in]. IndexError for an index outside w."""
        indices = np.asarray(indices)
        if indices.size and not (indices.dtype.kind in "iu" and 0 <= indices.min() <= indices.max() < self.shape[1]):
            got = f"{indices.min()} to {indices.max()} ({indices.dtype})"
            raise IndexError(f"expected indices from 0 to {self.shape[1] - 1}, got {got}")
        return self.take(indices.astype(np.int64))

    def __array__(self, dtype=None, copy=None):
        return self.whole().astype(dtype or self.dtype, copy=bool(copy))


class Plain(Packed):
    """The matrix itself, and `x @ w` with whatever the BLAS does."""

    strategy = "plain"

    def store(self, w):
        self.w = np.array(w, np.float32, order="K")  # the transpose of wte stays a transpose
        self.w.setflags(write=False)

    def product(self, x):
        return x @ self.w

    def take(self, indices):
        return self.w.T[indices]

    def whole(self):
        return self.w


class Parts(Packed):
    """A matrix cut by columns into `parts` [n_parts, n_in, width], the last one filled up with zeros.

    In memory, `parts` is contiguous in this order, or with `transposed` each part has its columns one after the other.
    """

    def cut(self, w, width, transposed=False):
        n_in, n_out = w.shape
        n_parts = -(-n_out // width)
        shape = (n_parts, width, n_in) if transposed else (n_parts, n_in, width)
        self.parts = aligned_zeros(shape)
        self.parts = self.parts.swapaxes(1, 2) if transposed else self.parts
        for i in range(n_parts):
            columns = w[:, i * width : (i + 1) * width]
            self.parts[i, :, : columns.shape[1]] = columns.copy("K")  # two copies transpose faster than one
        self.parts.setflags(write=False)  # np.asarray may return a view

    def take(self, indices):
        part, column = np.divmod(indices, self.parts.shape[2])
        return self.parts[part, :, column]

    def whole(self):
        return self.parts.transpose(1, 0, 2).reshape(self.shape[0], -1)[:, : self.shape[1]]
