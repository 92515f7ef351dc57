"""Drafting with a model: a draft ends where the model is unsure; the target as its own draft."""

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2

from gpt2np import EarlyExit, HParams
from speculative import (
    EagleDrafter,
    EarlyExitDrafter,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
)
from speculative.testing import TableModel


def length(drafter, tokens, K):
    return len(drafter.propose(tokens, K, np.random.default_rng(0)).tokens)


def test_a_draft_ends_after_the_first_unsure_token():
    model = TableModel([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.4, 0.3, 0.3]])  # 0 -> 1 -> 2 -> unsure
    for sampling in (Sampling(0), Sampling()):
        drafters = [ModelDrafter(model, sampling=sampling, threshold=t) for t in (0, 0.25, 0.41, 0.9)]
        assert [length(drafter, [0], 2) for drafter in drafters] == [2, 2, 2, 2]
        assert [length(drafter, [2], 3) for drafter in drafters] == [3, 3, 1, 1]
        assert length(drafters[2], [1], 3) == 2  # 2 is sure, what follows it is not, and stays
    gpt2 = random_gpt2(HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=2))
    for threshold, n in ((0.0, 4), (1.0, 1)):
        assert length(EarlyExitDrafter(EarlyExit(gpt2, 1), threshold=threshold), [1, 2, 3], 4) == n
        assert length(EagleDrafter(gpt2, random_eagle(gpt2.hparams), threshold=threshold), [1, 2], 4) == n


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=3.0)], ids=["plain", "penalty"])
def test_of_the_target_as_its_own_draft_every_token_is_accepted(sampling):
    """Each row is that after the draft tokens before it, at which a penalty looks as well."""
    model = TableModel.random(40, seed=1)
    for seed in range(5):
        sampler = SpeculativeSampler(model, ModelDrafter(model), K=4, sampling=sampling)
        assert sampler.generate([0], 20, seed).stats.rejected == 0
