"""The requirements of a training run, printed before it starts: memory, disk, and the tokens seen in a time budget.

These are rough estimates, from the shapes and the speed of a matmul.
"""

import os
import shutil
import time

import torch

from .loop import LARGE_VOCABULARY, N_TEXTS, tokens_a_step

REACHED = 0.4  # the fraction of a large matmul's speed that a step reaches
LIKE_BUNDLED = 3_000_000  # tokens on which the bundled EAGLE block was trained


def check_needs(kind, minutes, tokens, folder):
    """A sentence on the requirements of a training run with this budget; ValueError if memory or disk is too small."""
    h, n_own, n_rows = kind.hparams, sum(p.numel() for p in kind.params.values()), tokens_a_step(kind.hparams)
    every = 4 if h.n_vocab > LARGE_VOCABULARY else 1
    # multiplications per token: a step with its gradient; Muon's five iterations of three matmuls; writing its text
    in_step = 3 * n_own + (1 + 2 * len(kind.weights)) * h.n_vocab * h.n_embd / every
    in_text = 2 * (h.n_params - (h.n_vocab + h.n_ctx) * h.n_embd) + h.n_vocab * h.n_embd
    count = in_step + 30 * n_own * h.n_embd / n_rows + in_text / 4
    seconds = count / (REACHED * 768 * 4 * h.n_embd**2 / min(times_of_matmul(h.n_embd)))
    seen = min(60 * minutes / seconds if minutes else 1e30, tokens or 1e30)
    rows, caches = 4 * h.n_vocab * n_rows / every, 16 * N_TEXTS * min(192, h.n_ctx) * h.n_layer * h.n_embd
    memory = 8 * h.n_params + 16 * n_own + (4 + 2 * len(kind.weights)) * rows + caches + 4e8
    disk = seen / 4 * (2 * h.n_embd + 4) + 16 * n_own
    free = shutil.disk_usage(folder).free
    if disk > free:
        raise ValueError(
            f"about {in_gb(disk)} would be written to {folder}, which has room for {in_gb(free)}: give fewer --minutes "
            "or --tokens, or an --output on another disk"
        )
    if hasattr(os, "sysconf") and memory > (here := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")):
        raise ValueError(f"about {in_gb(memory)} of memory are needed, of {in_gb(here)} here: choose a smaller target")
    return (
        f"about {in_gb(memory)} of memory and {in_gb(disk)} on disk; about {seen / 1e6:.2g} million tokens in this "
        "budget (the bundled EAGLE block was trained on 3 million, which take about "
        f"{LIKE_BUNDLED * seconds / 60:.0f} minutes here)"
    )


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
    a, b, times, began = torch.ones(768, n_embd), torch.ones(n_embd, 4 * n_embd), [], time.perf_counter()
    while (at := time.perf_counter()) < began + 0.25 or len(times) < 3:
        a @ b
        times.append(time.perf_counter() - at)
    return times


def in_gb(n_bytes):
    return f"{n_bytes / 1e9:.2g} GB"
