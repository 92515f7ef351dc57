"""EAGLE's block: which state goes with which token, and what is kept between calls.

That its rows depend on the tokens alone: test_conformance.py; what is refused: test_refusals.py.
"""

import numpy as np
import pytest
from helpers import in_float64, random_eagle, random_gpt2

from gpt2np import HParams, reference

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)


def new_eagle(n_frequent=0):
    return random_eagle(SHAPE).on(random_gpt2(SHAPE), n_frequent)


def normed(x):
    return reference.layer_norm(x, 1, 0)


def by_definition(tokens, n_text):
    """The logits after `tokens`, of which n_text are the text: the equations in float64, without any cache."""
    params, of_block = in_float64(random_gpt2(SHAPE).params), in_float64(vars(random_eagle(SHAPE)))
    wte, wpe, last_norm = params["wte"], params["wpe"], params["ln_f"]
    x = wte[tokens[: n_text - 1]] + wpe[: n_text - 1]
    for layer in params["blocks"] if n_text > 1 else ():
        x = reference.block(x, layer, SHAPE.n_head)
    states = [np.zeros(SHAPE.n_embd), *normed(x)]  # the target's: before token 0, after it, ..., but not the last
    for n in range(n_text, len(tokens) + 1):
        pairs = [[*state, *normed(wte[token] + wpe[i])] for i, (state, token) in enumerate(zip(states, tokens[:n]))]
        z = np.array(pairs) @ of_block["input"]["w"] + of_block["input"]["b"]
        states.append(normed(reference.block(z, of_block["block"], SHAPE.n_head))[-1])  # predicted
    return (states[-1] * last_norm["g"] + last_norm["b"]) @ wte.T


@pytest.mark.parametrize("n_text", [1, 2, 5, 8])
def test_the_block_by_its_definition(n_text):
    tokens = [5, 1, 4, 2, 3, 9, 16, 0]
    logits = new_eagle().draft_logits(tokens, n_text, n_last=len(tokens) - n_text + 1)
    assert logits.shape == (len(tokens) - n_text + 1, SHAPE.n_vocab) and logits.dtype == np.float32
    for row, n in zip(logits, range(n_text, len(tokens) + 1)):
        np.testing.assert_allclose(row, by_definition(tokens[:n], n_text), rtol=1e-3, atol=1e-3)
    some, kept = new_eagle(n_frequent=5).draft_logits(tokens, n_text, len(logits)), random_eagle(SHAPE).frequent[:5]
    np.testing.assert_allclose(some[:, kept], logits[:, kept], rtol=1e-4, atol=1e-5)
    assert (np.isfinite(some).sum(axis=1) == 5).all() and np.isfinite(some[:, kept]).all()


def test_of_the_accepted_tokens_the_states_are_the_targets():
    """Their keys were computed from predicted states, and are computed again; the target need not be called."""
    used, text, drafted = new_eagle(), [1, 2, 3], [4, 5, 6]
    for n in range(4):
        used.draft_logits([*text, *drafted[:n]], len(text))
    predicted = used.states[2:6].copy()
    used.model([*text, *drafted], n_last=4)
    used.model.run = None  # not to be called
    logits = used.draft_logits([*text, *drafted, 7], 7)
    assert not np.isclose(predicted, used.states[2:6]).all(axis=1).any()
    target = random_gpt2(SHAPE)
    np.testing.assert_allclose(used.states[:6], normed(target.run([*text, *drafted], 6)), rtol=1e-4, atol=1e-5)
    assert logits.tobytes() == new_eagle().draft_logits([*text, *drafted, 7], 7).tobytes()
    assert logits.tobytes() != used.draft_logits([*text, *drafted, 7], 3).tobytes()  # had they been drafted
