"""The layers of reference.py and of layers.py: by their formulas, and by the intermediates of transformers."""

import math

import numpy as np
import pytest
from helpers import ROOT, intermediates, random_array, random_gpt2

from gpt2np import HParams, forward, layers, reference
from gpt2np.files.params import build_params, read_config
from gpt2np.files.safetensors import read_safetensors
from gpt2np.layers import block, gelu, layer_norm, mlp

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


each_module = pytest.mark.parametrize("module", [reference, layers], ids=["reference", "layers"])


@each_module
def test_every_intermediate_equals_that_of_transformers(module):
    """In the order of the pass, so that the first one that differs is named."""
    folder = ROOT / "tests" / "golden"
    hparams = read_config(folder / "config.json")
    assert hparams == SHAPE
    params = build_params(read_safetensors(folder / "model.safetensors"), hparams, "golden")
    golden = np.load(folder / "intermediates.npz")
    ours = list(intermediates(module, golden["tokens"].tolist(), params, hparams.n_head))
    assert [name for name, _ in ours] == [name for name in golden.files if name != "tokens"]
    for name, array in ours:
        assert array.dtype == np.float32, f"{name} is {array.dtype}"
        scale = np.abs(golden[name]).max()
        np.testing.assert_allclose(array, golden[name], rtol=0, atol=2e-6 * scale, err_msg=f"first differing: {name}")


@each_module
def test_layers_by_their_formulas(module):
    """Also where no model gets."""
    x = np.linspace(-30, 30, 601, dtype=np.float32)
    exact = [0.5 * t * (1 + math.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t**3))) for t in x.tolist()]
    np.testing.assert_allclose(module.gelu(x), exact, rtol=1e-5, atol=1e-6)
    x = np.array([[0, np.log(3), -np.inf], [1000, 1000, 1000]], np.float32)
    np.testing.assert_allclose(reference.softmax(x), [[0.25, 0.75, 0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
    assert reference.softmax(x).dtype == np.float32


def test_arguments_are_not_written_to():
    """The random tensors are read-only arrays, and so is the input here: writing to one would raise."""
    layer = random_gpt2(SHAPE).params["blocks"][0]
    x = random_array(5, SHAPE.n_embd)
    for result in (gelu(x), layer_norm(x, **layer["ln_1"]), mlp(x, **layer["mlp"]), block(x, layer, 3)):
        assert result.dtype == np.float32 and not np.shares_memory(result, x)


@pytest.mark.parametrize("n_last", [1, 5])
@pytest.mark.parametrize("shape", [SHAPE, HParams(n_vocab=64, n_ctx=448, n_embd=64, n_head=2, n_layer=2)])
def test_the_last_block_computes_the_last_rows_only(shape, n_last, monkeypatch):
    """Bitwise the rows that it would compute among all: in a tree, and in a prompt that attention takes in halves."""
    n_rows = []
    monkeypatch.setattr(layers, "mlp", lambda x, **params: n_rows.append(len(x)) or mlp(x, **params))
    prompt = np.random.default_rng(0).integers(0, shape.n_vocab, shape.n_ctx - 8).tolist()
    for tokens, parents in ((prompt, ()), (prompt[:20], (-1, 0, 0, 1, 2))):
        rows = random_gpt2(shape)(tokens, len(tokens) - len(parents), parents)
        n_rows.clear()
        model = random_gpt2(shape)
        assert np.array_equal(model(tokens, n_last, parents), rows[-n_last:])
        assert n_rows == [len(tokens)] * (shape.n_layer - 1) + [n_last]
    assert np.array_equal(forward(prompt, model.params, shape.n_head, np.uint8(n_last)), model(prompt, n_last))
