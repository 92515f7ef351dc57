"""EAGLE's block and the parallel one: their rows by definition, and what is kept between calls.

That the rows depend on the tokens alone: test_conformance.py; what is refused: test_refusals.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import in_float64, random_eagle, random_gpt2, random_parallel

import gpt2np
from gpt2np import HParams, reference

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
TOKENS = [5, 1, 4, 2, 3, 9, 16, 0]


def on_target(block, n_frequent=0):
    return block.on(random_gpt2(SHAPE), n_frequent)


def normed(x):
    return reference.layer_norm(x, 1, 0)


def target_states(params, tokens):
    """The target's states before token 0, after it, ..., but not after the last."""
    x = params["wte"][tokens[:-1]] + params["wpe"][: len(tokens) - 1]
    for layer in params["blocks"] if len(x) else ():
        x = reference.block(x, layer, SHAPE.n_head)
    return [np.zeros(SHAPE.n_embd), *normed(x)]


def by_definition(block, tokens, n_text):
    """The logits after each prefix of n_text tokens and more: the equations in float64, without any cache."""
    params, of_block = in_float64(random_gpt2(SHAPE).params), in_float64(vars(block))
    wte, wpe, last_norm = params["wte"], params["wpe"], params["ln_f"]
    states, mask = target_states(params, tokens[:n_text]), of_block.get("mask")

    def after(pairs):
        """The block's states."""
        z = np.array(pairs) @ of_block["input"]["w"] + of_block["input"]["b"]
        return normed(reference.block(z, of_block["block"], SHAPE.n_head))

    def pairs():
        return [[*state, *normed(wte[token] + wpe[i])] for i, (state, token) in enumerate(zip(states, tokens))]

    if mask is None:
        for _ in tokens[n_text - 1 :]:
            states.append(after(pairs())[-1])  # predicted
        found = np.array(states[n_text:])
    else:
        slots = [[*states[-1], *normed(mask[i] + wpe[n_text + i])] for i in range(len(tokens) - n_text)]
        found = after([*pairs(), *slots])[n_text - 1 :]
    logits = (found * last_norm["g"] + last_norm["b"]) @ wte.T
    if mask is not None:
        logits[1:] += of_block["w1"][tokens[n_text:]] @ of_block["w2"]
    return logits


@pytest.mark.parametrize("n_text", [1, 2, 5, 8])
@pytest.mark.parametrize(("random_block", "error"), [(random_eagle, 1e-3), (random_parallel, 1e-4)])
def test_the_rows_by_their_definition(random_block, error, n_text):
    block, n_last = random_block(SHAPE), len(TOKENS) - n_text + 1
    logits = on_target(block).draft_logits(TOKENS, n_text, n_last)
    assert logits.shape == (n_last, SHAPE.n_vocab) and logits.dtype == np.float32
    np.testing.assert_allclose(logits, by_definition(block, TOKENS, n_text), rtol=error, atol=error)
    some, kept = on_target(block, n_frequent=5).draft_logits(TOKENS, n_text, n_last), block.frequent[:5]
    np.testing.assert_allclose(some[:, kept], logits[:, kept], rtol=1e-4, atol=1e-4)
    assert (np.isfinite(some).sum(axis=1) == 5).all() and np.isfinite(some[:, kept]).all()


def test_of_the_accepted_tokens_the_states_are_the_targets():
    """Their keys were computed from predicted states, and are computed again; the target need not be called."""
    used, text, drafted = on_target(random_eagle(SHAPE)), [1, 2, 3], [4, 5, 6]
    for n in range(4):
        used.draft_logits([*text, *drafted[:n]], len(text))
    predicted = used.states[2:6].copy()
    used.model([*text, *drafted], n_last=4)
    used.model.run = None  # not to be called
    logits = used.draft_logits([*text, *drafted, 7], 7)
    assert not np.isclose(predicted, used.states[2:6]).all(axis=1).any()
    target = random_gpt2(SHAPE)
    np.testing.assert_allclose(used.states[:6], normed(target.run([*text, *drafted], 6)), rtol=1e-4, atol=1e-5)
    assert logits.tobytes() == on_target(random_eagle(SHAPE)).draft_logits([*text, *drafted, 7], 7).tobytes()
    assert logits.tobytes() != used.draft_logits([*text, *drafted, 7], 3).tobytes()  # had they been drafted


def test_a_parallel_draft_is_one_pass_and_a_longer_one_begins_with_it(monkeypatch):
    passes, block = [], gpt2np.drafting.eagle.block
    monkeypatch.setattr(gpt2np.drafting.eagle, "block", lambda x, *rest: passes.append(len(x)) or block(x, *rest))
    used, rows = on_target(random_parallel(SHAPE)), {}
    for K in (2, 4, 8):
        model = used.draft_model(3, K)
        rows[K] = np.concatenate([model(TOKENS[: 3 + j]) for j in range(K if K < 8 else 5)])
    assert passes == [3 + 1, 1 + 3, 1 + 7]  # the text's last token runs again with the slots
    assert rows[2].tobytes() == rows[4][:2].tobytes() and rows[4].tobytes() == rows[8][:4].tobytes()
    used.draft_model(6)([*TOKENS[:3], 7, 7, 7])
    assert passes[3:] == [3 + 7]  # the three new tokens of the text and the slots after them


def test_a_parallel_draft_token_depends_on_the_one_before_it_alone():
    block, text, ends = random_parallel(SHAPE), TOKENS[:3], ((1, 2), (4, 2), (1, 3))
    used, blind = on_target(block), on_target(replace(block, w1=np.zeros((17, 2), np.float32)))
    rows, marginals = ([one.draft_logits([*text, *end], 3)[0].tobytes() for end in ends] for one in (used, blind))
    assert rows[0] == rows[1] != rows[2] and len({*marginals}) == 1
    first = used.draft_logits(text, 3)
    assert first.tobytes() == blind.draft_logits(text, 3).tobytes()  # the first token's has no such term
