"""The parallel block: its slots by their definition, and one pass for a draft.

Its rows depend on the tokens alone: test_conformance.py. What it shares with EAGLE's: test_eagle.py. What is refused:
test_refusals.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import in_float64, random_gpt2, random_parallel

import gpt2np
from gpt2np import HParams, reference

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
TOKENS = [5, 1, 4, 2, 3, 9, 16, 0]


def parallel_of(n_frequent=0, **fields):
    return replace(random_parallel(SHAPE, n_slots=8), **fields).on(random_gpt2(SHAPE), n_frequent)


def normed(x):
    return reference.layer_norm(x, 1, 0)


def by_definition(tokens, n_text, n_slots):
    """The logits [n_slots, n_vocab] of a draft: the equations in float64, all rows at once, without any cache."""
    params, of_block = random_gpt2(SHAPE).params, random_parallel(SHAPE, n_slots=8)
    wte, wpe = np.asarray(params["wte"], np.float64), params["wpe"].astype(np.float64)
    x, t = wte[tokens[: n_text - 1]] + wpe[: n_text - 1], n_text - 1
    for layer in params["blocks"] if n_text > 1 else ():
        x = reference.block(x, in_float64(layer), SHAPE.n_head)
    states = [np.zeros(SHAPE.n_embd), *normed(x)]  # the target's: before token 0, after it, .., before token t
    pairs = [[*states[i], *normed(wte[tokens[i]] + wpe[i])] for i in range(n_text)]
    pairs += [[*states[t], *normed(of_block.mask[j - 1] + wpe[t + j])] for j in range(1, n_slots)]
    z = np.array(pairs) @ in_float64(of_block.input)["w"] + of_block.input["b"]
    found = normed(reference.block(z, in_float64(of_block.block), SHAPE.n_head))[t:]
    last_norm = in_float64(params["ln_f"])
    logits = (found * last_norm["g"] + last_norm["b"]) @ wte.T
    for j in range(1, n_slots):
        logits[j] += of_block.w1[tokens[t + j]].astype(np.float64) @ of_block.w2
    return logits


@pytest.mark.parametrize("n_text", [1, 2, 5, 8])
def test_the_slots_by_their_definition(n_text):
    n_slots = len(TOKENS) - n_text + 1
    logits = parallel_of().draft_logits(TOKENS, n_text, n_slots)
    assert logits.shape == (n_slots, SHAPE.n_vocab) and logits.dtype == np.float32
    np.testing.assert_allclose(logits, by_definition(TOKENS, n_text, n_slots), rtol=1e-4, atol=1e-4)
    kept = np.sort(random_parallel(SHAPE).frequent[:5])
    some = parallel_of(n_frequent=5).draft_logits(TOKENS, n_text, n_slots)
    np.testing.assert_allclose(some[:, kept], logits[:, kept], rtol=1e-4, atol=1e-4)
    assert (np.isfinite(some).sum(axis=1) == 5).all() and np.isfinite(some[:, kept]).all()


def test_a_draft_is_one_pass_and_a_longer_one_begins_with_it(monkeypatch):
    passes, block = [], gpt2np.drafting.eagle.block
    monkeypatch.setattr(gpt2np.drafting.eagle, "block", lambda x, *rest: passes.append(len(x)) or block(x, *rest))
    used, rows = parallel_of(), {}
    for K in (2, 4, 8):
        model = used.draft_model(3, K)
        rows[K] = np.concatenate([model(TOKENS[: 3 + j]) for j in range(K if K < 8 else 5)])
    assert passes == [3 + 1, 1 + 3, 1 + 7]  # the text's last token runs again with the slots
    assert rows[2].tobytes() == rows[4][:2].tobytes() and rows[4].tobytes() == rows[8][:4].tobytes()
    used.draft_model(6)([*TOKENS[:3], 7, 7, 7])
    assert passes[3:] == [3 + 7]  # the three new tokens of the text and the slots after them


def test_a_draft_token_depends_on_the_one_before_it_alone():
    used, text = parallel_of(), TOKENS[:3]
    rows = {end: used.draft_logits([*text, *end], 3)[0] for end in ((1, 2), (4, 2), (1, 3))}
    assert rows[1, 2].tobytes() == rows[4, 2].tobytes() != rows[1, 3].tobytes()
    blind = parallel_of(w1=np.zeros((17, 2), np.float32))  # marginals: the token before makes no difference
    assert len({blind.draft_logits([*text, *end], 3)[0].tobytes() for end in ((1, 2), (4, 2), (1, 3))}) == 1
    first = used.draft_logits(text, 3)
    assert first.tobytes() == blind.draft_logits(text, 3).tobytes()  # the first token's has no such term
