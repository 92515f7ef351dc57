"""A product x @ w for a few rows that costs about what one row costs, and is batch-invariant: a row's result is bitwise
identical whatever other rows are computed with it.

Generating a token reads every weight once, so memory bandwidth sets its time. Checking K + 1 tokens at once also reads
the weights once and should cost the same: the gain of speculative decoding rests on that. With the plain `x @ w` it
costs more. A product with one row is a matrix-vector product, which streams the weights; for more rows BLAS first
copies all of w into a layout of its own, three to four times the memory traffic. It also adds up the terms of a row in
a different order when the number of rows changes: the last bits differ, and sooner or later the greedy text does too.

The remedy is to copy once, when the model is loaded. `Panels` cuts w [n_in, n_out] into panels of 64 columns, each
stored row by row. A panel fits into a core's cache, and its product with a few rows of x is small enough for OpenBLAS's
kernels for small matrices, which copy nothing; so each weight is read from memory once and used for all rows. These
kernels keep 16 columns in a register and add the terms in order, whatever the number of rows. If a product is large
enough to pay for the hand-over, half of its panels go to a second thread (two_threads.py).
The idea in four lines, without padding and threads:

    >>> x, w = np.eye(3, 6, dtype=np.float32), np.arange(6 * 128, dtype=np.float32).reshape(6, 128)
    >>> panels = w.reshape(6, 2, 64).transpose(1, 0, 2).copy()  # [n_panels, n_in, 64]: once, when the model is loaded
    >>> y = x @ panels  # [n_panels, n_new, 64]: a small product for each panel
    >>> np.array_equal(y.transpose(1, 0, 2).reshape(3, 128), x @ w)
    True

`python main.py bench` measures it. On two cores of an AMD EPYC with AVX-512, GPT-2's 355M shape: a pass for 5 tokens
takes 2.63 times as long as a pass for one with plain products, and 1.09 times with panels; for 9 tokens 2.87 and 1.31.
One token takes as long as a bare matrix-vector product with every weight.

Two strategies compute this on the same panels. They differ in the number of rows in one product:

    "panels"    several, an even number: a row of zeros is added to an odd number. NumPy would send a single row to
                another routine, and the kernels are slow for an odd last row.
    "rows"      one. Each product is the same call whatever the number of rows: invariant by construction on any BLAS.

`probe` finds the fastest strategy that is batch-invariant on this machine; GPT2NP_MATMUL=rows in the environment, or
`use`, overrides it. Leaves out: half precision, since NumPy converts it more slowly than it reads twice the bytes.
Next: two_threads.py
"""

import mmap
import os
from functools import lru_cache
from time import perf_counter

import numpy as np

from .two_threads import N_THREADS, multiply

STRATEGIES = ("panels", "rows")
N_COLUMNS = 64  # of a panel: four registers of 16 float32 each
N_DEEP = 1024  # most rows of a panel; longer ones are cut, to stay within SMALL
N_ROWS = 12  # most rows of x in one product
SMALL = 1_000_000  # multiplications; up to this many, OpenBLAS uses its kernels for small matrices


class Panels:
    """A weight matrix [n_in, n_out] in panels. `x @ panels` is the product; `np.asarray(panels)` is the matrix."""

    __array_ufunc__ = None  # so that NumPy leaves x @ panels to __rmatmul__
    dtype = np.dtype(np.float32)

    def __init__(self, w):
        self.shape = w.shape
        self.chunks = [cut(w[begin : begin + N_DEEP]) for begin in range(0, len(w), N_DEEP)]
        give_back(w)

    def __rmatmul__(self, x):
        return self.product(x, strategy())

    def product(self, x, name):
        """x [n_new, n_in] @ w -> [n_new, n_out], by the named strategy."""
        groups = grouped(x, N_ROWS, name)  # -> [n_groups, n_rows, n_in]
        y = self.chunk_product(groups[..., :N_DEEP], self.chunks[0])
        for i, chunk in enumerate(self.chunks[1:], 1):
            y += self.chunk_product(groups[..., i * N_DEEP : (i + 1) * N_DEEP], chunk)
        return y[: len(x), : self.shape[1]]

    @staticmethod
    def chunk_product(groups, chunk):
        """groups [n_groups, n_rows, n_in] @ chunk -> [n_groups * n_rows, n_panels * N_COLUMNS]"""
        n_groups, n_rows, _ = groups.shape
        # NumPy computes the products in the order of y in memory. With several groups, y is laid out so that all of
        # them use a panel while it is in the cache; otherwise each group would read all of w again.
        if n_groups > 1:
            y = np.empty((len(chunk), n_groups, n_rows, N_COLUMNS), np.float32)
        else:
            y = np.empty((n_rows, len(chunk), 1, N_COLUMNS), np.float32).transpose(1, 2, 0, 3)
        multiply(groups, chunk, y)
        return y.transpose(1, 2, 0, 3).reshape(n_groups * n_rows, -1)

    def columns(self, indices):
        """The columns of w at these indices, as rows: [n] -> [n, n_in]"""
        panel, column = np.divmod(indices, N_COLUMNS)
        return np.concatenate([chunk[panel, 0, :, column] for chunk in self.chunks], axis=-1)

    def __array__(self, dtype=None, copy=None):
        parts = [chunk[:, 0].transpose(1, 0, 2).reshape(chunk.shape[2], -1) for chunk in self.chunks]
        return np.concatenate(parts)[:, : self.shape[1]].astype(dtype or self.dtype, copy=False)


class Embedding:
    """wte [n_vocab, n_embd], its transpose in panels: `wte[tokens]` and `x @ wte.T` read the same copy."""

    def __init__(self, wte):
        self.shape, self.dtype = wte.shape, Panels.dtype
        self.T = Panels(wte.T)

    def __getitem__(self, tokens):
        return self.T.columns(tokens)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.T, dtype).T


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


# ------------------------------------------------------------------------------------------- attention, padded


def product(x, w, name=None):
    """x [n, n_new, n_in] @ w [n, n_in, n_out] -> [n, n_new, n_out], for the heads of attention.

    Batch-invariant if n_out is a multiple of 16 and 2 * n_in * n_out (two rows) is at most SMALL; also if w gets more
    rows for which x has zeros.
    """
    max_rows = max(2, min(N_ROWS, SMALL // (w.shape[1] * w.shape[2]) // 2 * 2))
    groups = grouped(x, max_rows, name or strategy())  # -> [n, n_groups, n_rows, n_in]
    y = np.empty((*groups.shape[:-1], w.shape[-1]), np.float32)
    multiply(groups, w[:, None], y)
    return y.reshape(len(w), -1, w.shape[-1])[:, : x.shape[1]]


def grouped(x, max_rows, name):
    """The rows of x [..., n_new, n_in] in groups of one product each, [..., n_groups, n_rows, n_in], zeros added.

    n_rows is even and at most max_rows, an even number; with "rows" it is 1.
    """
    *before, n_new, n_in = x.shape
    if name == "rows":
        return x.reshape(*before, n_new, 1, n_in)
    n_groups = -(-n_new // max_rows)
    n_rows = -(-n_new // n_groups)
    n_rows += n_rows % 2
    if n_new < n_groups * n_rows:
        filled = np.zeros((*before, n_groups * n_rows, n_in), np.float32)
        filled[..., :n_new, :] = x
        x = filled
    return x.reshape(*before, n_groups, n_rows, n_in)


def padded(n, n_columns, name=None):
    """How many of the cache's n_columns columns attention computes for n tokens, see `product`."""
    return n_columns if (name or strategy()) == "rows" else min(n_columns, round_up(n))


def round_up(n):
    """The next multiple of 16."""
    return -(-n // 16) * 16


# ------------------------------------------------------------------------------------------------ the choice

chosen = None  # the strategy's name; set when it is first needed


def strategy():
    """The name of the strategy in use."""
    return chosen or use(os.environ.get("GPT2NP_MATMUL"))


def use(name=None):
    """Set the strategy by name; without a name, the fastest that is batch-invariant. Returns its name."""
    global chosen
    if name and name not in STRATEGIES:
        raise ValueError(f"unknown strategy {name!r} for products: expected {' or '.join(STRATEGIES)}")
    chosen = name or probe()["strategy"]
    return chosen


def describe():
    """The strategy in use, the probe's results for each, and the number of threads (a dict for JSON)."""
    return {"strategy": strategy(), "probe": probe(), "n_threads": N_THREADS}


@lru_cache
def probe():
    """For each strategy on this machine: whether it is invariant, and its times for one row and for five."""
    x, w = np.ones((5, 1024), np.float32), Panels(np.ones((1024, 1024), np.float32))
    times = {(name, n_rows): [] for n_rows in (1, 5) for name in STRATEGIES}
    for name, n_rows in 10 * list(times):  # in turn, so that a busy moment affects both
        times[name, n_rows].append(milliseconds(lambda rows=x[:n_rows], name=name: w.product(rows, name)))
    found = {
        name: {
            "invariant": is_invariant(name),
            "skips_zeros": skips_zeros(name),
            "milliseconds": [min(times[name, n_rows]) for n_rows in (1, 5)],
        }
        for name in STRATEGIES
    }
    kept = [name for name in STRATEGIES if found[name]["invariant"] or name == "rows"]
    return {"strategy": min(kept, key=lambda name: sum(found[name]["milliseconds"])), **found}


def milliseconds(function):
    started = perf_counter()
    function()
    return 1e3 * (perf_counter() - started)


def is_invariant(name):
    """Whether results are bitwise identical for 1 to 12 rows, at two depths and over 155 to 980 of 1024 tokens.

    In attention, the tokens that a row does not see may be left out or have weight 0: the row's result must be the
    same. A BLAS may cut a long sum into blocks, so its length can matter; OpenBLAS's Nehalem kernels do from 528 on.
    """
    rng = np.random.default_rng(0)
    x, q, weights, keys, values = (
        rng.standard_normal(shape, np.float32)
        for shape in ((12, 1000), (1, 12, 64), (1, 12, 1024), (1, 64, 1024), (1, 1024, 80))
    )
    matrices = [Panels(rng.standard_normal((depth, 192), np.float32)) for depth in (768, 1000)]
    wholes = [w.product(x[:, : w.shape[0]], name) for w in matrices]
    scores = product(q, keys, name)
    for n in range(1, 13):
        n_seen = 80 + 75 * n
        n_seq, seen = padded(n_seen, 1024, name), np.where(np.arange(1024) < n_seen, weights, np.float32(0))
        pairs = [(w.product(x[:n, : w.shape[0]], name), whole[:n]) for w, whole in zip(matrices, wholes)]
        pairs.append((product(q[:, :n], keys[..., :n_seq], name), scores[:, :n, :n_seq]))
        pairs.append((product(seen[:, :n, :n_seq], values[:, :n_seq], name), product(seen, values, name)[:, :n]))
        if not all(np.array_equal(part, whole) for part, whole in pairs):
            return False
    return True


@lru_cache
def skips_zeros(name):
    """Whether zero weights between others change no bit; a tree's mask gives such weights to its other branches."""
    rng = np.random.default_rng(0)
    weights, values = rng.standard_normal((1, 2, 512), np.float32), rng.standard_normal((1, 512, 80), np.float32)
    seen = np.sort(rng.permutation(512)[:200])
    scattered, closed_up = np.zeros_like(weights), np.zeros_like(weights)
    scattered[..., seen], closed_up[..., :200] = weights[..., seen], weights[..., seen]
    packed = np.concatenate([values[:, seen], values[:, :312]], axis=1)
    return np.array_equal(product(scattered, values, name), product(closed_up, packed, name))
