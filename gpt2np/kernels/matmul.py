"""A matmul x @ w for a few rows that costs about as much as one row, and is batch-invariant: a row's result is bitwise
identical whatever other rows are computed with it.

Generating a token reads every weight once, so memory bandwidth sets its time. Verifying K + 1 tokens at once also reads
the weights once and should cost the same; the speedup of speculative decoding rests on that. With the plain `x @ w` it
costs about three times as much. A matmul with one row is a matrix-vector product, which streams the weights; for more
rows BLAS first copies all of w into its own layout. It also adds up the terms of a row in a different order when
the number of rows changes. Then the last bits differ, and sooner or later the greedy text differs as well.

The remedy is to copy once, when the model is loaded, and to multiply in small pieces that stay in a core's cache. There
are two strategies, "panels" and "rows" (panels.py). A short probe of this machine chooses the one that generates text
faster, "panels" only if it is batch-invariant here. GPT2NP_MATMUL=rows in the environment overrides the probe, and
`use` overrides both, even with a strategy that is not invariant here. A model keeps its strategy.

On many machines one token takes longer than with plain matmuls (dev/bench/passes.py). That is the price of batch
invariance. Leaves out: half precision, because reading float32 is faster in NumPy than converting float16.
"""

import os
import sys
from functools import lru_cache
from statistics import quantiles
from time import perf_counter

import numpy as np

from .attention import PIECE, padded, product, round_up, skips_zeros
from .cores import n_threads
from .panels import N_ROWS, SMALL, Panels

STRATEGIES = tuple(N_ROWS)


def pack(w, strategy):
    """w [n_in, n_out], an array or packed, in the layout of a strategy, such as `model.strategy`.

    Every matrix that is multiplied while text is generated is packed. A large enough matmul of an ordinary array wakes
    the BLAS's own threads, which then spin for tens of milliseconds on the cores that the threads of threads.py need.
    """
    return w if getattr(w, "strategy", None) == strategy else Panels(w, strategy)


class Embedding:
    """wte [n_vocab, n_embd], its transpose packed: `wte[tokens]` and `x @ wte.T` read the same copy."""

    def __init__(self, wte, strategy):
        self.shape, self.dtype = wte.shape, Panels.dtype
        self.T = pack(wte.T, strategy)  # wte may be packed as well

    def __getitem__(self, tokens):
        return self.T.columns(tokens)

    def __array__(self, dtype=None, copy=None):
        return self.T.__array__(dtype, copy).T


chosen = None  # the strategy that `use` has set


def strategy(n_ctx=1, d_head=1):
    """The strategy of a new model with a context of n_ctx tokens and heads of width d_head.

    With "panels", two rows of attention over the whole context must fit in one small matmul; otherwise "rows".
    """
    if not chosen and (name := os.environ.get("GPT2NP_MATMUL")):
        try:
            use(name)
        except ValueError as error:
            raise ValueError(f"GPT2NP_MATMUL: {error}") from None
        if not is_invariant(name):
            note = "is not batch-invariant on this machine: a greedy text may differ with and without a draft"
            print(f"GPT2NP_MATMUL={name} {note}", file=sys.stderr)
    if 2 * round_up(n_ctx, PIECE) * round_up(d_head + 1) > SMALL:
        return "rows"
    return chosen or probe()["strategy"]


def use(name):
    """Set the strategy of models made from now on."""
    global chosen
    if name not in STRATEGIES:
        raise ValueError(f"unknown strategy {name!r} for matmuls: expected {' or '.join(STRATEGIES)}")
    chosen = name


def describe():
    """The strategy in use, the probe's results for each, and the maximum number of threads (a dict for JSON)."""
    threads = {"n_threads": n_threads(), "n_threads_for_prompts": n_threads(for_prompts=True)}
    return {"strategy": strategy(), "probe": probe(), **threads}


def probe():
    """For each strategy, its times and whether it is invariant and skips zeros here; also the fastest strategy.

    It times "rows", and "panels" if that is invariant, on one thread with a matrix that fits into the cache.
    """
    results = {name: {"invariant": is_invariant(name), "skips_zeros": skips_zeros(name)} for name in STRATEGIES}
    timed = times(("rows", "panels") if results["panels"]["invariant"] else ("rows",))
    for name, milliseconds in timed.items():
        results[name]["milliseconds"] = milliseconds
    return {"strategy": min(timed, key=lambda name: generating(*timed[name])), **results}


@lru_cache
def times(names):
    """The times of a matrix [1024, 512]: dict name -> [milliseconds for one row, for five].

    They are lower quartiles: on a busy machine most runs are disturbed, and a few lucky ones must not decide.
    """
    w, x = np.ones((1024, 512), np.float32), np.ones((5, 1024), np.float32)
    matrices = {name: pack(w, name) for name in names}
    laps = {(name, n_rows): [] for n_rows in (1, 5) for name in names}
    for name, n_rows in 24 * list(laps):  # alternating, so that a busy moment affects all
        started = perf_counter()
        x[:n_rows] @ matrices[name]
        laps[name, n_rows].append(1e3 * (perf_counter() - started))
    return {name: [quantiles(laps[name, n_rows])[0] for n_rows in (1, 5)] for name in names}


def generating(one, five):
    """The time per token, from the times of one row and of five: the smaller of an autoregressive step and a round.

    The round drafts K = 4 tokens, each in an eighth of a step, and each is accepted with probability 0.75.
    """
    return min(one, (five + 4 * one / 8) / (1 + 0.75 + 0.75**2 + 0.75**3 + 0.75**4))


@lru_cache
def is_invariant(name):
    """Whether results are bitwise identical for 1 to 12 rows, at two depths and over 155 to 980 of 1024 tokens.

    In attention, the tokens that a row does not see may be left out or get weight 0, and the row's result must be the
    same. A BLAS may cut a long sum into blocks, so its length can matter; OpenBLAS's Nehalem kernels do from 528 on.
    """
    rng = np.random.default_rng(0)
    x, q, weights, keys, values = (
        rng.standard_normal(shape, np.float32)
        for shape in ((12, 1000), (1, 12, 64), (1, 12, 1024), (1, 64, 1024), (1, 1024, 80))
    )
    matrices = [pack(rng.standard_normal((depth, 192), np.float32), name) for depth in (768, 1000)]
    products = [x[:, : w.shape[0]] @ w for w in matrices]
    scores = product(q, keys, name)
    for n in range(1, 13):
        n_seen = 80 + 75 * n
        n_seq = padded(n_seen, 1024, name)
        seen = np.where(np.arange(1024) < n_seen, weights, np.float32(0))
        rows = slice(0, n), slice(n - 1, n)
        pairs = [(x[part, : w.shape[0]] @ w, whole[part]) for w, whole in zip(matrices, products) for part in rows]
        pairs.append((product(q[:, :n], keys[..., :n_seq], name), scores[:, :n, :n_seq]))
        pairs.append((product(seen[:, :n, :n_seq], values[:, :n_seq], name), product(seen, values, name)[:, :n]))
        if not all(np.array_equal(part, whole) for part, whole in pairs):
            return False
    return True
