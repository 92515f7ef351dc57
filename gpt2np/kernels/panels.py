"""Panels: a weight matrix cut so that each part stays in a core's cache while it is multiplied with all rows at once.

w [n_in, n_out] is cut by columns into panels, and a deep matrix also by rows into blocks. A block fits into a core's
cache, and a matmul of it with a few rows of x is small enough for OpenBLAS's kernels for small matrices, which copy
nothing. So each weight is read from memory once and used for all rows. The idea in three lines, without padding and
threads:

    >>> x, w = np.eye(3, 6, dtype=np.float32), np.arange(6 * 128, dtype=np.float32).reshape(6, 128)
    >>> panels = w.reshape(6, 2, 64).transpose(1, 0, 2).copy()  # [n_panels, n_in, 64]: once, when the model is loaded
    >>> y = x @ panels  # [n_panels, n_new, 64]: a small matmul for each panel
    >>> np.array_equal(y.transpose(1, 0, 2).reshape(3, 128), x @ w)
    True

A matmul has an even number of rows: a row of zeros is added to an odd number. NumPy would send a single row to a
different routine, and the kernels are slow for an odd last row. Two threads that read the weights from memory need even
more time for two rows than for four, so they get at least four. The kernels keep 16 columns in a register and add the
terms in order, whatever the number of rows. Only those for AVX-512 do this, so elsewhere panels are not
batch-invariant.
"""

import numpy as np

from .packed import Parts
from .threads import MANY, divide, worthwhile

N_ROWS = 12  # maximum rows of x in one matmul
BLOCK = (1024, 64)  # maximum rows and columns of a block
SMALL = 1_000_000  # multiplications; up to this many, OpenBLAS uses its kernels for small matrices


class Panels(Parts):
    """A weight matrix [n_in, n_out] in panels, `parts`, each of which is multiplied block by block."""

    strategy = "panels"

    def store(self, w):
        n_in, n_out = w.shape
        n_panels, n_blocks = -(-n_out // BLOCK[1]), -(-n_in // BLOCK[0])
        width = -(-n_out // n_panels)
        self.cut(w, width + -width % 16)
        depth = -(-n_in // n_blocks)
        self.rows = [slice(i, i + depth) for i in range(0, n_in, depth)]  # of each block
        self.blocks = [self.parts[:, None, rows] for rows in self.rows]

    def product(self, x):
        n_new, (n_panels, _, width) = len(x), self.parts.shape
        is_shared = worthwhile(self.parts.size, n_new) > 1
        groups = grouped(x, N_ROWS, least=4 if is_shared else 2)  # -> [n_groups, n_rows, n_in]
        n_groups, n_rows, _ = groups.shape
        y = np.empty((n_groups * n_rows, n_panels * width), np.float32)
        out = y.reshape(n_groups, n_rows, n_panels, width).transpose(2, 0, 1, 3)

        def multiply(parts):  # the panels that a thread takes; the blocks are added up in their order
            for panels in parts:
                np.matmul(groups[..., self.rows[0]], self.blocks[0][panels], out[panels])
                for rows, block in zip(self.rows[1:], self.blocks[1:]):
                    out[panels] += np.matmul(groups[..., rows], block[panels])

        if is_shared or n_new >= MANY:
            divide(multiply, n_panels, self.parts.size, n_new, 1 if n_new >= MANY else None)
        elif len(self.blocks) == 1:
            np.matmul(groups, self.blocks[0], out)
        else:
            multiply([slice(None)])
        return y[:n_new, : self.shape[1]]


def grouped(x, max_rows, least=2):
    """The rows of x [..., n_new, n_in] in groups, one per matmul: [..., n_groups, n_rows, n_in], zeros added.

    max_rows, least and n_rows are even. All rows form one group if they fit. If not, n_rows is more than half of
    max_rows and chosen to need the fewest zeros.
    """
    *before, n_new, n_in = x.shape
    n_rows = max(n_new + n_new % 2, least)
    if n_rows > max_rows:
        n_rows = min(range(max_rows, max_rows // 2, -2), key=lambda n_rows: -n_new % n_rows)
    n_groups = -(-n_new // n_rows)
    if n_new < n_groups * n_rows:
        filled = np.zeros((*before, n_groups * n_rows, n_in), np.float32)
        filled[..., :n_new, :] = x
        x = filled
    return x.reshape(*before, n_groups, n_rows, n_in)
