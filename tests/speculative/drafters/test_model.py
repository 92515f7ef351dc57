"""Drafting with a model: a draft ends where the model is unsure or its context ends; the target with noise."""

import math

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2

from gpt2np import EarlyExit, HParams
from speculative import (
    EagleDrafter,
    EarlyExitDrafter,
    ModelDrafter,
    NoisyDrafter,
    OracleDrafter,
    Sampling,
    SpeculativeSampler,
    exact_distribution,
)
from speculative.testing import TableModel
from speculative.theory import overlap

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def length(drafter, tokens, K):
    return len(drafter.propose(tokens, K, np.random.default_rng(0)).tokens)


def test_each_token_is_drawn_given_those_before_it():
    tokens = [0, 1]
    draft = ModelDrafter(DRAFT).propose(tokens, 3, np.random.default_rng(0))
    assert tokens == [0, 1] and draft.tokens.shape == (3,)
    for i, row in enumerate(draft.probs):
        np.testing.assert_array_equal(row, Sampling()(DRAFT([0, 1, *draft.tokens[:i]]))[0])


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


def test_a_model_with_a_shorter_context_drafts_while_it_can():
    drafter = ModelDrafter(TableModel(DRAFT.probs, n_ctx=10))
    generation = SpeculativeSampler(TARGET, drafter, K=3).generate([0] * 5, 20, 0)
    n_before, drafted = 5, []
    for r in generation.rounds:
        drafted.append((n_before, len(r.drafted)))
        n_before += len(r.tokens)
    assert len(generation.tokens) == 20
    assert all(n == min(3, 25 - at - 1, max(0, 10 - at + 1)) for at, n in drafted)
    assert {n for _, n in drafted} >= {0, 3}


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=3.0)])
@pytest.mark.parametrize("kind", [ModelDrafter, OracleDrafter])
def test_of_the_target_as_its_own_draft_every_token_is_accepted(kind, sampling):
    """A penalty on the draft looks at draft tokens, too."""
    model = TableModel.random(40, seed=1)
    for seed in range(5):
        sampler = SpeculativeSampler(model, kind(model), K=4, sampling=sampling)
        assert sampler.generate([0], 20, seed).stats.rejected == 0


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=2.0)])
@pytest.mark.parametrize("epsilon", [0, 0.25, 1])
def test_the_overlap_is_how_often_a_token_of_the_noisy_target_is_accepted(epsilon, sampling):
    """It is 1 - epsilon TV(p, uniform), also with a sampling that looks back."""
    target = TableModel.random(4, seed=3)
    p, drafter = sampling(target([0, 1]), [0, 1])[0], NoisyDrafter(target, epsilon, sampling=sampling)
    row = drafter.propose([0, 1], 1, np.random.default_rng(0)).probs[0]
    np.testing.assert_allclose(row, (1 - epsilon) * p + epsilon / 4, rtol=1e-12)
    alpha = 1 - epsilon * np.maximum(p - 1 / 4, 0).sum()
    assert math.isclose(overlap(p, row), alpha)
    sampler = SpeculativeSampler(target, drafter, K=1, sampling=sampling)
    found = exact_distribution(lambda rng: next(sampler.rounds([0, 1], 2, rng)).n_accepted)
    assert math.isclose(found[1], alpha, abs_tol=1e-12)
