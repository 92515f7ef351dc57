"""Drafting with the target's first layers: each token costs them once, and the text is the whole model's."""

import copy
import pickle

import numpy as np
import pytest
from helpers import random_gpt2

import gpt2np
from gpt2np import EarlyExit, HParams
from speculative import AutoregressiveSampler, EarlyExitDrafter, Sampling, SpeculativeSampler

SHAPE = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=5)
GREEDY = Sampling(temperature=0)


def test_a_whole_generation_costs_each_committed_token_once_in_the_first_layers(monkeypatch):
    run, block = [], gpt2np.model.block
    monkeypatch.setattr(gpt2np.model, "block", lambda x, *arguments: run.append(len(x)) or block(x, *arguments))
    whole = EarlyExit(random_gpt2(SHAPE), 2)
    sampler = SpeculativeSampler(whole, EarlyExitDrafter(whole, sampling=GREEDY), K=3, sampling=GREEDY)
    generation = sampler.generate([1, 2, 3], 40)
    dropped = generation.stats.drafted - generation.stats.accepted  # draft tokens that were computed in vain
    assert sum(run) == 5 * (3 + 40 - 1 + dropped)  # in 5 layers; the last token is never run
    own = AutoregressiveSampler(random_gpt2(SHAPE), sampling=GREEDY).generate([1, 2, 3], 40)
    np.testing.assert_array_equal(generation.tokens, own.tokens)


def test_a_threshold_ends_the_draft():
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    for threshold, n in ((0.0, 4), (1.0, 1)):
        drafter = EarlyExitDrafter(whole, threshold=threshold)
        assert len(drafter.propose([1, 2, 3], 4, np.random.default_rng(0)).tokens) == n


def test_a_target_without_an_early_exit_is_refused():
    with pytest.raises(ValueError, match=r"expected a target with an early exit, such as EarlyExit\(model, 2\), got"):
        EarlyExitDrafter(random_gpt2(SHAPE))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))])
def test_a_copy_has_its_target_with_it(copied):
    """A copy that begins with the drafter, or with the exit, meets the whole model before the exit is complete."""
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    drafter = EarlyExitDrafter(whole)
    expected, ours = whole.early_exit([1, 2, 3]), drafter.propose([1, 2, 3], 3, np.random.default_rng(0))
    first, theirs = copied(whole.early_exit), copied(drafter)
    assert np.array_equal(first([1, 2, 3]), expected) and first.whole.early_exit is first
    assert theirs.propose([1, 2, 3], 3, np.random.default_rng(0)).tokens.tolist() == ours.tokens.tolist()
    target, of_both = copied((whole, drafter))
    assert of_both.model is target.early_exit and whole.early_exit.whole is whole
