"""Heads on the last hidden state: what they compute and what they see. What is refused: test_refusals.py."""

import numpy as np
import pytest
from helpers import random_gpt2, random_heads

import gpt2np
from gpt2np import HParams
from gpt2np.drafting.heads import silu

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
MODEL = random_gpt2(SHAPE)


@pytest.mark.parametrize("kind", ["hydra", "medusa"])
@pytest.mark.parametrize("paths", [[[]], [[7], [9]], [[7, 8], [9, 7], [9, 8]]], ids=["head 1", "head 2", "head 3"])
def test_a_head_by_its_definition(kind, paths):
    """Against the equations in float64, from the hidden state of the model without a cache: what it sees, and no more.

    Hydra sees the tokens before its own place, Medusa only those that the model has processed: not the last one.
    """
    heads, tokens = random_heads(SHAPE, kind), [5, 1, 4, 2, 3]
    x = gpt2np.model.hidden_states(tokens[:-1], slice(0, 4), MODEL.params, SHAPE.n_head)[-1].astype(np.float64)
    h = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    wte, last = np.asarray(MODEL.params["wte"]), MODEL.params["ln_f"]
    head = {name: np.asarray(part) for name, part in heads.params[len(paths[0])].items()}
    states, after = random_gpt2(SHAPE).states(tokens[:-1]), np.insert(np.array(paths, int), 0, tokens[-1], axis=1)
    logits = heads.logits(MODEL, np.repeat(states, len(paths), axis=0), after)
    assert logits.shape == (len(paths), SHAPE.n_vocab) and logits.dtype == np.float32
    for i, (row, path) in enumerate(zip(logits, paths)):
        seen = np.concatenate([h, *(wte[token] for token in (tokens[-1], *path))]) if kind == "hydra" else h
        z = seen @ head["w"] + head.get("b", 0)
        y = (seen @ head["a"] if kind == "hydra" else h) + z / (1 + np.exp(-z))
        np.testing.assert_allclose(row, (y * last["g"] + last["b"]) @ wte.T, rtol=1e-3, atol=1e-3)
        assert row.tobytes() == heads.logits(MODEL, states, after[i : i + 1]).tobytes()  # whatever its neighbours are


def test_silu():
    x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4], np.float32)
    assert silu(x).dtype == np.float32
    np.testing.assert_allclose(silu(x), [0, -1 / (1 + np.e), 0, 1 / (1 + 1 / np.e), 1e4], rtol=1e-6)
