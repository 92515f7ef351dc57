"""How long a forward pass takes with each strategy, compared with the memory bandwidth limit:

    python dev/bench/passes.py --sizes 124M,355M --repeats 7

The limit is the fastest time in which all weights were read once in the same run, by a bare `x @ w` with each matrix or
by a pass for one token. "plain" is the same pass with these ordinary matrices, the baseline of an honest speedup. The
passes take turns several times, so a slowdown of the machine affects all.
A size that is not on disk gets random weights.
"""

import json
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import perf_counter, sleep

import fire
import numpy as np

import gpt2np
from gpt2np import GPT2, HParams, forward
from gpt2np.cache import KVCache
from gpt2np.files.model_files import find_on_disk
from gpt2np.files.params import build_params, param_shapes
from gpt2np.kernels import matmul
from gpt2np.kernels.matmul import pack
from gpt2np.model import packed
from speculative.measuring.table import table

SHAPES = {
    "124M": HParams(50257, 1024, 768, 12, 12),
    "355M": HParams(50257, 1024, 1024, 16, 24),
    "774M": HParams(50257, 1024, 1280, 20, 36),
    "1558M": HParams(50257, 1024, 1600, 25, 48),
}
LEGEND = """\
V(m)    the time for m tokens over that for one, medians; one token: with half the distance between the quartiles
limit   the fastest time in which all weights were read here: bare `x @ w` with one row, or a pass for one token
*       the strategy that the library chose here for this model"""


def main(sizes="124M,355M", strategies="all", rows=9, context=100, prompt_tokens=512, repeats=7, as_json=False):
    """Time passes over 1 to `rows` tokens after `context` tokens, and one over a prompt."""
    if strategies == "all":
        has_transformers = find_spec("torch") and find_spec("transformers")
        strategies = [*matmul.STRATEGIES, *(["transformers"] if has_transformers else [])]
    lengths = context, prompt_tokens, repeats
    models = [measured(size, listed(strategies), range(1, rows + 1), *lengths) for size in listed(sizes)]
    print(json.dumps({"models": models}) if as_json else "\n".join([*map(page_of, models), LEGEND]))


def listed(names):
    """The names in a text such as "124M,355M", which Fire may have split already."""
    return names.split(",") if isinstance(names, str) else list(names)


def measured(size, strategies, rows, context, prompt_tokens, repeats):
    """The times of one model (dict): for each strategy the quartiles of the passes "1", "2", ... and "prompt"."""
    is_trained = size not in SHAPES or find_on_disk(size, Path("models"))
    model = gpt2np.load(size)[0] if is_trained else random_model(SHAPES[size])
    if max(context + max(rows), prompt_tokens) > model.n_ctx:
        raise ValueError(f"{size} has room for {model.n_ctx} tokens: give fewer --context, --rows or --prompt_tokens")
    tokens = np.random.default_rng(0).integers(0, model.n_vocab, model.n_ctx).tolist()
    runners = {"limit": limit(model)}
    for strategy in strategies:
        make = transformers_runner if strategy == "transformers" else numpy_runner
        runners[strategy] = make(model, strategy, tokens[:context])

    inputs = {str(m): tokens[context : context + m] for m in rows} | {"prompt": tokens[:prompt_tokens]}
    plan = [("limit", "1"), *product(strategies, inputs)]
    seconds = {key: [] for key in plan}
    last = None
    for strategy, length in plan * repeats:
        if strategy != last:  # threads of BLAS and PyTorch spin for a moment after a call; one pass to warm up
            sleep(0.1)
            runners[strategy](inputs["1"], False)
        last = strategy
        seconds[strategy, length].append(runners[strategy](inputs[length], length == "prompt"))

    by_strategy = {}
    for strategy in strategies:
        quartiles = {length: np.quantile(seconds[strategy, length], (0.25, 0.5, 0.75)).tolist() for length in inputs}
        medians = {length: middle for length, (_, middle, _) in quartiles.items() if length != "prompt"}
        v = {length: middle / medians["1"] for length, middle in medians.items()}
        by_strategy[strategy] = {"seconds": quartiles, "v": v}
    return {
        "name": size, "weights": "trained" if is_trained else "random", "bytes": 4 * model.n_params,
        "limit": min(min(times) for (_, length), times in seconds.items() if length == "1"),
        "chosen": model.strategy, "strategies": by_strategy,
    }  # fmt: skip


def random_model(hparams):
    """A GPT2 with random weights, as at the start of training."""
    rng, tensors = np.random.default_rng(0), {}
    for name, shape in param_shapes(hparams).items():
        if len(shape) == 2:
            tensors[name] = np.float32(0.02) * rng.standard_normal(shape, np.float32)
        else:
            tensors[name] = np.full(shape, "ln_" in name and name.endswith("weight"), np.float32)
    return GPT2(build_params(tensors, hparams, "random"), hparams)


# ------------------------------------------- the runners: (new tokens, whether the cache is empty) -> seconds of a pass


def numpy_runner(model, strategy, past):
    """Passes of this library with a strategy."""
    h, params = model.hparams, packed(model.params, strategy)
    full, empty = (KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head, strategy) for _ in range(2))
    forward(past, params, h.n_head, 1, full)

    def run(new, from_empty):
        cache = empty if from_empty else full
        cache.truncate(0 if from_empty else len(past))
        started = perf_counter()
        forward(new, params, h.n_head, 1 if from_empty else len(new), cache)
        return perf_counter() - started

    return run


def limit(model):
    """The bare matrix-vector products of a pass, with the plain matrices."""
    blocks = model.params["blocks"]
    matrices = [linear["w"] for block in blocks for part in ("attn", "mlp") for linear in block[part].values()]
    weights = [pack(w, "plain").w for w in (*matrices, model.params["wte"].T)]
    vectors = {w.shape[0]: np.ones((1, w.shape[0]), np.float32) for w in weights}

    def run(new, from_empty):
        started = perf_counter()
        for w in weights:
            vectors[w.shape[0]] @ w
        return perf_counter() - started

    return run


def transformers_runner(model, strategy, past):
    """Passes of `transformers` with random weights, whose values do not affect the times."""
    import torch
    import transformers

    h = model.hparams
    sizes = {"vocab_size": h.n_vocab, "n_positions": h.n_ctx, "n_embd": h.n_embd, "n_head": h.n_head}
    sizes |= {"n_layer": h.n_layer, "bos_token_id": None, "eos_token_id": None}
    reference, full = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval(), transformers.DynamicCache()
    torch.set_grad_enabled(False)
    reference(torch.tensor([past]), past_key_values=full)

    def run(new, from_empty):
        cache, ids = transformers.DynamicCache() if from_empty else full, torch.tensor([new])
        started = perf_counter()
        reference(ids, past_key_values=cache, logits_to_keep=1 if from_empty else 0)
        seconds = perf_counter() - started
        cache.crop(-len(new))
        return seconds

    return run


# ------------------------------------------------------------------------------------------------ in words


def page_of(model):
    rows = []
    for name, entry in model["strategies"].items():
        low, middle, high = (1e3 * number for number in entry["seconds"]["1"])
        ratios = {f"V({m})" if m == "2" else m: f"{v:.2f}" for m, v in entry["v"].items() if m != "1"}
        rows.append(
            {
                "": f"{name} *" if name == model["chosen"] else name,
                "one token, ms": f"{middle:.2f} ± {(high - low) / 2:.2f}",
                "over limit": f"{middle / 1e3 / model['limit']:.2f}",
                **ratios,
                "prompt": f"{entry['seconds']['prompt'][1]:.2f} s",
            }
        )
    size, limit = model["bytes"] / 1e9, model["limit"]
    head = f"{model['name']}, {model['weights']} weights: {size:.3f} GB, the memory's limit {1e3 * limit:.2f} ms a pass"
    return f"{head} ({size / limit:.1f} GB/s)\n\n{table(rows)}\n"


if __name__ == "__main__":
    fire.Fire(main)
