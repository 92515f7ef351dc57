"""A matmul x @ w for a few rows that costs about as much as one row, and is batch-invariant: a row's result is bitwise
identical whatever other rows are computed with it.

Generating a token reads every weight once, so memory bandwidth sets its time. Verifying K + 1 tokens at once also reads
the weights once and should cost the same; the speedup of speculative decoding rests on that. With the plain `x @ w` it
costs about three times as much. A matmul with one row is a matrix-vector product, which streams the weights; for more
rows BLAS first copies all of w into its own layout. It also adds up the terms of a row in a different order when
the number of rows changes. Then the last bits differ, and sooner or later the greedy text differs as well.

The remedy is to copy once, when the model is loaded, and to multiply in pieces that stay in the cache. There are two
strategies. "panels" (panels.py) multiplies all rows at once, on threads of its own, and is batch-invariant with some
BLAS kernels only. "slabs" (slabs.py) multiplies row by row, on the BLAS's threads, and is batch-invariant everywhere.
Where both are, a short probe chooses the one that generates text faster. "plain" is `x @ w`, the baseline: a
GPT2(..., strategy="plain") is what a speedup has to be measured against. GPT2NP_MATMUL=slabs in the environment
overrides the probe, and `use` overrides both. A model keeps its strategy.

Leaves out: half precision, because reading float32 is faster in NumPy than converting float16.
"""

import os
import sys
from functools import lru_cache
from statistics import median
from time import perf_counter, sleep

import numpy as np

from .attention import PIECE, padded, product, round_up, skips_zeros
from .cores import blas_threads, n_threads
from .packed import Packed, Plain
from .panels import SMALL, Panels
from .slabs import Slabs

LAYOUTS = {layout.strategy: layout for layout in (Panels, Slabs, Plain)}
STRATEGIES = tuple(LAYOUTS)
LARGE = 16_000_000  # parameters, 64 MB: the weights of a larger model come from memory, not from a cache


def pack(w, strategy):
    """w [n_in, n_out], an array or packed, in the layout of a strategy, such as `model.strategy`."""
    return w if getattr(w, "strategy", None) == strategy else LAYOUTS[strategy](w)


class Embedding:
    """wte [n_vocab, n_embd], its transpose packed: `wte[tokens]` and `x @ wte.T` read the same copy."""

    def __init__(self, wte, strategy):
        self.shape, self.dtype = wte.shape, Packed.dtype
        self.T = pack(wte.T, strategy)  # wte may be packed as well

    def __getitem__(self, tokens):
        return self.T.columns(tokens)

    def __array__(self, dtype=None, copy=None):
        return self.T.__array__(dtype, copy).T


chosen = None  # the strategy that `use` has set


def strategy(n_ctx=1, d_head=1, n_params=0):
    """The strategy of a new model with n_params parameters, a context of n_ctx tokens and heads of width d_head.

    With "panels", two rows of attention over the whole context must fit in one small matmul; otherwise "slabs".
    """
    if not chosen and (name := os.environ.get("GPT2NP_MATMUL")):
        try:
            use(name)
        except ValueError as error:
            raise ValueError(f"GPT2NP_MATMUL: {error}") from None
        if not is_invariant(name):
            note = "is not batch-invariant on this machine: a greedy text may differ with and without a draft"
            print(f"GPT2NP_MATMUL={name} {note}", file=sys.stderr)
    best = chosen or probe(n_params > LARGE)["strategy"]
    is_long = 2 * round_up(n_ctx, PIECE) * round_up(d_head + 1) > SMALL
    return "slabs" if best == "panels" and is_long else best


def use(name):
    """Set the strategy of models made from now on."""
    global chosen
    if name not in STRATEGIES:
        raise ValueError(f"unknown strategy {name!r} for matmuls: expected {', '.join(STRATEGIES)}")
    chosen = name


def describe(is_large=False):
    """The strategy of a model, the probe's results for each, and the numbers of threads (a dict for JSON)."""
    threads = {"n_threads": n_threads(), "n_threads_for_prompts": n_threads(for_prompts=True), "blas": blas_threads()}
    return {"strategy": strategy(n_params=(LARGE + 1) * is_large), "probe": probe(is_large), **threads}


def probe(is_large):
    """For each strategy, whether it is invariant and skips zeros here; also the faster of "panels" and "slabs".

    Their times are measured only if both are batch-invariant.
    """
    results = {name: {"invariant": is_invariant(name), "skips_zeros": skips_zeros(name)} for name in STRATEGIES}
    if not results["panels"]["invariant"]:
        return {"strategy": "slabs", **results}
    for name, milliseconds in times(is_large).items():
        results[name]["milliseconds"] = milliseconds
    return {
        "strategy": min(("panels", "slabs"), key=lambda name: generating(*results[name]["milliseconds"])),
        **results,
    }


@lru_cache
def times(is_large):
    """The milliseconds of several matrices for one row and for five: dict strategy -> [one, five].

    They are as large as a model's: 60 MB, more than most caches hold, or 4 MB. Each strategy runs as it would in
    a model: with its threads, and while no others are busy. The BLAS's threads go on spinning after a call, so panels,
    which do not use them, come first. Medians: on a busy machine some runs are disturbed, and a few lucky ones must not
    decide.
    """
    n_in, n_out, n_matrices = (1024, 3072, 5) if is_large else (256, 1024, 4)
    w, x, found = np.ones((n_in, n_out), np.float32), np.ones((5, n_in), np.float32), {}
    sleep(0.05)  # in case they spin now
    for name in ("panels", "slabs"):
        matrices = [pack(w, name) for _ in range(n_matrices)]
        laps = {1: [], 5: []}
        for n_rows in (9 if is_large else 25) * [1, 5]:
            started = perf_counter()
            for matrix in matrices:
                x[:n_rows] @ matrix
            laps[n_rows].append(1e3 * (perf_counter() - started))
        found[name] = [median(seconds) for seconds in laps.values()]
    return found


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
