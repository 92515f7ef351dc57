"""The best draft length for each batch size on an accelerator, computed from an acceptance rate and a data sheet;
nothing is measured.
"""

from dataclasses import asdict, replace

import numpy as np

from speculative.theory import expected_tokens
from speculative.theory.roofline import ACCELERATORS, ModelShape, batch_best_K, forward_time, free_tokens, most_texts

from ..options import Choice, Option, number, pick, whole
from ..page import table


def shape(given):
    """Read the four numbers of a model's shape."""
    found = [int(part) if part.isdecimal() else 0 for part in given.split(",")]
    if len(found) != 4 or not 0 < min(found) <= max(found) <= 100_000:
        raise ValueError(
            f"expected layers, heads, KV heads and size of a head, such as 32,32,8,128, got {given[:60]!r}"
        )
    return found


# fmt: off
OPTIONS = {
    "accelerator": Option("H100", "A", Choice(tuple(ACCELERATORS)),
        f"{', '.join(ACCELERATORS)}, with the numbers of its data sheet"),
    "n_accelerators": Option(1, "N", whole(1, 10_000),
        "the number of accelerators that share each model; communication costs nothing here"),
    "flops": Option(None, "TFLOPS", number(least=0.001, most=1_000_000),
        "10^12 operations a second, without sparsity (the accelerator's, in bfloat16)"),
    "bandwidth": Option(None, "TB/S", number(least=0.001, most=10_000),
        "10^12 bytes a second from memory (the accelerator's)"),
    "memory": Option(None, "GB", number(least=0.001, most=1_000_000), "10^9 bytes of memory (the accelerator's)"),
    "alpha": Option(0.7, "P", number(least=0, most=1),
        "the acceptance rate: each draft token is accepted with probability P if those before it are; calibrate "
        "measures it"),
    "target_params": Option(8.03, "N", number(least=0.001, most=100_000),
        "10^9 parameters of the target, not a mixture of experts"),
    "target_shape": Option([32, 32, 8, 128], "L,H,G,D", shape,
        "layers, heads, KV heads and size of a head of the target, as in its config.json: the default is Llama 3.1 8B"),
    "draft_params": Option(1.24, "N", number(least=0, most=100_000),
        "10^9 parameters of the draft model; 0 for a draft that costs nothing, such as prompt lookup"),
    "draft_shape": Option([16, 32, 8, 64], "L,H,G,D", shape,
        "the same four of the draft model: the default is Llama 3.2 1B"),
    "bytes": Option(2, "B", number(least=0.25, most=8), "the size of a weight, and of a number in the KV cache"),
    "context": Option(1000, "N", whole(1, 10_000_000), "tokens of context in each text"),
    "batch_sizes": Option("1,2,4,8,16,32,64,128,256,512", "N", whole(1, 100_000),
        "the numbers of sequences that are generated at once"),
    "max_K": Option(10, "K", whole(1, 100), "the largest K of the table"),
    **pick("json"),
}
# fmt: on
LISTS = ("batch_sizes",)
EXAMPLES = ("", "--accelerator H200 --alpha 0.8 --context 100")
NUMBERS = ("tokens_per_call", "speedup")
UNITS = {"flops": 1e12, "bandwidth": 1e12, "memory": 1e9}


def run(options, report):
    given = {name: unit * value for name, unit in UNITS.items() if (value := getattr(options, name)) is not None}
    chip = replace(ACCELERATORS[options.accelerator], **given)
    chip = replace(chip, **{name: options.n_accelerators * getattr(chip, name) for name in UNITS})  # as one chip
    target = ModelShape(1e9 * options.target_params, *options.target_shape, n_bytes=options.bytes)
    draft = ModelShape(1e9 * options.draft_params, *options.draft_shape, n_bytes=options.bytes)
    draft = draft if options.draft_params else None
    models, sizes = [target, draft] if draft else [target], sorted(options.batch_sizes.values())
    room = most_texts(chip, models, options.context)
    if not room:
        raise ValueError(
            f"{sum(model.weight_bytes for model in models) / 1e9:,.1f} GB of weights and a sequence of "
            f"{options.context:,} tokens do not fit {chip.memory / 1e9:,.0f} GB of memory: give more --n_accelerators "
            "or fewer --bytes"
        )

    def best(n):
        return batch_best_K(chip, target, draft, options.alpha, n, options.context, options.max_K)

    rows, tried = [], np.arange(1, min(room, sizes[-1]) + 1)
    for n in sizes:
        (K, speedup), step = best(n), forward_time(chip, target, n, 1, options.context)
        tokens = expected_tokens(options.alpha, K)
        rows.append({"batch": n, "fits": n <= room, "step": step, "K": K, **dict(zip(NUMBERS, (tokens, speedup)))})
    pays = tried[best(tried)[0] > 0].tolist()
    several = f"{options.n_accelerators} x " if options.n_accelerators > 1 else ""
    page = f"""\
{several}{options.accelerator}: {chip.flops / 1e12:,.0f} TFLOPS, {chip.bandwidth / 1e12:,.2f} TB/s, \
{chip.memory / 1e9:,.0f} GB ({chip.source}{f"; {', '.join(given)}: as given" if given else ""})
target  {sizes_of(target)}
draft   {sizes_of(draft) if draft else "costs nothing"}
alpha   {options.alpha:g}; {options.context:,} tokens of context in each sequence

{table([*map(cells, rows)])}

{where_it_pays(pays, len(tried), room)}
m* = {free_tokens(chip, options.bytes):,.0f}: with short contexts, a forward pass over that many tokens takes no \
longer than over one.

Assumed: a forward pass takes the time to read the weights once and the KV cache of every sequence once, or the time
to compute, whichever is longer, at the full speed of the data sheet; nothing else takes time or memory. Each draft
token is accepted with probability alpha if those before it are. Measured speedups are lower.
"""
    report.finish({**asdict(chip), "rows": rows, "room": room, "pays": pays[:1] + pays[-1:]}, page)


def cells(row):
    step = f"{1000 * row['step']:.2f}" if row["fits"] else "memory is full"
    found = {"best K": str(row["K"])} | {name.replace("_", " "): f"{row[name]:.2f}" for name in NUMBERS}
    found = found if row["fits"] else dict.fromkeys(found, "-")
    return {"batch size": str(row["batch"]), "step, ms": step, **found}


def sizes_of(model):
    size = f"{model.n_params / 1e9:,.2f} billion parameters, {model.weight_bytes / 1e9:,.1f} GB"
    return f"{size}; KV cache {model.cache_bytes / 1e3:,.0f} kB a token"


def where_it_pays(pays, tried, room):
    if not pays:
        return f"Speculation pays at no batch size up to {tried}."
    last, start = pays[-1], f"from a batch size of {pays[0]} " if pays[0] > 1 else ""
    end = f"not at {last + 1}" if last < tried else "the memory is full" if last == room else "the last tried"
    return f"Speculation pays {start}up to a batch size of {last} ({end})."
