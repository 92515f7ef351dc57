"""From the tensors of a file to the parameter tree: names, types and the config. What is refused: test_refusals.py."""

import json
from dataclasses import replace

import numpy as np
from helpers import random_tensors

from gpt2np import HParams
from gpt2np.files.names import hub_names
from gpt2np.files.params import build_params, read_config

SHAPE = HParams(n_vocab=31, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)
CONFIG = {"model_type": "gpt2", "vocab_size": 31, "n_positions": 29, "n_embd": 21, "n_head": 3, "n_layer": 2}


def leaves(tree):
    if isinstance(tree, np.ndarray):
        assert tree.dtype == np.float32
        return [tree.tolist()]
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [(key, leaves(part)) for key, part in parts]


def test_prefixes_other_floats_and_tensors_that_are_not_parameters():
    plain = leaves(build_params(random_tensors(SHAPE), SHAPE, "file"))
    mask = np.ones((1, 1, 29, 29), bool)
    tensors = random_tensors(SHAPE) | {"h.0.attn.bias": mask, "h.1.attn.masked_bias": np.array(-1e4, np.float32)}
    assert leaves(build_params(tensors, SHAPE, "file")) == plain
    tensors = {f"transformer.{name}": tensor for name, tensor in tensors.items()}
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
    tensors["ln_f.bias"] = tensors["transformer.ln_f.bias"]  # twice, with the same numbers
    assert leaves(build_params(tensors, SHAPE, "file")) == plain
    for dtype in (np.float16, np.float64):
        tensors = {name: tensor.astype(dtype) for name, tensor in random_tensors(SHAPE).items()}
        rounded = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        assert leaves(build_params(tensors, SHAPE, "file")) == leaves(build_params(rounded, SHAPE, "file"))


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


def test_openais_names_and_a_first_dimension_of_one():
    names = ["model/wte", "global_step", "model/h1/ln_1/g", "model/h0/x/y", "model/Adam/wte", "Adam/model/wte", "x/w"]
    renamed = hub_names({name: np.zeros(2) for name in names}, "file")
    assert [*renamed] == ["wte.weight", "global_step", "h.1.ln_1.weight", *names[3:]]
    for shape, kept in (((1, 2, 8), (2, 8)), ((2, 2, 8), (2, 2, 8)), ((1, 8), (1, 8)), ((2, 8), (2, 8))):
        both = {"model/h0/mlp/c_fc/w": np.zeros(shape), "model/h0/ln_1/g": np.zeros((1, 2, 8))}
        tensors = hub_names(both, "file")
        assert [tensor.shape for tensor in tensors.values()] == [kept, (1, 2, 8)]


def test_a_config_is_read_and_equivalent_ones_are_accepted(tmp_path):
    path = tmp_path / "config.json"
    for more in ({}, {"n_inner": 84, "activation_function": "gelu_pytorch_tanh"}):
        path.write_text(json.dumps(CONFIG | more))
        assert read_config(path) == SHAPE
    path.write_text(json.dumps(vars(replace(SHAPE, n_vocab=32))))
    assert read_config(path) == replace(SHAPE, n_vocab=32)
