"""Heads on the last hidden state: what they compute, what they see, and their files."""

import numpy as np
import pytest
import safetensors.numpy
from helpers import random_gpt2, random_heads

import gpt2np
from gpt2np import CheckpointError, Heads, HParams, load_heads
from gpt2np.heads import heads_file, silu

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
MODEL = random_gpt2(SHAPE)
each_kind = pytest.mark.parametrize("kind", ["hydra", "medusa"])


def asked(heads, text, paths):
    """The logits of a head for the tokens after a text and each path, from the state of the last token but one."""
    states = np.repeat(random_gpt2(SHAPE).states(text[:-1]), len(paths), axis=0)
    return heads.logits(MODEL, states, np.insert(np.array(paths, int), 0, text[-1], axis=1))


@each_kind
@pytest.mark.parametrize("paths", [[[]], [[7], [9]], [[7, 8], [9, 7], [9, 8]]], ids=["head 1", "head 2", "head 3"])
def test_a_head_by_its_definition(kind, paths):
    """Against the equations in float64, from the hidden state of the model without a cache: what it sees, and no more.

    Hydra sees the tokens before its own place, Medusa only those that the model has processed: not the last one.
    """
    heads, tokens, i = random_heads(SHAPE, kind), [5, 1, 4, 2, 3], len(paths[0])
    x = gpt2np.model.hidden_states(tokens[:-1], slice(0, 4), MODEL.params, SHAPE.n_head)[-1].astype(np.float64)
    h = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    wte, last = np.asarray(MODEL.params["wte"]), MODEL.params["ln_f"]
    head = {name: np.asarray(part) for name, part in heads.params[i].items()}
    logits = asked(heads, tokens, paths)
    assert logits.shape == (len(paths), SHAPE.n_vocab) and logits.dtype == np.float32
    for row, path in zip(logits, paths):
        seen = np.concatenate([h, *(wte[token] for token in (tokens[-1], *path))]) if kind == "hydra" else h
        z = seen @ head["w"] + head.get("b", 0)
        y = (seen @ head["a"] if kind == "hydra" else h) + z / (1 + np.exp(-z))
        np.testing.assert_allclose(row, (y * last["g"] + last["b"]) @ wte.T, rtol=1e-3, atol=1e-3)
        assert row.tobytes() == asked(heads, tokens, [path])[0].tobytes()  # whatever its neighbours are


def test_silu():
    x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4], np.float32)
    assert silu(x).dtype == np.float32
    np.testing.assert_allclose(silu(x), [0, -1 / (1 + np.e), 0, 1 / (1 + 1 / np.e), 1e4], rtol=1e-6)


@each_kind
def test_the_bundled_heads(kind):
    heads, target = load_heads("tiny-target", kind), gpt2np.load("tiny-target")[0]
    assert heads.n_heads == 3 and heads.check(target) is heads
    assert heads.n_params == (1_179_648 if kind == "hydra" else 197_376)
    assert heads.accepted.shape == (3, 10) and heads.accepted.dtype == np.float32
    assert (heads.accepted >= 0).all() and (heads.accepted.sum(axis=-1) < 1.001).all()  # rounded to float16


# ------------------------------------------------------------------------------------------------ what is refused


def w(*shape):
    return np.ones(shape, np.float32)


HEAD = {"a": w(8, 4), "w": w(8, 4), "accepted": w(3)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Heads([]), "expected one head or more, got none"),
        (lambda: Heads([HEAD | {"w": w(6, 4)}]), r"expected arrays .* for head 1 of a model with n_embd 4"),
        (lambda: Heads([HEAD | {"accepted": w(8, 4)}]), r"'accepted': \('n_ranks',\)} for head 1 .*: \(8, 4\)}"),
        (lambda: Heads([HEAD] * 2), "for head 2 of a model with n_embd 4"),
        (lambda: Heads([HEAD]).check(MODEL), "for a model with n_embd 15, got heads with n_embd 4: load those of this"),
        *[
            (lambda n=n: random_heads(SHAPE).logits(MODEL, w(1, 15), np.ones((1, n), int)), f"1 to 3 tokens .* got {n}")
            for n in (0, 4)
        ],
        (
            lambda: load_heads("tiny-draft"),
            "tiny-draft has no heads: expected tiny-target, whose heads are bundled",
        ),
        (lambda: load_heads("tiny-target", "eagle"), "unknown heads 'eagle': expected hydra or medusa"),
        (lambda: load_heads("tiny-target", ["hydra"]), r"unknown heads \['hydra'\]: expected hydra or medusa"),
        (lambda: load_heads(None), "expected a model's name or folder, such as tiny-target, got None"),
    ],
)
def test_what_is_no_head_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hydra.1.a": None}, r"hydra\.1\.a is missing: these are not whole heads"),
        ({"hydra.7.w": w(1, 1)}, r"hydra\.2\.a is missing"),
        ({"hydra.2.a": w(12, 4), "hydra.3.w": w(1, 1)}, r"hydra\.2\.w is missing"),
        ({"hydra.1.w": None}, r"has no heads of the kind hydra: its first tensors are \['hydra.1.a', "),
        ({"hydra.1.a": w(8, 4) * np.float32("nan")}, r"hydra\.1\.a has NaN or infinity in it"),
        ({"hydra.1.a": w(8, 5)}, r"heads\.safetensors: expected arrays of shapes"),
        (b"no", "not a safetensors file"),
        (None, "has no heads: expected tiny-target"),
    ],
)
def test_damaged_files_of_heads_are_refused(tmp_path, change, message):
    file, tensors = tmp_path / "heads.safetensors", {f"hydra.1.{name}": part for name, part in HEAD.items()}
    safetensors.numpy.save_file(tensors, file)
    assert [head["a"].shape for head in load_heads(tmp_path).params] == [(8, 4)]
    file.unlink()
    if isinstance(change, bytes):
        file.write_bytes(change)
    elif change:
        safetensors.numpy.save_file({k: v for k, v in (tensors | change).items() if v is not None}, file)
    else:
        file.mkdir()
    with pytest.raises(CheckpointError, match=message):
        load_heads(tmp_path)
    assert heads_file(tmp_path) == file
