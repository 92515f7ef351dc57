"""Time forward passes over 1 to 9 tokens, and compare them with the memory bandwidth limit, with plain NumPy and, if it
is installed, with transformers.
"""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import gpt2np
from gpt2np.files.model_files import find_on_disk
from gpt2np.kernels import matmul
from gpt2np.kernels.passes import SHAPES, random_model, times

from ..models import check_model_name
from ..options import PLOT, Choice, Option, pick, whole
from ..page import draw, table

ALL = (*matmul.STRATEGIES, "plain", "transformers")
INSTALLED = ALL if find_spec("transformers") and find_spec("torch") else ALL[:-1]
# fmt: off
OPTIONS = {
    "sizes": Option("124M,355M", "M", check_model_name,
        "the models to time; a size that is not on disk gets random weights"),
    "strategies": Option("all", "S", Choice(INSTALLED), f"{', '.join(ALL)}; see gpt2np/kernels/matmul.py"),
    "rows": Option(9, "N", whole(2, 1023), "passes for 1 to N tokens"),
    "context": Option(100, "N", whole(1, 1023), "with N tokens of context before them"),
    "prompt_tokens": Option(512, "N", whole(0, 1024), "and one for a prompt of N tokens"),
    "repeats": Option(7, "N", whole(1, 1000), "how often each is timed"),
    **pick("models_dir source json " + PLOT),
}
# fmt: on
LISTS = {"sizes", "strategies"}
EXAMPLES = ("", "--sizes tiny-draft,tiny-target --rows 5")


def run(options, report):
    sizes = [*options.sizes]
    strategies = INSTALLED if "all" in options.strategies else [*options.strategies]
    report.expect(len(sizes))
    models = [report.keep(size, partial(measure, size, strategies, options)) for size in sizes]
    if options.plot:
        lines = {}
        for model, name, v in [(m["name"], name, s["v"]) for m in models for name, s in m["strategies"].items()]:
            lines[f"{model}, {name}"] = [(m, {"v": cost}) for m, cost in v.items()]
        panels = {"v": "V(m) / V(1), medians"}
        draw(options.plot, "tokens of the pass, m", panels, lines, options.plot_size, report.busy)
    report.finish({"models": models}, "\n".join([f"{report.where}\n", *map(page_of, models), LEGEND]))


def measure(size, strategies, options):
    """The measurements of one model, in plain numbers."""
    if size in SHAPES and not find_on_disk(size, Path(options.models_dir)):
        model, weights = random_model(SHAPES[size]), "random"
    else:
        model, weights = gpt2np.load(size, options.models_dir, options.source)[0], "trained"
    if (n := max(options.context + options.rows, options.prompt_tokens)) > model.n_ctx:
        raise ValueError(
            f"{size} has room for {model.n_ctx} tokens, got {n}: give fewer --context, --rows or --prompt_tokens"
        )
    what = options.context, options.prompt_tokens, options.repeats
    seconds = times(model, strategies, range(1, options.rows + 1), *what, other={"transformers": transformers_runner})
    found = {}
    for strategy in strategies:
        own = {str(m): some for (name, m), some in seconds.items() if name == strategy}
        v = {m: some[1] / own["1"][1] for m, some in own.items() if m != "prompt"}
        found[strategy] = {"seconds": own, "v": v}
    about = {"name": size, "weights": weights, "bytes": 4 * model.n_params, "limit": seconds["limit", 1][0]}
    return {**about, "chosen": matmul.strategy(model.hparams.n_embd), "strategies": found}


def transformers_runner(model, strategy, past):
    """Like `numpy_runner`, with `transformers` and random weights, whose values do not affect the times."""
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


def page_of(model):
    rows = []
    for name, entry in model["strategies"].items():
        low, middle, high = (1e3 * number for number in entry["seconds"]["1"])
        prompt = {"prompt": f"{entry['seconds']['prompt'][1]:.2f} s"} if "prompt" in entry["seconds"] else {}
        rows.append({
            "": name + " *" * (name == model["chosen"]), "one token, ms": f"{middle:.2f} ± {(high - low) / 2:.2f}",
            "over limit": f"{middle / 1e3 / model['limit']:.2f}",
            **{f"V({m})" if m == "2" else m: f"{v:.2f}" for m, v in entry["v"].items() if m != "1"}, **prompt,
        })  # fmt: skip
    size, limit = model["bytes"] / 1e9, model["limit"]
    head = f"{model['name']}, {model['weights']} weights: {size:.3f} GB, the memory's limit {1e3 * limit:.2f} ms a pass"
    return f"{head} ({size / limit:.1f} GB/s)\n\n{table(rows)}\n"


LEGEND = """\
V(m)    the time for m tokens over that for one, medians; one token: with half the distance between the quartiles
limit   the fastest time in which all weights were read here: bare matrix-vector products, or a pass for one token
*       the strategy that the library chose here for this model
"""
