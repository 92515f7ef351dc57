"""Draft length by batch size on an accelerator, from an acceptance rate and a data sheet; nothing is measured."""

from dataclasses import asdict, replace

import numpy as np

from speculative.theory import expected_tokens
from speculative.theory.roofline import (
    ACCELERATORS,
    ModelShape,
    batch_best_K,
    forward_time,
    free_tokens,
    most_texts,
)

from ..options import Options, shortened
from ..tables import Columns
from . import experiment, names

OWN = {"flops": 1e12, "bandwidth": 1e12, "memory": 1e9}  # numbers of a data sheet that may be given, with their units


def accelerator_of(options):
    """The accelerator of the options; several count as one."""
    one = asdict(ACCELERATORS[options.accelerator])
    for name, unit in OWN.items():
        given = getattr(options, name)
        one[name] = options.n_accelerators * (one[name] if given is None else given * unit)
    return replace(ACCELERATORS[options.accelerator], **one)


def models_of(options):
    """(target, draft model); the second is None if drafts cost nothing."""
    found = []
    for name in ("target", "draft"):
        n_params = 1e9 * getattr(options, f"{name}_params")
        shape = [int(number) for number in getattr(options, f"{name}_shape").split(",")]
        found.append(ModelShape(n_params, *shape, n_bytes=options.bytes) if n_params else None)
    return found


def room_of(options):
    """The most sequences that fit the memory."""
    return most_texts(accelerator_of(options), [model for model in models_of(options) if model], options.context)


def four_numbers(options, command):
    for name in ("target_shape", "draft_shape"):
        if len(getattr(options, name).split(",")) != 4:
            raise ValueError(
                f"--{name}: expected layers, heads, KV heads and size of a head, such as {getattr(Options(), name)}, "
                f"got {shortened(getattr(options, name))}"
            )


def models_fit(options, command):
    if not room_of(options):
        weights = sum(model.weight_bytes for model in models_of(options) if model)
        raise ValueError(
            f"{weights / 1e9:,.1f} GB of weights and a sequence of {options.context:,} tokens do not fit "
            f"{accelerator_of(options).memory / 1e9:,.0f} GB of memory: give more --n_accelerators or fewer --bytes"
        )


def measure(options, saved):
    chip, (target, draft), room = accelerator_of(options), models_of(options), room_of(options)
    sizes = sorted(int(number) for number in options.listed("batch_sizes"))

    def best(n):
        return batch_best_K(chip, target, draft, options.alpha, n, options.context, options.max_K)

    def row(n):
        (K, speedup), step = best(n), forward_time(chip, target, n, 1, options.context)
        tokens = expected_tokens(options.alpha, K)
        return {"batch": n, "fits": n <= room, "step": step, "K": K, "tokens_per_call": tokens, "speedup": speedup}

    tried = np.arange(1, min(room, sizes[-1]) + 1)
    pays = tried[best(tried)[0] > 0].tolist()
    return {
        **asdict(chip), "accelerator": options.accelerator, "n_accelerators": options.n_accelerators,
        "given": [name for name in OWN if getattr(options, name) is not None],
        "target": described(target), "draft": draft and described(draft),
        "alpha": options.alpha, "context": options.context, "max_K": options.max_K,
        "free_tokens": free_tokens(chip, options.bytes), "room": room, "tried_up_to": len(tried),
        "pays_from": pays[0] if pays else None, "pays_up_to": pays[-1] if pays else None,
        "rows": [row(n) for n in sizes],
    }  # fmt: skip


def described(model):
    return {"parameters": model.n_params, "weight_bytes": model.weight_bytes, "cache_bytes": model.cache_bytes}


def table(report):
    columns = Columns(
        ("size", ">6", "{batch}", "batch"),
        ("step, ms", ">16", lambda row: f"{1000 * row['step']:.2f}", "autoregressive"),
        ("best K", ">9", "{K}"),
        ("per call", ">11", "{tokens_per_call:.2f}", "tokens"),
        ("speedup", ">10", "{speedup:.2f}"),
    )
    rows = [row if row["fits"] else [str(row["batch"]), "memory is full", "-", "-", "-"] for row in report["rows"]]
    m_star = f"m* = {report['free_tokens']:,.0f}"
    several = f"{report['n_accelerators']} x " if report["n_accelerators"] > 1 else ""
    given = f"; {', '.join(report['given'])}: as given" if report["given"] else ""
    return f"""\
{several}{report["accelerator"]}: {report["flops"] / 1e12:,.0f} TFLOPS, {report["bandwidth"] / 1e12:,.2f} TB/s, \
{report["memory"] / 1e9:,.0f} GB ({report["source"]}{given})
target  {sizes_of(report["target"])}
draft   {sizes_of(report["draft"]) if report["draft"] else "costs nothing"}
alpha   {report["alpha"]:g}; {report["context"]:,} tokens of context in each sequence

{columns.page(rows)}

{where_it_pays(report)}
{m_star}: with short contexts, a forward pass over that many tokens takes no longer than over one.

Assumed: a forward pass takes the time to read the weights once and the KV cache of every sequence once, or the time
to compute, whichever is longer, at the full speed of the data sheet; nothing else takes time or memory. Each draft
token is accepted with probability alpha if those before it are. Measured speedups are lower.
"""


def sizes_of(model):
    return (
        f"{model['parameters'] / 1e9:,.2f} billion parameters, {model['weight_bytes'] / 1e9:,.1f} GB; KV cache "
        f"{model['cache_bytes'] / 1e3:,.0f} kB a token"
    )


def where_it_pays(report):
    first, last, tried = report["pays_from"], report["pays_up_to"], report["tried_up_to"]
    if not last:
        return f"Speculation pays at no batch size up to {tried}."
    start = f"from a batch size of {first} " if first > 1 else ""
    end = f"not at {last + 1}" if last < tried else "the memory is full" if last == report["room"] else "the last tried"
    return f"Speculation pays {start}up to a batch size of {last} ({end})."


COMMAND = experiment(
    "batch_table",
    "the best draft length for each batch size on an accelerator, computed from an acceptance rate and a data sheet",
    measure,
    table,
    options=names(
        "accelerator n_accelerators flops bandwidth memory alpha target_params target_shape draft_params draft_shape "
        "bytes context batch_sizes max_K json"
    ),
    defaults={"context": 1000},
    checks=(four_numbers, models_fit),
    example="--accelerator H200 --alpha 0.8 --context 100",
)
