import math

import numpy as np
import pytest
from conftest import random_gpt2

from gpt2np import HParams
from gpt2np.layers import attention, block, gelu, layer_norm, linear, mlp, triangle
from gpt2np.loading import find_folder
from gpt2np.model import forward
from gpt2np.params import build_params, read_config
from gpt2np.safetensors import read_safetensors

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def intermediates(tokens, params, n_head):
    """Every intermediate of the uncached pass, in its order and under the golden file's names."""
    x = params["wte"][tokens] + params["wpe"][: len(tokens)]
    yield "embedding", x
    for i, layer in enumerate(params["blocks"]):
        normal = layer_norm(x, **layer["ln_1"])
        yield f"h.{i}.ln_1", normal
        attended = attention(normal, **layer["attn"], n_head=n_head)
        yield f"h.{i}.attn", attended
        normal = layer_norm(x + attended, **layer["ln_2"])
        yield f"h.{i}.ln_2", normal
        yield f"h.{i}.mlp", mlp(normal, **layer["mlp"])
        x = block(x, layer, n_head)
        yield f"h.{i}", x
    yield "ln_f", layer_norm(x, **params["ln_f"])
    yield "logits", forward(tokens, params, n_head)


def assert_same_intermediates(ours, golden, rtol):
    """Compare in the order of the pass, so that the first that differs is the one named."""
    for name, array in ours:
        assert array.dtype == np.float32, f"{name} is {array.dtype}"
        scale = np.abs(golden[name]).max()
        np.testing.assert_allclose(array, golden[name], rtol=0, atol=rtol * scale, err_msg=f"first differing: {name}")


def test_every_intermediate_equals_that_of_transformers(request):
    folder = request.path.parent / "golden"
    hparams = read_config(folder / "config.json")
    assert hparams == SHAPE
    params = build_params(read_safetensors(folder / "model.safetensors"), hparams, "golden")
    golden = np.load(folder / "intermediates.npz")
    ours = list(intermediates(golden["tokens"].tolist(), params, hparams.n_head))
    assert [name for name, _ in ours] == [name for name in golden.files if name != "tokens"]
    assert_same_intermediates(ours, golden, rtol=2e-6)


def test_a_difference_is_named_where_it_begins():
    params = random_gpt2(SHAPE).params
    golden = {name: array.copy() for name, array in intermediates([1, 2, 3], params, 3)}
    c_fc = params["blocks"][1]["mlp"]["c_fc"]
    c_fc["w"] = np.asarray(c_fc["w"]) * np.float32(1.01)
    with pytest.raises(AssertionError, match=r"first differing: h\.1\.mlp"):
        assert_same_intermediates(intermediates([1, 2, 3], params, 3), golden, rtol=2e-6)


def test_gelu():
    x = np.linspace(-30, 30, 601, dtype=np.float32)
    exact = [0.5 * t * (1 + math.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t**3))) for t in x.tolist()]
    np.testing.assert_allclose(gelu(x), exact, rtol=1e-5, atol=1e-6)


def test_attention():
    """Against the formula, in float64 and without any padding: softmax(q k / √d_head, masked) v."""
    rng, n, n_head, d_head = np.random.default_rng(0), 19, 3, 5
    x, c_attn = rng.standard_normal((n, 15), np.float32), random_gpt2(HParams(7, 29, 15, 3, 1)).params["blocks"][0]
    c_attn, c_proj = (c_attn["attn"][name] for name in ("c_attn", "c_proj"))
    q, k, v = (
        part.reshape(n, n_head, d_head).transpose(1, 0, 2)
        for part in np.split(x.astype(float) @ np.asarray(c_attn["w"]) + c_attn["b"], 3, axis=1)
    )
    scores = np.where(np.tri(n, dtype=bool), q @ k.transpose(0, 2, 1) / math.sqrt(d_head), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    heads = weights / weights.sum(-1, keepdims=True) @ v
    exact = heads.transpose(1, 0, 2).reshape(n, 15) @ np.asarray(c_proj["w"]) + c_proj["b"]
    np.testing.assert_allclose(attention(x, c_attn, c_proj, n_head), exact, rtol=1e-4, atol=1e-5)


def test_layer_norm():
    rng = np.random.default_rng(0)
    x, g, b = (rng.standard_normal(shape).astype(np.float32) * 3 + 1 for shape in ((5, 7), 7, 7))
    exact = x.astype(float)
    exact = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5) * g + b
    np.testing.assert_allclose(layer_norm(x, g, b), exact, rtol=1e-5, atol=1e-5)


def test_linear():
    x, w, b = np.array([[1, 2]], np.float32), np.array([[1, 0, 3], [0, 1, 5]], np.float32), np.ones(3, np.float32)
    np.testing.assert_array_equal(linear(x, w, b), [[2, 3, 14]])


def test_triangle():
    inf = -np.inf
    np.testing.assert_array_equal(triangle(3), [[0, inf, inf], [0, 0, inf], [0, 0, 0]])
    with pytest.raises(ValueError, match="read-only"):
        triangle(3)[0, 0] = 1  # it is shared between calls


def test_no_token_sees_what_comes_after_it():
    params = random_gpt2(SHAPE).params
    logits = forward([5, 6, 7, 8], params, SHAPE.n_head)
    other = forward([5, 6, 9, 10], params, SHAPE.n_head)
    np.testing.assert_array_equal(logits[:2], other[:2])
    assert np.abs(logits[2:] - other[2:]).max(axis=-1).min() > 0.1


def test_arguments_are_not_written_to():
    """The random tensors are read-only arrays, and so is the input here: writing to one would raise."""
    layer = random_gpt2(SHAPE).params["blocks"][0]
    x = np.random.default_rng(0).standard_normal((5, SHAPE.n_embd)).astype(np.float32)
    x.setflags(write=False)
    for result in (gelu(x), layer_norm(x, **layer["ln_1"]), mlp(x, **layer["mlp"]), block(x, layer, 3)):
        assert result.dtype == np.float32 and not np.shares_memory(result, x)


def test_the_bundled_model_runs_from_plain_functions(tiny_pair):
    """As a notebook does it: parameters, ids, blocks, no cache."""
    target, _, tokenizer = tiny_pair
    tokens = tokenizer.encode("Once upon a time")
    logits = dict(intermediates(tokens, target.params, target.hparams.n_head))["logits"]
    np.testing.assert_allclose(logits, target(tokens, n_last=len(tokens)), rtol=1e-4, atol=1e-4)
    assert find_folder("tiny-target", None).is_dir()
