"""EAGLE's block: which state goes with which token, what is kept between calls, and its file.

That its rows depend on the tokens alone: test_conformance.py.
"""

import numpy as np
import pytest
import safetensors.numpy
from helpers import random_eagle, random_gpt2

import gpt2np
from gpt2np import EagleBlock, HParams, load_eagle, reference
from gpt2np.eagle import eagle_file

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
MODEL = random_gpt2(SHAPE)


def eagle_of(shape=SHAPE, n_frequent=0):
    return random_eagle(shape).on(random_gpt2(shape), n_frequent)


def normed(x):
    return reference.layer_norm(x, 1, 0)


def by_definition(tokens, n_text):
    """The logits after `tokens`, of which n_text are the text: the equations in float64, without any cache."""
    params, of_block = random_gpt2(SHAPE).params, random_eagle(SHAPE)
    wide = lambda part: {k: wide(v) if isinstance(v, dict) else np.asarray(v, np.float64) for k, v in part.items()}  # noqa: E731
    of_block, last_norm = {"input": wide(of_block.input), "block": wide(of_block.block)}, wide(params["ln_f"])
    wte, wpe = np.asarray(params["wte"], np.float64), params["wpe"].astype(np.float64)
    x = wte[tokens[: n_text - 1]] + wpe[: n_text - 1]
    for layer in params["blocks"] if n_text > 1 else ():
        x = reference.block(x, wide(layer), SHAPE.n_head)
    states = [np.zeros(SHAPE.n_embd), *normed(x)]  # the target's: before token 0, after it, ..., but not the last
    for n in range(n_text, len(tokens) + 1):
        pairs = [[*state, *normed(wte[token] + wpe[i])] for i, (state, token) in enumerate(zip(states, tokens[:n]))]
        z = np.array(pairs) @ of_block["input"]["w"] + of_block["input"]["b"]
        states.append(normed(reference.block(z, of_block["block"], SHAPE.n_head))[-1])  # predicted
    return (states[-1] * last_norm["g"] + last_norm["b"]) @ wte.T


@pytest.mark.parametrize("n_text", [1, 2, 5, 8])
def test_the_block_by_its_definition(n_text):
    tokens = [5, 1, 4, 2, 3, 9, 16, 0]
    logits = eagle_of().draft_logits(tokens, n_text, n_last=len(tokens) - n_text + 1)
    assert logits.shape == (len(tokens) - n_text + 1, SHAPE.n_vocab) and logits.dtype == np.float32
    for row, n in zip(logits, range(n_text, len(tokens) + 1)):
        np.testing.assert_allclose(row, by_definition(tokens[:n], n_text), rtol=1e-3, atol=1e-3)
    some, kept = eagle_of(n_frequent=5).draft_logits(tokens, n_text, len(logits)), random_eagle(SHAPE).frequent[:5]
    np.testing.assert_allclose(some[:, kept], logits[:, kept], rtol=1e-4, atol=1e-5)
    assert (np.isfinite(some).sum(axis=1) == 5).all() and np.isfinite(some[:, kept]).all()


def test_of_the_accepted_tokens_the_states_are_the_targets():
    """Their keys were computed from predicted states, and are computed again; the target need not be called."""
    used, text, drafted = eagle_of(), [1, 2, 3], [4, 5, 6]
    for n in range(4):
        used.draft_logits([*text, *drafted[:n]], len(text))
    predicted = used.states[2:6].copy()
    used.model([*text, *drafted], n_last=4)
    used.model.run = None  # not to be called
    logits = used.draft_logits([*text, *drafted, 7], 7)
    assert not np.isclose(predicted, used.states[2:6]).all(axis=1).any()
    target = random_gpt2(SHAPE)
    np.testing.assert_allclose(used.states[:6], normed(target.run([*text, *drafted], 6)), rtol=1e-4, atol=1e-5)
    assert logits.tobytes() == eagle_of().draft_logits([*text, *drafted, 7], 7).tobytes()
    assert logits.tobytes() != used.draft_logits([*text, *drafted, 7], 3).tobytes()  # had they been drafted


def test_only_frequent_tokens_are_drafted():
    full, some, tokens = eagle_of(), eagle_of(n_frequent=5), [1, 2, 3, 4]
    wanted, logits = full.draft_logits(tokens, 3, 2), some.draft_logits(tokens, 3, 2)
    kept = random_eagle(SHAPE).frequent[:5]
    np.testing.assert_allclose(logits[:, kept], wanted[:, kept], rtol=1e-4, atol=1e-5)
    assert (np.isfinite(logits).sum(axis=1) == 5).all() and np.isfinite(logits[:, kept]).all()


# ------------------------------------------------------------------------------------------------ files


def test_the_bundled_block():
    target, params = gpt2np.load("tiny-target")[0], load_eagle("tiny-target")
    assert params.n_params == 921_088 and params.on(target).draft_model(1)([5]).shape == (1, 2048)
    assert params.input["w"].shape == (512, 256) and params.input["w"].dtype == np.float32
    assert sorted(params.frequent.tolist()) == [*range(2048)]
    assert eagle_file("tiny-target").stat().st_size < 1.9e6


def narrow():
    return random_eagle(HParams(n_vocab=17, n_ctx=40, n_embd=6, n_head=3, n_layer=1))


def with_frequent(tokens):
    block = random_eagle(SHAPE)
    return EagleBlock(block.input, block.block, np.array(tokens))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: narrow().on(MODEL),
            "for a model with n_embd 15 and 17 tokens, got one with n_embd 6 and 17 t",
        ),
        (lambda: with_frequent([]).on(MODEL), "got one with n_embd 15 and 0 tokens"),
        (lambda: with_frequent([0] * 17).on(MODEL), "expected each token once in the block's `frequent`: its file is"),
        (lambda: random_eagle(SHAPE).on(gpt2np.EarlyExit(MODEL, 1)), "expected a GPT2, whose hidden states"),
        (lambda: eagle_of(n_frequent=18), "expected n_frequent from 1 to 17, the number of tokens, or 0, got 18"),
        (lambda: eagle_of().draft_logits([1, 2], 0), "expected rows after a text of 1 to 2 tokens, got 1 after 0"),
        (lambda: eagle_of().draft_logits([1, 2], 3), "expected rows after a text of 1 to 2 tokens, got 1 after 3"),
        (lambda: eagle_of().draft_logits([1, 2], 2, 2), "expected rows after a text of 1 to 2 tokens, got 2 after 2"),
        (lambda: load_eagle("tiny-draft"), "tiny-draft has no EAGLE block: expected tiny-target, whose block is bund"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("h.0.ln_1.bias", None, r"lacks h\.0\.ln_1\.bias"),
        (
            "input.weight",
            np.zeros((3, 3), np.float16),
            r"wrong shape for input\.weight \[3, 3\] instead of \[512, 2",
        ),
        ("input.bias", None, r"lacks input\.bias"),
        ("input.bias", np.full(256, np.nan, np.float16), r"input\.bias has NaN or infinity in it"),
        ("frequent", None, None),
    ],
)
def test_damaged_files_of_a_block_are_refused(tmp_path, name, change, message):
    tensors = dict(safetensors.numpy.load_file(eagle_file("tiny-target")))
    changed = {k: v for k, v in (tensors | {name: change}).items() if v is not None}
    safetensors.numpy.save_file(changed, tmp_path / "eagle.safetensors")
    if not message:  # it is refused by `on`
        assert len(load_eagle(tmp_path).frequent) == 0
        return
    with pytest.raises(gpt2np.CheckpointError, match=message):
        load_eagle(tmp_path)
