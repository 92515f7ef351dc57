"""A model with an early exit: what it does not compute twice. Its rows: test_conformance.py."""

from helpers import random_gpt2

import gpt2np
from gpt2np import EarlyExit, HParams

SHAPE = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=5)


def test_nothing_is_computed_twice(monkeypatch):
    """For 6 prompt tokens and 3 draft tokens, the first 2 layers run each token once, and so do the last 3."""
    run, whole = [], EarlyExit(random_gpt2(SHAPE), 2)  # the number of tokens for each block
    assert whole.n_params == random_gpt2(SHAPE).n_params
    monkeypatch.setattr(gpt2np.model, "block", lambda x, *rest: run.append(len(x)) or gpt2np.layers.block(x, *rest))
    for n in (6, 7, 8):  # a draft of three tokens: 7, 8, 9
        whole.early_exit([1, 2, 3, 4, 5, 6, 7, 8][:n])
    assert run == [6, 6, 1, 1, 1, 1]  # the prompt, then two draft tokens; the third is not run
    run.clear()
    whole([1, 2, 3, 4, 5, 6, 7, 8, 9], n_last=4)
    assert run == [1, 1, 9, 9, 9]  # the third draft token in the first layers; all nine in the rest
    run.clear()
    whole([1, 2, 3, 4, 5, 6, 7, 16], n_last=1)  # a correction: the rest of the draft is kept
    assert run == [1, 1, 1, 1, 1]
