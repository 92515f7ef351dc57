"""The requirements of a training run, printed before it starts: memory, disk, and the tokens seen in a time budget.

These are rough estimates, from the shapes and the speed of a matmul.
"""

import math
import os
import shutil
import time

import torch

from .loop import N_TEXTS, stride, tokens_a_step

REACHED = 0.4  # the fraction of a large matmul's speed that a step reaches
LIKE_BUNDLED = 3_000_000  # tokens on which the bundled EAGLE block was trained


def check_needs(kind, minutes, tokens, output, copies):
    """A sentence on the requirements of a training run with this budget; ValueError if memory or disk is too small.

    What is already in `output` is not written again: the text so far, and those of the `copies` that are there.
    """
    folder = next(path for path in (output, *output.parents) if path.exists())
    written = sum(path.stat().st_size for path in (output / "training").glob("*") if path.is_file())
    copied = sum(old.stat().st_size for new, old in copies.items() if not new.exists())
    seconds = seconds_per_token(kind)
    n_tokens = min(60 * minutes / seconds if minutes else math.inf, tokens or math.inf)  # 0 means no limit
    memory, disk = memory_of(kind), disk_of(kind, n_tokens)
    missing = copied + max(disk - written, 20 * kind.n_params)  # always the next checkpoint, and the drafter
    if missing > (free := shutil.disk_usage(folder).free):
        raise ValueError(
            f"about {in_gb(missing)} would be written to {folder}, which has room for {in_gb(free)}: give fewer "
            "--minutes or --tokens, or an --output on another disk"
        )
    if hasattr(os, "sysconf") and memory > (here := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")):
        raise ValueError(f"about {in_gb(memory)} of memory are needed, of {in_gb(here)} here: choose a smaller target")
    return (
        f"about {in_gb(memory)} of memory and {in_gb(copied + disk)} on disk; about {n_tokens / 1e6:.2g} million "
        "tokens in this budget (the bundled EAGLE block was trained on 3 million, which take about "
        f"{LIKE_BUNDLED * seconds / 60:.0f} minutes here)"
    )


def seconds_per_token(kind):
    """The time to train on one token: its multiplications, at a fraction of the speed of a large matmul."""
    h, n_own = kind.hparams, kind.n_params
    n_blocks = h.n_params - (h.n_vocab + h.n_ctx) * h.n_embd  # the target's parameters without its embeddings
    n_projection = h.n_vocab * h.n_embd
    # a step: the drafter forward, and backward at twice the cost; the target's vocabulary projection; at each depth of
    # the draft that projection again, forward and backward (its weights get no gradient)
    step = 3 * n_own + (1 + 2 * len(kind.weights)) * n_projection / stride(h)
    # Muon: five iterations of three matmuls for each matrix, counted double; once for all tokens of a step
    muon = 30 * n_own * h.n_embd / tokens_a_step(h)
    # the target writes the text, then computes its states without logits; each token is used about four times
    text = (2 * n_blocks + n_projection) / 4
    speed = REACHED * 768 * 4 * h.n_embd**2 / min(times_of_matmul(h.n_embd))  # multiplications per second
    return (step + muon + text) / speed


def memory_of(kind):
    """The memory of a run in bytes."""
    h = kind.hparams
    target = 8 * h.n_params  # float32, in NumPy to write the text and in PyTorch to learn from it
    drafter = 16 * kind.n_params  # float32: the parameters, their gradients and up to two moments of each
    rows = 4 * h.n_vocab * tokens_a_step(h) / stride(h)  # one float32 for each token of the vocabulary and position
    logits = (4 + 2 * len(kind.weights)) * rows  # the target's and some in between; at each depth, with their gradients
    caches = 16 * N_TEXTS * min(192, h.n_ctx) * h.n_layer * h.n_embd  # twice the float32 keys and values of a batch
    return target + drafter + logits + caches + 4e8  # PyTorch itself


def disk_of(kind, n_tokens):
    """The bytes written by a run that learns from n_tokens."""
    text = n_tokens / 4 * (2 * kind.hparams.n_embd + 4)  # each is used four times: its state float16, its id int32
    return text + 36 * kind.n_params  # the checkpoint and its replacement, and the drafter


def use_fastest_threads(n_embd):
    """Set PyTorch to the number of threads that is fastest now. On a busy machine, many wait for each other."""
    most, seconds = torch.get_num_threads(), {}
    for n in {1, max(1, most // 2), most}:
        torch.set_num_threads(n)
        times = times_of_matmul(n_embd)
        seconds[n] = sum(times) / len(times)
    torch.set_num_threads(min(seconds, key=seconds.get))


def times_of_matmul(n_embd):
    """The seconds of each matmul among those that run in a quarter of a second."""
    a, b = torch.ones(768, n_embd), torch.ones(n_embd, 4 * n_embd)
    times, began = [], time.perf_counter()
    while (at := time.perf_counter()) < began + 0.25 or len(times) < 3:
        a @ b
        times.append(time.perf_counter() - at)
    return times


def in_gb(n_bytes):
    return f"{n_bytes / 1e9:.2g} GB"
