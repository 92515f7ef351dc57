"""What a training will need, said before it starts: memory, disk, and how far a budget of time goes on this machine."""

import os
import shutil
import time
from dataclasses import dataclass

import torch

from .loop import LARGE_VOCABULARY, N_TEXTS, tokens_a_step

REACHED = 0.4  # of the speed of a large matmul, in a step
LIKE_BUNDLED = 3_000_000  # tokens, that the bundled block was trained on


@dataclass(frozen=True)
class Needs:
    """Bytes of memory and on disk, tokens trained on, and seconds for a million tokens; all of them rough."""

    memory: float
    disk: float
    tokens: float
    seconds_a_million: float

    def check(self, folder):
        """Raise ValueError if this machine has less memory, or less room in this folder."""
        free = shutil.disk_usage(folder).free
        if self.disk > free:
            raise ValueError(
                f"about {gigabytes(self.disk)} of text would be stored in {folder}, which has room for "
                f"{gigabytes(free)}: give fewer --minutes or --tokens, or an --output on another disk"
            )
        if hasattr(os, "sysconf") and self.memory > (
            all_of_it := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        ):
            raise ValueError(
                f"about {gigabytes(self.memory)} of memory are needed, and this machine has {gigabytes(all_of_it)}: "
                "train for a smaller target"
            )

    def __str__(self):
        return (
            f"about {gigabytes(self.memory)} of memory and {gigabytes(self.disk)} on disk; about "
            f"{self.tokens / 1e6:.2g} million tokens in this time (the bundled EAGLE block was trained on 3 million, "
            f"which take about {LIKE_BUNDLED * self.seconds_a_million / 6e7:.0f} minutes here)"
        )


def needs_of(kind, minutes, tokens, n_texts=N_TEXTS):
    """The `Needs` of training a kind with this budget, from its shapes and the speed of a matmul on this machine."""
    h, n_own = kind.hparams, sum(p.numel() for p in kind.params.values())
    speed = REACHED * matmul_speed(h.n_embd)  # multiplications a second
    every = 4 if h.n_vocab > LARGE_VOCABULARY else 1
    n_in_blocks = h.n_params - (h.n_vocab + h.n_ctx) * h.n_embd
    a_step = 3 * n_own + (1 + 2 * len(kind.weights)) * h.n_vocab * h.n_embd / every  # for a token, with its gradient
    optimizer = 30 * n_own * h.n_embd / tokens_a_step(h)  # five iterations of three products, see muon.py
    of_text = 2 * n_in_blocks + h.n_vocab * h.n_embd  # written, and its hidden states
    seconds = (a_step + optimizer + of_text / 4) / speed
    seen = min(60 * minutes / seconds if minutes else 1e30, tokens or 1e30)
    row = 4 * h.n_vocab * tokens_a_step(h) / every
    lanes = 16 * n_texts * min(192, h.n_ctx) * h.n_layer * h.n_embd
    memory = 8 * h.n_params + 16 * n_own + (4 + 2 * len(kind.weights)) * row + lanes + 4e8
    return Needs(memory, seen / 4 * (2 * h.n_embd + 4) + 16 * n_own, seen, 1e6 * seconds)


def use_fastest_threads(n_embd):
    """Give PyTorch as many threads as are fastest now: on a busy machine several mostly wait for each other."""
    most, seconds = torch.get_num_threads(), {}
    for n in {1, max(1, most // 2), most}:
        torch.set_num_threads(n)
        times = times_of_matmul(n_embd)
        seconds[n] = sum(times) / len(times)
    torch.set_num_threads(min(seconds, key=seconds.get))


def matmul_speed(n_embd):
    """Multiplications a second in a matmul of a typical shape, at its fastest."""
    return 768 * 4 * n_embd**2 / min(times_of_matmul(n_embd))


def times_of_matmul(n_embd):
    """The seconds of each of the matmuls of a quarter of a second."""
    a, b, times, began = torch.ones(768, n_embd), torch.ones(n_embd, 4 * n_embd), [], time.perf_counter()
    while (at := time.perf_counter()) < began + 0.25 or len(times) < 3:
        a @ b
        times.append(time.perf_counter() - at)
    return times


def gigabytes(n_bytes):
    return f"{n_bytes / 1e9:.2g} GB"
