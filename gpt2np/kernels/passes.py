"""How long a forward pass takes with each strategy, compared with the memory bandwidth limit.

The limit is the fastest time in which all weights were read once in the same run, by a bare matrix-vector product with
each matrix or by a pass for one token. The passes take turns several times, so a slowdown of the machine affects all.
`python main.py bench` prints a table.
"""

from time import perf_counter, sleep

import numpy as np

from ..cache import KVCache
from ..files.params import build_params, param_shapes
from ..model import GPT2, HParams, forward, packed

SHAPES = {
    "124M": HParams(50257, 1024, 768, 12, 12),
    "355M": HParams(50257, 1024, 1024, 16, 24),
    "774M": HParams(50257, 1024, 1280, 20, 36),
    "1558M": HParams(50257, 1024, 1600, 25, 48),
}


def times(model, strategies, rows, context, prompt, repeats, other=None, progress=iter):
    """Seconds of the passes: dict (strategy, what) -> [lower quartile, median, upper quartile].

    ("limit", 1) -> [fastest, median, upper quartile] of bare matrix-vector products. A pass for one token also reads
    all weights, so the fastest such pass counts as well, and no pass can be faster than the limit.

    Parameters
    ----------
    model : GPT2
    strategies : sequence of str
        The strategies of matmul.py, "plain" (an ordinary `x @ w`), and the keys of `other`.
    rows : sequence of int
        The numbers of tokens in a pass, with `context` tokens in the cache.
    context : int
    prompt : int
        The number of tokens in the pass "prompt", with an empty cache; 0 for no such pass.
    repeats : int
        How often each pass is timed.
    other : dict strategy -> function
        Functions like `numpy_runner`, for strategies that it does not know.
    progress : callable
        A wrapper for the list of passes, such as tqdm.
    """
    tokens = np.random.default_rng(0).integers(0, model.n_vocab, model.n_ctx).tolist()
    runners = {"limit": limit(model)}
    for strategy in strategies:
        make = (other or {}).get(strategy, numpy_runner)
        runners[strategy] = make(model, strategy, tokens[:context])
    inputs = {m: tokens[context : context + m] for m in rows} | ({"prompt": tokens[:prompt]} if prompt else {})
    plan = [("limit", 1), *((strategy, what) for strategy in strategies for what in inputs)]
    seconds, last = {key: [] for key in plan}, None
    for strategy, what in progress(plan * repeats):
        if strategy != last:  # threads of BLAS and PyTorch spin for a moment after a call; one pass to warm up
            sleep(0.1)
            runners[strategy](inputs[1], False)
        last = strategy
        seconds[strategy, what].append(runners[strategy](inputs.get(what), what == "prompt"))
    found = {key: np.quantile(some, (0.25, 0.5, 0.75)).tolist() for key, some in seconds.items()}
    found["limit", 1][0] = min(min(some) for (_, what), some in seconds.items() if what == 1)
    return found


def limit(model):
    """A function like the one from `numpy_runner`: seconds of `w @ x` for all weight matrices w in turn."""
    blocks = model.params["blocks"]
    matrices = [linear["w"] for block in blocks for part in ("attn", "mlp") for linear in block[part].values()]
    weights = [in_order(w.blocks) for w in (*matrices, model.params["wte"].T)]
    vectors = {w.shape[1]: np.ones(w.shape[1], np.float32) for w in weights}

    def run(new, from_empty):
        started = perf_counter()
        for w in weights:
            w @ vectors[w.shape[1]]
        return perf_counter() - started

    return run


def in_order(blocks):
    """The entries of a packed matrix's blocks in memory order, reshaped to a matrix [n_out, n_in]."""
    _, n_blocks, depth, _ = blocks.shape
    if not blocks.flags.c_contiguous:  # with "rows"
        blocks = blocks.swapaxes(2, 3)
    return blocks.reshape(-1, n_blocks * depth)


def numpy_runner(model, strategy, past):
    """A function (new tokens, whether the cache is empty) -> seconds of a pass over them."""
    h = model.hparams
    params = plain(model.params) if strategy == "plain" else packed(model.params, strategy)
    in_attention = model.strategy if strategy == "plain" else strategy
    full, empty = (KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head, in_attention) for _ in range(2))
    forward(past, params, h.n_head, 1, full)

    def run(new, from_empty):
        cache = empty if from_empty else full
        cache.truncate(0 if from_empty else len(past))
        started = perf_counter()
        forward(new, params, h.n_head, 1 if from_empty else len(new), cache)
        return perf_counter() - started

    return run


def plain(params):
    """The parameter tree with its weight matrices copied to ordinary arrays."""
    if isinstance(params, dict):
        return {name: plain(value) for name, value in params.items()}
    return [plain(value) for value in params] if isinstance(params, list) else np.asarray(params)


def random_model(hparams, seed=0):
    """A GPT2 with random weights, as at the start of training."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in param_shapes(hparams).items():
        if len(shape) == 2:
            tensors[name] = rng.standard_normal(shape, np.float32)
            tensors[name] *= np.float32(0.02)
        else:
            tensors[name] = np.full(shape, "ln_" in name and name.endswith("weight"), np.float32)
    return GPT2(build_params(tensors, hparams, "random"), hparams)
