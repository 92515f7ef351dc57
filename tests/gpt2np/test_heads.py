"""Heads on the last hidden state: what they compute, what they see, and their files."""

import json

import numpy as np
import pytest
import safetensors.numpy
from helpers import ROOT, random_gpt2, random_heads

import gpt2np
from gpt2np import Heads, HParams, load_heads
from gpt2np.heads import heads_file, silu

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
MODEL = random_gpt2(SHAPE)
TINY = ROOT / "gpt2np" / "tiny"


@pytest.fixture(params=["hydra", "medusa"])
def kind(request):
    return request.param


def asked(heads, text, paths):
    """The logits of a head for the tokens after a text and each path, from the state of the last token but one."""
    states = np.repeat(random_gpt2(SHAPE).states(text[:-1]), len(paths), axis=0)
    return heads.logits(MODEL, states, np.insert(np.array(paths, int), 0, text[-1], axis=1))


# ------------------------------------------------------------------------------------------------ what they compute


def test_a_head_by_its_definition(kind):
    """Against the equations in float64, from the hidden state of the model without a cache."""
    heads, tokens, paths = random_heads(SHAPE, kind), [5, 1, 4, 2, 3], [[7, 8], [9, 7]]
    x = gpt2np.model.hidden_states(tokens[:-1], slice(0, 4), MODEL.params, SHAPE.n_head)[-1].astype(np.float64)
    h = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    wte, last = np.asarray(MODEL.params["wte"]), MODEL.params["ln_f"]
    head = {name: np.asarray(part) for name, part in heads.params[2].items()}
    logits = asked(heads, tokens, paths)
    assert logits.shape == (2, SHAPE.n_vocab) and logits.dtype == np.float32
    for row, path in zip(logits, paths):
        if kind == "hydra":
            seen = np.concatenate([h, wte[tokens[-1]], wte[path[0]], wte[path[1]]])
            z = seen @ head["w"]
            y = seen @ head["a"] + z / (1 + np.exp(-z))
        else:
            z = h @ head["w"] + head["b"]
            y = h + z / (1 + np.exp(-z))
        np.testing.assert_allclose(row, (y * last["g"] + last["b"]) @ wte.T, rtol=1e-3, atol=1e-3)


def test_silu():
    x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4], np.float32)
    assert silu(x).dtype == np.float32
    np.testing.assert_allclose(silu(x), [0, -1 / (1 + np.e), 0, 1 / (1 + 1 / np.e), 1e4], rtol=1e-6)


def test_a_head_sees_what_it_should():
    """Hydra's head i: the tokens before its own place. Medusa's: only those that the model has processed."""
    for kind, sees_it in (("hydra", True), ("medusa", False)):
        heads = random_heads(SHAPE, kind)
        ask = lambda tokens, path, heads=heads: asked(heads, tokens, [path])[0].tobytes()  # noqa: E731
        assert (ask([1, 2, 3], []) != ask([1, 2, 4], [])) == sees_it  # the last token is not processed yet
        assert (ask([1, 2, 3], [5]) != ask([1, 2, 3], [6])) == sees_it
        assert (ask([1, 2, 3], [5, 6]) != ask([1, 2, 3], [7, 6])) == sees_it
        assert ask([1, 2, 3], []) != ask([1, 7, 3], [])  # and the text through the hidden state
        both = asked(heads, [1, 2, 3], [[5], [6]])  # a path sees nothing of its neighbours
        np.testing.assert_allclose(both[0], asked(heads, [1, 2, 3], [[5]])[0], rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------------ files


def test_the_bundled_heads(kind):
    heads = load_heads("tiny-target", kind)
    assert heads.n_heads == 3 and heads.n_params == (1_179_648 if kind == "hydra" else 197_376)
    assert heads.accepted.shape == (3, 10) and heads.accepted.dtype == np.float32
    assert (heads.accepted >= 0).all() and (heads.accepted.sum(axis=-1) < 1.001).all()  # rounded to float16
    target = gpt2np.load("tiny-target")[0]
    assert heads.check(target) is heads
    with pytest.raises(ValueError, match="expected heads for a model with n_embd 128, got heads with n_embd 256"):
        heads.check(gpt2np.load("tiny-draft")[0])
    for n in (0, 4):
        with pytest.raises(ValueError, match=f"expected 1 to 3 tokens after the hidden state, got {n}"):
            heads.logits(target, target.states([1, 2]), np.ones((1, n), int))


def test_parameters_that_are_no_heads():
    w, ranks = np.ones((8, 4), np.float32), np.ones(3, np.float32)
    for params, message in (
        ([], "expected one head or more, got none"),
        (
            [{"a": w, "w": w[:6], "accepted": ranks}],
            r"expected arrays .* for head 1 of a model with n_embd 4",
        ),
        ([{"a": w, "w": w, "accepted": w}], r"'accepted': \('n_ranks',\)} for head 1 .*'accepted': \(8, 4\)}"),
        ([{"a": w, "w": w, "accepted": ranks}] * 2, "for head 2 of a model with n_embd 4"),
    ):
        with pytest.raises(ValueError, match=message):
            Heads(params)


def test_files_that_are_no_heads(tmp_path):
    with pytest.raises(ValueError, match="tiny-draft has no heads: expected tiny-target, whose heads are bundled, or"):
        load_heads("tiny-draft")
    with pytest.raises(ValueError, match="unknown heads 'eagle': expected hydra or medusa"):
        load_heads("tiny-target", "eagle")
    with pytest.raises(ValueError, match=r"unknown heads \['hydra'\]: expected hydra or medusa"):
        load_heads("tiny-target", ["hydra"])
    with pytest.raises(ValueError, match="expected a model's name or folder, such as tiny-target, got None"):
        load_heads(None)
    file, w = tmp_path / "heads.safetensors", np.zeros((8, 4), np.float16)
    for tensors, message in (
        ({"hydra.1.w": w}, r"hydra\.1\.a is missing"),
        ({"wte": w}, r"has no heads of the kind hydra: its first tensors are \['wte'\]"),
        ({"medusa.1.w": w, "medusa.1.b": w}, "has no heads of the kind hydra"),
    ):
        safetensors.numpy.save_file(tensors, file)
        with pytest.raises(gpt2np.CheckpointError, match=message):
            load_heads(tmp_path)
    file.write_bytes(b"no")
    with pytest.raises(gpt2np.CheckpointError, match="not a safetensors file"):
        load_heads(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(gpt2np.CheckpointError, match="has no heads: expected tiny-target"):
        load_heads(tmp_path)
    file.rmdir()
    safetensors.numpy.save_file({"hydra.1.a": w, "hydra.1.w": w, "hydra.1.accepted": w[0]}, file)
    assert [head["a"].shape for head in load_heads(tmp_path).params] == [(8, 4)]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("hydra.7.w", lambda w: np.zeros((1, 1), np.float16), r"hydra\.4\.a is missing"),
        ("hydra.1.a", lambda a: a + np.float16(np.nan), r"hydra\.1\.a has NaN or infinity in it"),
        ("hydra.2.w", lambda w: None, r"hydra\.2\.w is missing: these are not whole heads"),
    ],
)
def test_damaged_heads_are_refused(tmp_path, name, damage, message):
    tensors = dict(gpt2np.files.safetensors.read_safetensors(heads_file("tiny-target")))
    changed = damage(tensors.pop(name, None))
    if changed is not None:
        tensors[name] = changed
    safetensors.numpy.save_file(tensors, tmp_path / "heads.safetensors")
    with pytest.raises(gpt2np.CheckpointError, match=message):
        load_heads(tmp_path)


# ------------------------------------------------------------------------------------------------ the card


def test_the_table_of_the_card_is_that_of_its_measurements():
    card, page = (
        json.loads((TINY / "tiny-target" / "heads_figures.json").read_text("utf-8")),
        (TINY / "README.md").read_text("utf-8"),
    )
    for kind in ("hydra", "medusa"):
        assert f"{card[kind]['parameters']:,}" in page
        for i in range(3):
            shares = " | ".join(f"{card[kind][f'top_{k}'][i]:.3f}" for k in (1, 2, 3, 5, 10))
            assert f"| {i + 1} | {shares} |" in page
        np.testing.assert_allclose(load_heads("tiny-target", kind).accepted, card[kind]["accepted"], atol=0.002)
    assert card["hydra"]["top_1"][0] >= 0.55 and card["hydra"]["top_3"][0] >= 0.75


@pytest.mark.slow
def test_the_card_of_the_heads(monkeypatch):
    """Fewer prompts than heads_figures.json has: about 600 positions, with a standard error of .02."""
    monkeypatch.syspath_prepend(ROOT / "dev" / "train")
    from measure_heads import accepted, greedy_texts, held_out_prompts

    target, tokenizer = gpt2np.load("tiny-target")
    texts = greedy_texts(target, held_out_prompts(tokenizer, 36)[::4], 64)
    card = json.loads((TINY / "tiny-target" / "heads_figures.json").read_text("utf-8"))
    for kind in ("hydra", "medusa"):
        heads = load_heads("tiny-target", kind)
        np.testing.assert_allclose(accepted(target, heads, texts, 64), card[kind]["accepted"], atol=0.08)
