"""What to expect on an accelerator: the least time of a forward pass, and the draft length by batch size.

expected.py counts tokens and takes the costs as measured. Here the costs come from a data sheet: a pass takes at least
the time to read the weights once and the KV cache of each text once, and at least the time to compute (the roofline
model; Williams et al., doi:10.1145/1498765.1498785). Sharing a pass among texts shares the weights, not the caches.
Real kernels reach less, so these are limits, not measurements; measuring/ measures.
"""

from dataclasses import dataclass

import numpy as np

from .expected import check_K, expected_tokens, plain


@dataclass(frozen=True)
class Accelerator:
    """The numbers of a data sheet: operations per second, bytes per second, bytes of memory, and their source.

    NVIDIA prints operations "with sparsity", which assumes that half of the weights are 0; `flops` is the number
    without sparsity, half as large, for numbers of 2 bytes (bfloat16).
    """

    flops: float
    bandwidth: float
    memory: float
    source: str = ""


ACCELERATORS = {
    "A100": Accelerator(312e12, 2.039e12, 80e9, "NVIDIA's data sheet, A100 80GB SXM"),
    "H100": Accelerator(989e12, 3.35e12, 80e9, "NVIDIA's data sheet, H100 SXM"),
    "H200": Accelerator(989e12, 4.8e12, 141e9, "NVIDIA's data sheet, H200 SXM"),
    "B200": Accelerator(2250e12, 8e12, 180e9, "NVIDIA's data sheet, one of the eight in an HGX B200"),
    "RTX4090": Accelerator(165e12, 1.008e12, 24e9, "NVIDIA's paper on Ada, RTX 4090, with sums in float32"),
    "MI300X": Accelerator(1307e12, 5.3e12, 192e9, "AMD's data sheet, Instinct MI300X"),
    "TPUv5p": Accelerator(459e12, 2.765e12, 95e9, "Google Cloud's documentation, TPU v5p"),
}


@dataclass(frozen=True)
class ModelShape:
    """The sizes that the time of a pass depends on; n_bytes is the size of a weight and of a number in the KV cache."""

    n_params: float
    n_layer: int
    n_head: int
    n_kv_head: int
    d_head: int
    n_bytes: float = 2

    @property
    def weight_bytes(self):
        return self.n_bytes * self.n_params

    @property
    def cache_bytes(self):
        """Bytes of one token's keys and values."""
        return 2 * self.n_bytes * self.n_layer * self.n_kv_head * self.d_head


LLAMA_8B = ModelShape(8.03e9, n_layer=32, n_head=32, n_kv_head=8, d_head=128)  # config.json of Llama 3.1 8B
LLAMA_1B = ModelShape(1.24e9, n_layer=16, n_head=32, n_kv_head=8, d_head=64)  # and of Llama 3.2 1B


def free_tokens(accelerator, n_bytes=2):
    """m* = n_bytes F / (2 B): up to this many tokens, a pass spends less time computing than reading the weights.

    Each token takes 2 operations per weight, and reading a weight takes n_bytes / B. The KV caches are left out.

    >>> int(free_tokens(ACCELERATORS["H100"]))
    295
    """
    return n_bytes * accelerator.flops / (2 * accelerator.bandwidth)


def forward_time(accelerator, model, n_texts, n_new, context):
    """The least time (seconds) of a forward pass for n_new tokens of each of n_texts texts.

    It is the larger of the times to read and to compute. Each text has `context` tokens in its KV cache. Here and
    below, n_texts, n_new and K may be arrays.

    >>> f"{forward_time(ACCELERATORS['H100'], LLAMA_8B, n_texts=1, n_new=1, context=1000):.4f}"
    '0.0048'
    """
    read = model.weight_bytes + n_texts * context * model.cache_bytes
    attention = 4 * context * model.n_layer * model.n_head * model.d_head  # scores, and sums of values
    compute = n_texts * n_new * (2 * model.n_params + attention)
    return plain(np.maximum(read / accelerator.bandwidth, compute / accelerator.flops))


def batch_speedup(accelerator, target, draft, alpha, n_texts, K, context):
    """The speedup of drafts of K tokens over autoregressive steps, for n_texts texts at once.

    A round drafts K times for all texts, then the target verifies K + 1 tokens of each:

        E(alpha, K) V_target(n) / (K V_draft(n) + V_target(n (K + 1)))

    `draft` is None if drafting costs nothing, as with prompt lookup. alpha: as in `expected_tokens`. Scheduling,
    communication and the start of kernels are left out.

    >>> [round(batch_speedup(ACCELERATORS["H100"], LLAMA_8B, LLAMA_1B, 0.7, n, 3, 100), 2) for n in (1, 128)]
    [1.73, 1.23]
    """
    step = forward_time(accelerator, target, n_texts, 1, context)
    drafting = check_K(K) * forward_time(accelerator, draft, n_texts, 1, context) if draft else 0.0
    verification = forward_time(accelerator, target, n_texts, np.add(K, 1), context)
    return plain(expected_tokens(alpha, K) * step / (drafting + verification))


def batch_best_K(accelerator, target, draft, alpha, n_texts, context, most=10):
    """(K, speedup) of the best K from 0 to `most`; (0, 1.0) where speculation does not pay. n_texts may be an array.

    >>> batch_best_K(ACCELERATORS["H100"], LLAMA_8B, LLAMA_1B, 0.7, 512, context=100)
    (0, 1.0)
    """
    K = np.arange(most + 1)
    speedups = batch_speedup(accelerator, target, draft, alpha, np.asarray(n_texts)[..., None], K, context)
    return plain(speedups.argmax(axis=-1)), plain(speedups.max(axis=-1))


def most_texts(accelerator, models, context):
    """The number of texts that fit in memory with the weights of these models, each with its KV caches (context >= 1).

    >>> most_texts(ACCELERATORS["H100"], [LLAMA_8B, LLAMA_1B], context=1000)
    375
    """
    free = accelerator.memory - sum(model.weight_bytes for model in models)
    return max(0, int(free // (context * sum(model.cache_bytes for model in models))))
