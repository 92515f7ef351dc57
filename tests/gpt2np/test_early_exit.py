"""A model with an early exit: what test_model.py and tests/speculative, which test its results, do not ask."""

import copy
import pickle

import numpy as np
import pytest
from helpers import random_gpt2, random_tensors

import gpt2np
from gpt2np import EarlyExit, HParams
from gpt2np.files.params import build_params
from speculative.testing import check_language_model

SHAPE = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=5)
SMALL = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def test_an_early_exit_counts_its_parameters():
    model = random_gpt2(SMALL)
    assert EarlyExit(model, 1).n_params == model.n_params


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
def test_the_first_layers_can_be_copied_without_the_whole(copied):
    """As a drafter is that goes to another process: its model refers to the whole, and the whole to it."""
    part = EarlyExit(random_gpt2(SMALL), 1).early_exit
    expected, other = part([1, 2, 3]), copied(part)
    assert np.array_equal(other([1, 2, 3]), expected) and np.array_equal(part([1, 2, 3]), expected)
    assert other.whole.early_exit is other


@pytest.fixture
def blocks_run(monkeypatch):
    """A list of [number of tokens] for each block that the early exit runs."""
    run = []

    def counted(x, *arguments):
        run.append(len(x))
        return gpt2np.layers.block(x, *arguments)

    monkeypatch.setattr(gpt2np.model, "block", counted)
    return run


@pytest.mark.parametrize("n_layers", [1, 4])
def test_the_whole_has_the_logits_of_the_model_whatever_was_asked_before(n_layers):
    model, whole = random_gpt2(SHAPE), EarlyExit(random_gpt2(SHAPE), n_layers)
    check_language_model(whole)
    check_language_model(whole.early_exit)
    rng, tokens = np.random.default_rng(0), [3]
    for _ in range(60):  # both in turn, on texts that grow, branch and shrink
        tokens = tokens[: int(rng.integers(1, len(tokens) + 1))] + rng.integers(0, 17, int(rng.integers(0, 5))).tolist()
        n_last = int(rng.integers(1, len(tokens) + 1))
        asked = whole.early_exit if rng.random() < 0.5 else whole
        logits = asked(tokens, n_last)
        if asked is whole:
            np.testing.assert_allclose(logits, model(tokens, n_last), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("K", [1, 3, 8])
def test_its_logits_are_the_models_own_to_the_bit(K):
    """In blocks of K draft tokens, some of which are rolled back, compared with one token at a time."""
    model, whole, rng = random_gpt2(SHAPE), EarlyExit(random_gpt2(SHAPE), 2), np.random.default_rng(K)
    text = rng.integers(0, 17, 50).tolist()
    wanted = [model(text[:n])[0] for n in range(1, 51)]
    n = 1
    while n + K <= 50:
        whole.early_exit([*text[:n], *rng.integers(0, 17, K - 1).tolist()])  # a draft, mostly wrong
        np.testing.assert_array_equal(whole(text[: n + K], n_last=K + 1), wanted[n - 1 : n + K])
        n += int(rng.integers(1, K + 2))


def test_the_exit_is_the_first_layers_with_the_whole_models_head():
    params = build_params(random_tensors(SHAPE), SHAPE, "random")
    cut = gpt2np.GPT2({**params, "blocks": params["blocks"][:2]}, HParams(17, 64, 15, 3, 2))
    exit_after_2 = EarlyExit(random_gpt2(SHAPE), 2).early_exit
    for tokens in ([1, 2, 3], [1, 2, 3, 4], [5]):
        np.testing.assert_allclose(exit_after_2(tokens), cut(tokens), rtol=1e-4, atol=1e-5)


def test_a_branch_of_a_tree_that_only_the_first_layers_have_seen():
    whole, model = EarlyExit(random_gpt2(SHAPE), 2), random_gpt2(SHAPE)
    whole([1, 2, 3])
    whole.early_exit([1, 2, 3, 4, 5, 6], 4, [-1, -1, 1])  # 4, 5, and 6 after 5
    np.testing.assert_array_equal(whole([1, 2, 3, 5, 6], n_last=2), model([1, 2, 3, 5, 6], n_last=2))


def test_nothing_is_computed_twice(blocks_run):
    """For 6 prompt tokens and 3 draft tokens, the first 2 layers run each token once, and so do the last 3."""
    whole = EarlyExit(random_gpt2(SHAPE), 2)
    for n in (6, 7, 8):  # a draft of three tokens: 7, 8, 9
        whole.early_exit([1, 2, 3, 4, 5, 6, 7, 8][:n])
    assert blocks_run == [6, 6, 1, 1, 1, 1]  # the prompt, then two draft tokens; the third is not run
    blocks_run.clear()
    whole([1, 2, 3, 4, 5, 6, 7, 8, 9], n_last=4)
    assert blocks_run == [1, 1, 9, 9, 9]  # the third draft token in the first layers; all nine in the rest
    blocks_run.clear()
    whole([1, 2, 3, 4, 5, 6, 7, 16], n_last=1)  # a correction: the rest of the draft is kept
    assert blocks_run == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("n_layers", [0, 5])
def test_an_exit_outside_the_model_is_refused(n_layers):
    with pytest.raises(ValueError, match=f"expected an exit after 1 to 4 of the 5 layers, got {n_layers}"):
        EarlyExit(random_gpt2(SHAPE), n_layers)
