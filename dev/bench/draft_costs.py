"""The cost of a draft at GPT-2's shapes, and the acceptance from which it pays:

    python dev/bench/draft_costs.py [REPEATS]

The target has 355M's shape, and 124M, EAGLE's block and a parallel block draft for it, the blocks all 50257 tokens or
8192 of them. All weights are random: they cost what trained ones cost, and say nothing about acceptance. Rounds with
each drafter and each K take turns, and the medians are shown in units of an autoregressive step: the draft of K tokens,
and the tokens per call at which a round, draft and verification, is as fast as the target alone. "flat" is the
acceptance rate that yields that many if it is the same at each depth.
"""

import sys
from functools import partial
from statistics import median

import numpy as np

import gpt2np
from gpt2np import HParams
from gpt2np.files.params import block_params, build_params, linear_params, param_shapes
from speculative import EagleDrafter, ModelDrafter, ParallelDrafter, Sampling, SpeculativeSampler
from speculative.theory.expected import expected_tokens

TARGET, DRAFT = HParams(50257, 1024, 1024, 16, 24), HParams(50257, 1024, 768, 12, 12)
LENGTHS = (1, 2, 3, 4, 7)
N_TEXT, N_SLOTS, RANK, N_FREQUENT = 128, 8, 32, 8192


def random_arrays(shapes):
    rng = np.random.default_rng(0)
    return {name: 0.02 * rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def random_model(hparams):
    return gpt2np.GPT2(build_params(random_arrays(param_shapes(hparams)), hparams, "random"), hparams)


def drafters(target):
    """dict name -> drafter"""
    n, n_vocab = TARGET.n_embd, TARGET.n_vocab
    shapes = param_shapes(HParams(1, 1, n, 1, 1)) | {"input.weight": (2 * n, n), "input.bias": (n,)}
    tensors = random_arrays(shapes | {"mask": (N_SLOTS - 1, n), "w1": (n_vocab, RANK), "w2": (RANK, n_vocab)})
    eagle = gpt2np.EagleBlock(linear_params(tensors, "input"), block_params(tensors, "h.0"), np.arange(n_vocab))
    parallel = gpt2np.ParallelBlock(**vars(eagle), **{name: tensors[name] for name in ("mask", "w1", "w2")})
    kinds = {"EAGLE": partial(EagleDrafter, target, eagle), "parallel": partial(ParallelDrafter, target, parallel)}
    frequent = {f"{name}, {N_FREQUENT} tokens": make(n_frequent=N_FREQUENT) for name, make in kinds.items()}
    return {"124M": ModelDrafter(random_model(DRAFT)), **{name: make() for name, make in kinds.items()}, **frequent}


def measured(target, drafters, repeats):
    """(seconds of a step, dict K -> seconds of a verification, dict (name, K) -> seconds of a draft)"""
    tokens, times = np.random.default_rng(0).integers(0, TARGET.n_vocab, N_TEXT).tolist(), {}
    for repeat in range(-1, repeats):  # the first is a warm-up
        for name, drafter in drafters.items():
            for K in (0, *LENGTHS):
                target(tokens[:-1])
                drafter.propose(tokens[:-1], 1, np.random.default_rng(0))
                sampler = SpeculativeSampler(target, drafter, K=lambda history, K=K: K, sampling=Sampling(0))
                seconds = next(sampler.rounds(tokens, K + 1, 0)).seconds
                if repeat >= 0:
                    times.setdefault((name, K), []).append(seconds["draft"])
                    times.setdefault(K, []).append(seconds["target"] + seconds["verify"])
    times = {key: median(seconds) for key, seconds in times.items()}
    return times.pop(0), times


def flat(tokens_per_call, K):
    """The acceptance rate at which a draft of K tokens yields that many."""
    alphas = np.linspace(0, 1, 10_001)
    return float(np.interp(tokens_per_call, expected_tokens(alphas, K), alphas, right=np.nan))


def main(repeats=15):
    target = random_model(TARGET)
    made = drafters(target)
    one, times = measured(target, made, int(repeats))
    print(f"355M's shape, random weights, {N_TEXT} tokens of text; a step of the target takes {1000 * one:.1f} ms\n")
    print(f"{'':22}{'':16}" + "".join(f"{f'K = {K}':>9}" for K in LENGTHS))
    print(f"{'verification':38}" + "".join(f"{times[K] / one:9.2f}" for K in LENGTHS))
    for name in made:
        costs = {K: (times[name, K] + times[K]) / one for K in LENGTHS}
        print(f"\n{name:22}{'draft':16}" + "".join(f"{times[name, K] / one:9.2f}" for K in LENGTHS))
        print(f"{'':22}{'pays from':16}" + "".join(f"{costs[K]:9.2f}" for K in LENGTHS))
        print(f"{'':22}{'flat':16}" + "".join(f"{flat(costs[K], K):9.2f}" for K in LENGTHS))


if __name__ == "__main__":
    main(*sys.argv[1:])
