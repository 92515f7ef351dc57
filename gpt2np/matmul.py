"""A product x @ w for few rows that costs about what one row costs, and gives a row the same bits in any company.

To generate a token is to read every weight once, so its time is that of the memory. Checking K + 1 tokens at once reads
the weights once, too, and should cost the same: on that rests the gain of speculative decoding. With the plain `x @ w`
it does not. One row is a matrix-vector product, which streams the weights; for more rows BLAS first copies all of w
into an order of its own, three to four times the traffic. And it adds up the terms of a row in another order when the
number of rows changes: the last bits differ, and one day a greedy text.

The remedy is to do the copying once, when the model is loaded. `Panels` cuts w [n_in, n_out] into panels of 64 columns,
each with its rows one after the other. A panel fits the cache of a core, where a product with a few rows of x is small
enough for the kernels that OpenBLAS has for small matrices, which copy nothing; so each weight comes from memory once,
and meets all rows. These kernels keep 16 columns in a register and add the terms in order, whatever the number of rows.
Half of the panels go to a second thread, where the product is large enough to pay for the hand-over (two_threads.py).

    python main.py bench        measures all this on your machine

On two cores of an AMD EPYC with AVX-512, GPT-2's 355M shape, it says: a pass for 5 tokens takes 2.63 times as long as a
pass for one with plain products, and 1.09 times with panels; for 9 tokens 2.87 and 1.31. One token takes as long as a
bare matrix-vector product with every weight.

Two strategies do the same on the same panels. They differ in how many rows a product takes:

    "panels"    several, an even number: to an odd one a row of zeros is added. One row alone would go another way in
                NumPy, and the kernels take their time for an odd last row.
    "rows"      one. Each product is the same call whatever the number of rows: invariant by construction on any BLAS.

`probe` finds the fastest that keeps the bits on this machine; GPT2NP_MATMUL=rows in the environment, or `use`, decides
otherwise. Leaves out: half precision; to convert it takes longer in NumPy than to read twice as much.
Next: two_threads.py
"""

import mmap
import os
from functools import lru_cache
from time import perf_counter

import numpy as np

from .two_threads import N_THREADS, multiply

STRATEGIES = ("panels", "rows")
N_COLUMNS = 64  # of a panel: four registers of 16 numbers
N_DEEP = 1024  # the longest panel; a longer one is cut, for the limit below
N_ROWS = 12  # the most rows in one product
SMALL = 1_000_000  # multiplications: up to here OpenBLAS takes its kernels for small matrices


class Panels:
    """A weight matrix [n_in, n_out] in panels. `x @ panels` is the product; `np.asarray(panels)` the matrix again."""

    __array_ufunc__ = None  # x @ panels is then left to __rmatmul__
    dtype = np.dtype(np.float32)

    def __init__(self, w):
        self.shape = w.shape
        self.chunks = [cut(w[begin : begin + N_DEEP]) for begin in range(0, len(w), N_DEEP)]
        give_back(w)

    def __rmatmul__(self, x):
        """x [n_new, n_in] @ w -> [n_new, n_out]"""
        groups = grouped(x)  # -> [n_groups, n_rows, n_in]
        y = self.multiply(groups[..., :N_DEEP], self.chunks[0])
        for i, chunk in enumerate(self.chunks[1:], 1):
            y += self.multiply(groups[..., i * N_DEEP : (i + 1) * N_DEEP], chunk)
        return y[: len(x), : self.shape[1]]

    def multiply(self, groups, chunk):
        """groups [n_groups, n_rows, n_in] @ chunk -> [n_groups * n_rows, n_panels * N_COLUMNS]"""
        n_groups, n_rows, _ = groups.shape
        # NumPy takes the products in the order of y in memory. Of several groups each meets a panel while it is in the
        # cache, before the next panel: else all of w would be read again for each group.
        if n_groups > 1:
            y = np.empty((len(chunk), n_groups, n_rows, N_COLUMNS), np.float32)
        else:
            y = np.empty((n_rows, len(chunk), 1, N_COLUMNS), np.float32).transpose(1, 2, 0, 3)
        multiply(groups, chunk, y)
        return y.transpose(1, 2, 0, 3).reshape(n_groups * n_rows, -1)

    def columns(self, indices):
        """Some columns of w, as rows: [n] -> [n, n_in]"""
        panel, column = np.divmod(indices, N_COLUMNS)
        return np.concatenate([chunk[panel, 0, :, column] for chunk in self.chunks], axis=-1)

    def __array__(self, dtype=None, copy=None):
        parts = [chunk[:, 0].transpose(1, 0, 2).reshape(chunk.shape[2], -1) for chunk in self.chunks]
        return np.concatenate(parts)[:, : self.shape[1]].astype(dtype or self.dtype, copy=False)


class Embedding:
    """wte [n_vocab, n_embd], whose transpose is in panels: `wte[tokens]` and `x @ wte.T` read the same numbers."""

    def __init__(self, wte):
        self.shape, self.dtype = wte.shape, Panels.dtype
        self.T = Panels(wte.T)

    def __getitem__(self, tokens):
        return self.T.columns(tokens)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.T, dtype).T


def cut(w):
    """w [depth, n_out] in panels, [n_panels, 1, depth, N_COLUMNS] float32; the last one is filled up with zeros."""
    depth, n_out = w.shape
    n_whole, rest = divmod(n_out, N_COLUMNS)
    panels = np.empty((n_whole + bool(rest), 1, depth, N_COLUMNS), np.float32)
    panels[:n_whole, 0] = w[:, : n_out - rest].reshape(depth, n_whole, N_COLUMNS).transpose(1, 0, 2)
    if rest:
        panels[-1, 0, :, :rest] = w[:, n_out - rest :]
        panels[-1, 0, :, rest:] = 0
    return panels


def give_back(array):
    """Let go of the memory of the file that an array is a view of, if it is; a page comes back when it is touched."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap) and memoryview(array).readonly and hasattr(array, "madvise"):
        array.madvise(mmap.MADV_DONTNEED)


def product(x, w, most_rows=N_ROWS):
    """x [n, n_new, n_in] @ w [n, n_in, n_out] -> [n, n_new, n_out], for the heads of attention.

    Its rows keep their bits where n_out is a multiple of 16, most_rows * n_in * n_out is at most SMALL, and also when
    rows are added to w for which x has zeros.
    """
    groups = grouped(x, most_rows)  # -> [n, n_groups, n_rows, n_in]
    y = np.empty((*groups.shape[:-1], w.shape[-1]), np.float32)
    multiply(groups, w[:, None], y)
    return y.reshape(len(w), -1, w.shape[-1])[:, : x.shape[1]]


def grouped(x, most_rows=N_ROWS):
    """The rows of x [..., n_new, n_in] in groups for one product each, [..., n_groups, n_rows, n_in], zeros added."""
    *before, n_new, n_in = x.shape
    if strategy() == "rows":
        return x.reshape(*before, n_new, 1, n_in)
    n_groups = -(-n_new // most_rows)
    n_rows = -(-n_new // n_groups)
    n_rows += n_rows % 2
    if n_new < n_groups * n_rows:
        filled = np.zeros((*before, n_groups * n_rows, n_in), np.float32)
        filled[..., :n_new, :] = x
        x = filled
    return x.reshape(*before, n_groups, n_rows, n_in)


def padded(n, most):
    """How many columns attention computes for n tokens, of the `most` that the cache has: see `product`."""
    return most if strategy() == "rows" else min(most, round_up(n))


def round_up(n):
    """The next multiple of 16."""
    return -(-n // 16) * 16


# ------------------------------------------------------------------------------------------------ the choice

chosen = None


def strategy():
    return chosen or use(os.environ.get("GPT2NP_MATMUL"))


def use(name=None):
    """Set the strategy by name, or have it chosen: the fastest that keeps the bits. Returns its name."""
    global chosen
    if name and name not in STRATEGIES:
        raise ValueError(f"unknown strategy {name!r} for products: expected {' or '.join(STRATEGIES)}")
    chosen = name or probe()["strategy"]
    return chosen


def describe():
    """What products do here: the strategy, and what the probe found of each (a dict for JSON)."""
    return {"strategy": strategy(), "probe": probe(), "n_threads": N_THREADS}


@lru_cache
def probe():
    """Try the strategies on this machine, in some milliseconds: the bits, and the time for one row and for five."""
    global chosen
    before, found = chosen, {name: {} for name in STRATEGIES}
    x, w = np.ones((5, 1024), np.float32), Panels(np.ones((1024, 1024), np.float32))
    times = {(name, n_rows): [] for n_rows in (1, 5) for name in STRATEGIES}
    for name in STRATEGIES:
        chosen = name
        found[name]["invariant"] = is_invariant()
    for chosen, n_rows in 10 * list(times):  # in turn, so that a busy moment is one for both
        started = perf_counter()
        x[:n_rows] @ w
        times[chosen, n_rows].append(1e3 * (perf_counter() - started))
    for name in STRATEGIES:
        found[name]["milliseconds"] = [min(times[name, n_rows]) for n_rows in (1, 5)]
    chosen = before
    kept = [name for name in STRATEGIES if found[name]["invariant"] or name == "rows"]
    return {"strategy": min(kept, key=lambda name: sum(found[name]["milliseconds"])), **found}


def is_invariant():
    """Whether rows keep their bits among 1 to 12, and in attention when columns, or rows of weight 0, are added."""
    rng = np.random.default_rng(0)
    x, matrix, q, keys, values = (
        rng.standard_normal(shape, np.float32)
        for shape in ((12, 768), (768, 80), (1, 12, 64), (1, 64, 1024), (1, 1024, 80))
    )
    w, weights = Panels(matrix), np.float32(np.arange(1024) < 100) * x[None, :, :1]
    linear, scores, heads = x @ w, product(q, keys), product(weights, values)
    for n in range(1, 13):
        n_seq = padded(80 + 75 * n, 1024)
        parts = x[:n] @ w, product(q[:, :n], keys[..., :n_seq]), product(weights[:, :n, :n_seq], values[:, :n_seq])
        wholes = linear[:n], scores[:, :n, :n_seq], heads[:, :n]
        if not all(map(np.array_equal, parts, wholes)):
            return False
    return True
