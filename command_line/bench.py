"""`python main.py bench`: how long a forward pass takes for 1 to 9 tokens, against the limit of the memory.

The limit is the fastest time in which all weights were read once in the same run: a bare matrix-vector product with
each, or a pass for one token. The strategies are those of gpt2np/kernels/matmul.py, and two for comparison: "plain", an
ordinary `x @ w` with the weights as they are in the file, and, if it is installed, "transformers", PyTorch on the same
weights. The passes take turns, several times, so a machine that slows down slows all of them. The page shows medians,
and half the distance between the quartiles.
"""

from functools import partial
from pathlib import Path

import numpy as np

import gpt2np
from gpt2np.files.model_files import find_on_disk
from gpt2np.files.params import build_params, param_shapes
from gpt2np.kernels import matmul

from .columns import Columns
from .files import deliver
from .models import load, n_ctx_of
from .page_parts import busy
from .passes import hand_over, summary, times
from .texts import PROMPT_LENGTH
from .views import counted, show

SMALL = 50_000_000  # parameters
SHAPES = {
    "124M": gpt2np.HParams(50257, 1024, 768, 12, 12),
    "355M": gpt2np.HParams(50257, 1024, 1024, 16, 24),
    "774M": gpt2np.HParams(50257, 1024, 1280, 20, 36),
    "1558M": gpt2np.HParams(50257, 1024, 1600, 25, 48),
}


def bench(request, parts):
    """Time the passes of each model, and print the cost of a pass for several tokens."""
    strategies, sizes = request.listed("strategies"), request.listed("sizes")
    with_transformers = "transformers" in strategies
    parts.expect(len(sizes) + with_transformers)
    report = {"matmul": parts.note("matmul", matmul.describe), "models": []}
    report["hand_over_seconds"] = parts.note("hand_over_seconds", partial(hand_over, matmul.n_threads()))
    for size in sizes:
        report["models"].append(parts.keep(size, partial(measure, size, strategies, request, parts)))
    first, last = (m["strategies"][m["strategy"]] for m in (report["models"][0], report["models"][-1]))
    report["c"] = first["seconds"]["1"][1] / last["seconds"]["1"][1]
    if with_transformers:
        from .peers import generation

        report["generation"] = parts.keep("generation", partial(generation, request, parts))
    deliver(lambda: parts.finish(report), lambda: show(parts.whole(report), page, request.json is True))


def check_room(request):
    """Raise ValueError unless every model has room for what it is to run."""
    wanted = {
        "--context and --rows": (request.listed("sizes"), request.context + request.rows),
        "--prompt_tokens": (request.listed("sizes"), request.prompt_tokens),
    }
    if "transformers" in request.listed("strategies"):
        n_tokens = PROMPT_LENGTH + request.n_tokens_to_generate
        wanted[f"prompts of {PROMPT_LENGTH} and --n_tokens_to_generate"] = (
            [request.target_model_size, request.draft_model_size],
            n_tokens,
        )
    for option, (names, n) in wanted.items():
        for name in names:
            room = SHAPES[name].n_ctx if name in SHAPES else n_ctx_of(name, request)
            if n > room:
                raise ValueError(f"{option}: {name} has room for {room} tokens, got {n}; take fewer")


def measure(size, strategies, request, parts):
    """The measurements of one model, in plain numbers."""
    model, weights = open_model(size, request, parts)
    rows, runner_of = range(1, request.rows + 1), {}
    if "transformers" in strategies:
        from .peers import transformers_runner

        runner_of = {"transformers": transformers_runner}
    seconds = times(model, strategies, rows, request.context, request.prompt_tokens, request.repeats, runner_of)
    own = matmul.strategy(model.hparams.n_embd)
    own = own if own in strategies else strategies[0]
    return {"name": size, "weights": weights, "strategy": own, **summary(model, seconds)}


def open_model(size, request, parts):
    """(model, "trained" or "random"): the model of this name on disk, else random weights of its shape."""
    if size in SHAPES and not find_on_disk(size, Path(request.models_dir)):
        return random_model(SHAPES[size]), "random"
    return load(size, request, parts)[0], "trained"


def random_model(hparams, seed=0):
    """A GPT2 with weights drawn as at the start of training."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in param_shapes(hparams).items():
        if len(shape) == 2:
            tensors[name] = rng.standard_normal(shape, np.float32)
            tensors[name] *= np.float32(0.02)
        else:
            tensors[name] = np.full(shape, "ln_" in name and name.endswith("weight"), np.float32)
    return gpt2np.GPT2(build_params(tensors, hparams, "random"), hparams)


def page(report):
    blocks = [f"{report['machine']}; products by {report['matmul']['strategy']!r}{busy(report)}\n"]
    for model in report["models"]:
        size, limit = model["bytes"] / 1e9, model["limit_seconds"][0]
        counts = [m for m in next(iter(model["strategies"].values()))["seconds"] if m != "prompt"][1:]
        table = Columns(
            ("", "<14"), ("threads", ">7"), ("one token", ">18"), ("over limit", ">12"), ("   V(m) / V(1)", "<14"),
            *((m, ">6") for m in counts), ("prompt", ">9"),
        )  # fmt: skip
        rows = [cells(strategy, entry, counts) for strategy, entry in model["strategies"].items()]
        head = f"{model['name']}, {model['weights']} weights: {size:.3f} GB, "
        head += f"the memory's limit {1e3 * limit:.2f} ms a pass ({size / limit:.1f} GB/s)"
        blocks.append(f"{head}\n\n{table.page(rows)}\n")
    names, chosen = [model["name"] for model in report["models"]], report["matmul"]
    sharing = f"; sharing costs {1e3 * report['hand_over_seconds']:.2f} ms a product here, up to four times a layer"
    if chosen["n_threads"] == 1:
        sharing = ""
    blocks.append(f"""\
c = {report["c"]:.3f}: one token of {names[0]} over one of {names[-1]}
limit    the fastest time in which all weights were read here: bare matrix-vector products, or a pass for one token
threads  the most that a product of a few rows uses; panels, rows and eights use one for a small product, and up to
         {chosen["n_threads_for_prompts"]} for a prompt's{sharing}
""")
    if found := report.get("generation"):
        head = f"{found['target']} with {found['draft']}, K = {found['K']}, greedy, "
        head += f"{counted(found['n_prompts'], 'time')} {counted(found['n_tokens'], 'token')}"
        blocks.append(f"{head}\n\n{generation_lines(found)}\n")
        if found["parameters"] < SMALL:
            blocks.append("For so small a model much of a pass of transformers is Python's own time, not arithmetic.")
        blocks.append(
            "of a text: the least and the greatest speedup of a single text; "
            f"PyTorch had {counted(found['threads'], 'thread')}\n"
        )
    return "\n".join(blocks)


def cells(strategy, entry, counts):
    """The row of a strategy."""
    low, middle, high = (1e3 * number for number in entry["seconds"]["1"])
    prompt = f"{entry['seconds']['prompt'][1]:.2f} s" if "prompt" in entry["seconds"] else ""
    spread = f"{middle:.2f} ± {(high - low) / 2:.2f} ms"
    return [
        strategy,
        str(entry["threads"]),
        spread,
        f"{entry['over_limit']:.2f}",
        "",
        *(f"{entry['v'][m]:.2f}" for m in counts),
        prompt,
    ]


def generation_lines(found):
    """A line for each way to generate the same texts."""
    alone, table = found["seconds"]["ours, alone"], Columns(
        ("", "<24"), ("seconds", ">8"), ("speedup", ">10"), ("of a text", ">15"), ("same text", ">12")
    )  # fmt: skip
    rows = []
    for name, seconds in found["seconds"].items():
        each = [before / now for before, now in zip(alone, seconds)]
        rows.append([
            name, f"{sum(seconds):.2f}", f"{sum(alone) / sum(seconds):.2f}", f"{min(each):.2f} to {max(each):.2f}",
            f"{found['same_text'][name]} of {found['n_prompts']}",
        ])  # fmt: skip
    return table.page(rows)
