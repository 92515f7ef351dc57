"""Panels: a weight matrix cut so that each part stays in the cache while it is multiplied with all rows.

w [n_in, n_out] is cut into panels of several columns, and these into blocks of several rows. A block fits into a core's
cache, and a matmul of it with a few rows of x is small enough for OpenBLAS's kernels for small matrices, which copy
nothing. So each weight is read from memory once and used for all rows. The idea in four lines, without padding and
threads, with blocks as deep as w:

    >>> x, w = np.eye(3, 6, dtype=np.float32), np.arange(6 * 128, dtype=np.float32).reshape(6, 128)
    >>> panels = w.reshape(6, 2, 64).transpose(1, 0, 2).copy()  # [n_panels, n_in, 64]: once, when the model is loaded
    >>> y = x @ panels  # [n_panels, n_new, 64]: a small matmul for each panel
    >>> np.array_equal(y.transpose(1, 0, 2).reshape(3, 128), x @ w)
    True

The strategies differ in the shape of a block, and in the number of rows in one matmul:

    "panels"    an even number of rows: a row of zeros is added to an odd number. NumPy would send a single row to
                a different routine, and the kernels are slow for an odd last row. They keep 16 columns in a register
                and add the terms in order, whatever the number of rows. It is batch-invariant with some kernels only.
    "rows"      one row, and blocks whose longer side is contiguous in memory, as the routine for a single row prefers
                them. Each matmul is the same call whatever the number of rows, so it is invariant by construction.
"""

import math

import numpy as np

from .memory import aligned_zeros, give_back
from .threads import divide, worthwhile

N_ROWS = {"panels": 12, "rows": 1}  # strategy -> maximum rows of x in one matmul
BLOCK = (1024, 64)  # maximum rows and columns of a block
WIDE = (512, 1024)  # the same with "rows" if w has fewer rows than that
DIRECT = 128  # rows; from this number on, a copy costs more than a call for each panel
SMALL = 1_000_000  # multiplications; up to this many, OpenBLAS uses its kernels for small matrices
SUMS = 65536  # the partial sums of a matmul that fit in a core's cache beside a block; at least those of one group


class Panels:
    """A weight matrix [n_in, n_out] in panels. `x @ panels` is the product; `np.asarray(panels)` is the matrix.

    `blocks` is [n_panels, n_blocks, depth, width] float32; the last block and the last panel are padded with zeros. In
    memory the last axis is contiguous, or with "rows" the longer of the last two.
    """

    ndim = 2
    __array_ufunc__ = None  # so that NumPy leaves x @ panels to __rmatmul__
    dtype = np.dtype(np.float32)

    def __init__(self, w, strategy):
        w = np.asarray(w)
        self.shape, self.strategy = w.shape, strategy
        n_in, n_out = w.shape
        deepest, widest = WIDE if strategy == "rows" and n_in < WIDE[0] else BLOCK
        n_panels, n_blocks = -(-n_out // widest), -(-n_in // deepest)
        width = -(-n_out // n_panels)
        width += -width % 16  # round up to the columns of a register
        depth = -(-n_in // n_blocks)
        if strategy == "rows" and depth > width:
            self.blocks = aligned_zeros((n_panels, n_blocks, width, depth)).swapaxes(2, 3)
        else:
            self.blocks = aligned_zeros((n_panels, n_blocks, depth, width))
        for i, j in np.ndindex(n_panels, n_blocks):
            part = w[j * depth : (j + 1) * depth, i * width : (i + 1) * width]
            self.blocks[i, j, : len(part), : part.shape[1]] = part.copy("K")  # two copies transpose faster than one
        self.blocks.setflags(write=False)  # np.asarray may return a view of the blocks
        # [n_panels, n_in, width]; a few rows take one matmul with it
        self.whole = self.blocks[:, 0] if strategy == "panels" and (n_blocks, depth) == (1, n_in) else None
        give_back(w)

    def __reduce__(self):
        """A copy is packed again, in the same order in memory, so its results are bitwise identical."""
        return Panels, (np.asarray(self), self.strategy)

    def __rmatmul__(self, x):
        """x [n_new, n_in] @ w -> [n_new, n_out]"""
        n_new, (n_in, n_out) = len(x), self.shape
        if x.ndim != 2 or x.shape[1] != n_in:
            raise ValueError(f"expected x of shape [n_new, {n_in}], got {list(x.shape)}")
        if not n_new:
            return np.empty((0, n_out), np.float32)
        n_panels, n_blocks, depth, width = self.blocks.shape
        if self.whole is not None and n_new <= N_ROWS["panels"] and worthwhile(self.blocks.size, n_new) == 1:
            n_rows = n_new + n_new % 2
            y = np.empty((n_rows, n_panels, width), np.float32)
            if n_new < n_rows:
                x, rows = np.zeros((n_rows, n_in), np.float32), x
                x[:n_new] = rows
            np.matmul(x, self.whole, y.swapaxes(0, 1))
            return y.reshape(n_rows, -1)[:n_new, :n_out]
        if n_in < n_blocks * depth:
            x = np.pad(x, ((0, 0), (0, n_blocks * depth - n_in)))
        groups = grouped(x, N_ROWS[self.strategy])  # -> [n_groups, n_rows, n_in]
        n_groups, n_rows, _ = groups.shape
        y = np.empty((n_groups * n_rows, n_panels * width), np.float32)
        out = y.reshape(n_groups, n_rows, n_panels, width).transpose(2, 0, 1, 3)
        if n_blocks > 1 or (n_groups > 1 and n_panels > 1):
            self.sum_up(groups.reshape(n_groups, n_rows, n_blocks, depth).transpose(2, 0, 1, 3), out, n_new)
        elif worthwhile(self.blocks.size, n_new) == 1:
            np.matmul(groups, self.blocks, out)
        else:

            def work(parts):
                for panels in parts:
                    np.matmul(groups, self.blocks[panels], out[panels])

            divide(work, n_panels, self.blocks.size, n_new)
        return y[:n_new, :n_out]

    def sum_up(self, x, out, n_new):
        """x [n_blocks, n_groups, n_rows, depth] @ blocks, added up over the blocks in their order, into out.

        out is [n_panels, n_groups, n_rows, width]. A matmul covers several panels and a bunch of groups, as many as
        fit with their partial sums in the cache until these are added up.
        """
        n_blocks, n_groups, n_rows, _ = x.shape
        n_panels, *_, width = out.shape
        n_sums = n_blocks * n_rows * width  # the partial sums of one panel and one group
        # a few tokens and a small matrix take one matmul on one thread, and all its partial sums stay in the cache
        if n_panels * n_groups * n_sums <= SUMS and worthwhile(self.blocks.size, n_new) == 1:
            sums = np.empty((n_panels, *x.shape[:3], width), np.float32)
            np.add.reduce(np.matmul(x, self.blocks[:, :, None], sums), axis=1, out=out)
            return
        # otherwise the groups form bunches of about equal size, each with at most SUMS partial sums of one panel
        step = -(-n_groups // -(-n_groups * n_sums // SUMS))
        bunches = [slice(i, i + step) for i in range(0, n_groups, step)]
        # as many panels at a time as fit beside a bunch; many rows and one block have no partial sums: one panel
        direct = n_blocks == 1 and n_new >= DIRECT
        n_at_a_time = 1 if direct else max(1, SUMS // (n_sums * step))

        def work(parts):  # the panels that this thread takes
            scratch = np.empty(n_at_a_time * step * n_sums, np.float32)
            for panels in parts:
                # the blocks of these panels stay in the core's cache for all bunches, so they are read from memory once
                blocks = self.blocks[panels, :, None]
                for bunch in bunches:
                    rows = x[:, bunch]
                    if direct:
                        np.matmul(rows, blocks, out[panels, None, bunch])
                    else:
                        # a matmul for each block, into scratch; then the sum over the blocks, always in the same order
                        shape = len(blocks), *rows.shape[:3], width  # [len(blocks), n_blocks, n_bunch, n_rows, width]
                        sums = scratch[: math.prod(shape)].reshape(shape)
                        np.matmul(rows, blocks, sums)
                        np.add.reduce(sums, axis=1, out=out[panels, bunch])

        divide(work, n_panels, self.blocks.size, n_new, n_at_a_time)

    def columns(self, indices):
        """The columns of w at these indices, as rows: [...] int -> [..., n_in]. IndexError for an index outside w."""
        indices = np.asarray(indices)
        if indices.size and not (indices.dtype.kind in "iu" and 0 <= indices.min() <= indices.max() < self.shape[1]):
            got = f"{indices.min()} to {indices.max()} ({indices.dtype})"
            raise IndexError(f"expected indices from 0 to {self.shape[1] - 1}, got {got}")
        _, n_blocks, depth, width = self.blocks.shape
        panel, column = np.divmod(indices.astype(np.int64), width)
        return self.blocks[panel, :, :, column].reshape(*indices.shape, n_blocks * depth)[..., : self.shape[0]]

    def __array__(self, dtype=None, copy=None):
        n_panels, _, _, width = self.blocks.shape
        w = self.blocks.transpose(1, 2, 0, 3).reshape(-1, n_panels * width)
        return w[: self.shape[0], : self.shape[1]].astype(dtype or self.dtype, copy=bool(copy))


def grouped(x, max_rows):
    """The rows of x [..., n_new, n_in] in groups, one per matmul: [..., n_groups, n_rows, n_in], zeros added.

    n_rows is 1 if max_rows is. Otherwise max_rows and n_rows are even. All rows form one group if they fit. If not,
    n_rows is more than half of max_rows and chosen to need the fewest zeros.
    """
    if max_rows == 1:
        return x[..., None, :]
    *before, n_new, n_in = x.shape
    n_rows = n_new + n_new % 2
    if n_rows > max_rows:
        n_rows = min(range(max_rows, max_rows // 2, -2), key=lambda n_rows: -n_new % n_rows)
    n_groups = -(-n_new // n_rows)
    if n_new < n_groups * n_rows:
        filled = np.zeros((*before, n_groups * n_rows, n_in), np.float32)
        filled[..., :n_new, :] = x
        x = filled
    return x.reshape(*before, n_groups, n_rows, n_in)
