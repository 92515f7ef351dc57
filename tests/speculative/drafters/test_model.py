"""Drafting with a model: a draft ends where the model is unsure or its context ends; the target with noise."""

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
)
from speculative.testing import TableModel
from speculative.theory import overlap


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


def test_a_model_with_a_shorter_context_drafts_while_it_can():
    drafter = ModelDrafter(TableModel.random(3, seed=2, n_ctx=10))
    rounds = SpeculativeSampler(TableModel.random(3, seed=1), drafter, K=3).generate([0] * 5, 20, 0).rounds
    n_text, drafted = 5, set()
    for r in rounds:
        assert len(r.drafted) == min(3, 25 - n_text - 1, max(0, 10 - n_text + 1))
        n_text, drafted = n_text + len(r.tokens), drafted | {len(r.drafted)}
    assert n_text == 25 and drafted >= {0, 3}


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=3.0)], ids=["plain", "penalty"])
@pytest.mark.parametrize("kind", [ModelDrafter, OracleDrafter])
def test_of_the_target_as_its_own_draft_every_token_is_accepted(kind, sampling):
    """Each row is that after the draft tokens before it, at which a penalty looks as well."""
    model = TableModel.random(40, seed=1)
    for seed in range(5):
        sampler = SpeculativeSampler(model, kind(model), K=4, sampling=sampling)
        assert sampler.generate([0], 20, seed).stats.rejected == 0


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=2.0)], ids=["plain", "penalty"])
@pytest.mark.parametrize("epsilon", [0, 0.25, 1])
def test_the_overlap_with_a_noisy_target_is_1_minus_epsilon_tv(epsilon, sampling):
    """TV(p, uniform), also with a sampling that looks back."""
    target = TableModel.random(4, seed=3)
    p, drafter = sampling(target([0, 1]), [0, 1])[0], NoisyDrafter(target, epsilon, sampling=sampling)
    row = drafter.propose([0, 1], 1, np.random.default_rng(0)).probs[0]
    np.testing.assert_allclose(row, (1 - epsilon) * p + epsilon / 4, rtol=1e-12)
    assert overlap(p, row) == pytest.approx(1 - epsilon * np.maximum(p - 1 / 4, 0).sum(), rel=1e-9)
