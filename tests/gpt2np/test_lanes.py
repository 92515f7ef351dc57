"""Several texts in one pass: every call has the bits of a model that is called alone."""

import copy

import numpy as np
import pytest
from helpers import random_gpt2, walk

from gpt2np import HParams
from gpt2np.kernels import threads
from speculative.tree import path

SHAPES = [
    HParams(n_vocab=53, n_ctx=300, n_embd=3 * 7, n_head=3, n_layer=2),
    HParams(n_vocab=40, n_ctx=150, n_embd=16, n_head=1, n_layer=2),
    pytest.param(HParams(n_vocab=700, n_ctx=150, n_embd=1024, n_head=4, n_layer=1), marks=pytest.mark.slow),
]


def calls_of(shape, seed, n):
    """A text after another in one lane: chains, trees, accepted branches, prompts; (tokens, n_last, parents)."""
    rng = np.random.default_rng(seed)
    for tokens, n_last in walk(shape, n, seed):
        yield tokens, min(n_last, 6), ()
        if len(tokens) < shape.n_ctx - 9:
            parents = [int(rng.integers(-1, i)) if i else -1 for i in range(6)]
            nodes = rng.permutation(shape.n_vocab)[:6].tolist()
            yield [*tokens, *nodes], 7, parents
            yield [*tokens, *(nodes[i] for i in path(parents, int(rng.integers(6)))), 1], 2, ()


def check_schedule(model, n_lanes, n_calls, seed=0):
    """In each pass some of the lanes take part, in any order."""
    rng, lanes, alone = np.random.default_rng(seed), model.lanes(n_lanes), copy.copy(model)
    waiting = [[*calls_of(model, seed + i, n_calls)] for i in range(n_lanes)]
    while any(waiting):
        asked = [
            i for i in rng.permutation(n_lanes) if waiting[i] and (rng.random() < 0.7 or sum(map(bool, waiting)) < 3)
        ]
        calls = [(lanes[i], *waiting[i].pop(0)) for i in asked]
        for (_, *call), rows in zip(calls, lanes[0].together(calls) if calls else ()):
            assert rows.tobytes() == alone(*call).tobytes(), (asked, call)
        for i in asked[:2]:  # the hidden states are those of the text
            tokens = [*range(1, 9)]
            if not waiting[i]:
                assert lanes[i].states(tokens, 3).tobytes() == alone.states(tokens, 3).tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "one head", "large"])
@pytest.mark.parametrize("n_threads", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5))], indirect=True)
def test_every_call_has_the_bits_of_a_lone_model(shape, strategy, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 1)
    check_schedule(random_gpt2(shape), 5, 4)
