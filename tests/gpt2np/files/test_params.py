"""From the tensors of a file to the parameter tree: names, shapes, types and the config."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import random_tensors

from gpt2np import CheckpointError, HParams
from gpt2np.files.params import build_params, openai_names, read_config, read_hparams

SHAPE = HParams(n_vocab=31, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)
CONFIG = {"model_type": "gpt2", "vocab_size": 31, "n_positions": 29, "n_embd": 21, "n_head": 3, "n_layer": 2}


def assert_same(tree, other):
    if isinstance(tree, np.ndarray):
        assert tree.dtype == other.dtype == np.float32 and np.array_equal(tree, other)
        return
    assert len(tree) == len(other)
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        assert_same(tree[key], other[key])


def test_prefixes_other_floats_and_tensors_that_are_not_parameters():
    plain = build_params(random_tensors(SHAPE), SHAPE, "file")
    mask = np.ones((1, 1, 29, 29), bool)
    extra = {"h.0.attn.bias": mask, "h.1.attn.masked_bias": np.array(-1e4, np.float32)}
    assert_same(build_params(random_tensors(SHAPE) | extra, SHAPE, "file"), plain)
    tensors = {f"transformer.{name}": tensor for name, tensor in (random_tensors(SHAPE) | extra).items()}
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
    assert_same(build_params(tensors, SHAPE, "file"), plain)
    for dtype in (np.float16, np.float64):
        tensors = {name: tensor.astype(dtype) for name, tensor in random_tensors(SHAPE).items()}
        rounded = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        assert_same(build_params(tensors, SHAPE, "file"), build_params(rounded, SHAPE, "file"))


def test_float32_matrices_are_used_in_place():
    tensors = random_tensors(SHAPE)
    tensors["wte.weight"] = tensors["wte.weight"].copy()
    tensors["wte.weight"][5, 2] = np.nan
    tensors["lm_head.weight"] = tensors["wte.weight"].copy()  # a copy of the embeddings may have NaN
    params = build_params(tensors, SHAPE, "file")
    assert params["wte"] is tensors["wte.weight"] and np.isnan(params["wte"][5, 2])
    assert params["blocks"][1]["attn"]["c_attn"]["w"] is tensors["h.1.attn.c_attn.weight"]
    small = params["blocks"][0]["ln_2"]["g"]
    np.testing.assert_array_equal(small, tensors["h.0.ln_2.weight"])
    assert not np.shares_memory(small, tensors["h.0.ln_2.weight"]) and not small.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("h.1.mlp.c_fc.bias"), r"lacks h\.1\.mlp\.c_fc\.bias; use the files"),
        (lambda t: [t.pop(name) for name in list(t) if name.startswith("h.1.")], r"lacks .* and 8 more"),
        (lambda t: t.update({"h.2.ln_1.bias": t["ln_f.bias"]}), r"has the unexpected h\.2\.ln_1\.bias"),
        (
            lambda t: t.update({"transformer.ln_f.bias": t["ln_f.bias"] + 1}),
            "with different numbers",
        ),
        (lambda t: t.update({"ln_f.bias": t["ln_f.bias"][1:]}), r"wrong shape for ln_f\.bias \[20\] instead of \[21\]"),
        (
            lambda t: t.update({"h.0.attn.c_attn.weight": t["h.0.attn.c_attn.weight"].T}),
            r"wrong shape for h\.0\.attn\.c_attn\.weight \[63, 21\] instead of \[21, 63\]",
        ),
        (
            lambda t: t.update({"ln_f.bias": np.zeros(21, np.int32)}),
            r"no floating-point values in ln_f\.bias \(int32\)",
        ),
        (lambda t: t.update({"lm_head.weight": t["wte.weight"] + 1}), r"lm_head\.weight that differs from wte"),
    ],
)
def test_the_wrong_tensor_is_named(change, message):
    tensors = random_tensors(SHAPE)
    change(tensors)
    with pytest.raises(CheckpointError, match=message):
        build_params(tensors, SHAPE, "file")


# ------------------------------------------------------------------------------------------------ OpenAI's names


def test_openais_names_and_a_first_dimension_of_one():
    names = ["model/wte", "global_step", "model/h1/ln_1/g", "model/h0/x/y", "model/Adam/wte", "Adam/model/wte", "x/w"]
    renamed = openai_names({name: np.zeros(2) for name in names})
    assert [*renamed] == ["wte.weight", "global_step", "h.1.ln_1.weight", *names[3:]]
    for shape, kept in (((1, 2, 8), (2, 8)), ((2, 2, 8), (2, 2, 8)), ((1, 8), (1, 8)), ((2, 8), (2, 8))):
        tensors = openai_names({"model/h0/mlp/c_fc/w": np.zeros(shape), "model/h0/ln_1/g": np.zeros((1, 2, 8))})
        assert [tensor.shape for tensor in tensors.values()] == [kept, (1, 2, 8)]


# ------------------------------------------------------------------------------------------------ the config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "gelu"}, "activation_function is 'gelu', but GPT-2 has 'gelu_new'"),
        ({"model_type": "llama"}, "model_type is 'llama', but GPT-2 has 'gpt2'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False, but GPT-2 has True"),
        ({"add_cross_attention": True}, "add_cross_attention is True, but GPT-2 has False"),
        ({"is_causal": False}, "is_causal is False, but GPT-2 has True"),
        ({"n_inner": 50}, "n_inner is 50, but GPT-2 has None"),
        ({"model_type": "\x1b[2J"}, r"model_type is '\\x1b\[2J', but GPT-2 has"),
        ({"model_type": "x" * 1_000_000}, r"model_type is 'xxx.* only that is supported"),
        ({"n_head": 4}, "n_embd a multiple of n_head"),
        *[({"n_layer": n}, "expected whole numbers from 1 to a million") for n in ("2", 0, -3, None, 2.0, True, 10**9)],
    ],
)
def test_a_config_that_is_not_a_gpt2s_is_refused(tmp_path, change, message):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(CheckpointError, match=message) as error:
        read_config(tmp_path / "config.json")
    assert str(error.value).isprintable() and len(str(error.value)) <= 500


@pytest.mark.parametrize(
    ("text", "what"), [("", "JSON"), ("{", "JSON"), ("[" * 99_999, "JSON"), ("\udcff", "JSON"), ("[]", "a JSON object")]
)
@pytest.mark.parametrize("read", [read_config, read_hparams])
def test_a_config_that_is_no_json_object_is_refused(tmp_path, text, what, read):
    (tmp_path / "config.json").write_text(text, errors="surrogateescape")
    with pytest.raises(CheckpointError, match=rf"config\.json is not {what}"):
        read(tmp_path / "config.json")


def test_a_config_is_read_and_equivalent_ones_are_accepted(tmp_path):
    path = tmp_path / "config.json"
    for more in ({}, {"n_inner": 84, "activation_function": "gelu_pytorch_tanh"}):
        path.write_text(json.dumps(CONFIG | more))
        assert read_config(path) == SHAPE
    path.write_text(json.dumps(vars(replace(SHAPE, n_vocab=32))))
    assert read_hparams(path) == replace(SHAPE, n_vocab=32)
