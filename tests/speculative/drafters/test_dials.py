"""Drafters of a known quality: the dials set alpha."""

import copy
import math
import pickle

import numpy as np
import pytest

from speculative import NoisyDrafter, OracleDrafter, Sampling, SpeculativeSampler, exact_distribution
from speculative.testing import TableModel
from speculative.theory import overlap


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=2.0)])
@pytest.mark.parametrize("epsilon", [0, 0.25, 1])
def test_the_overlap_is_how_often_a_draft_token_is_accepted(epsilon, sampling):
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


def test_of_an_oracle_every_token_is_accepted():
    target = TableModel.random(4, seed=3)
    assert SpeculativeSampler(target, OracleDrafter(target), K=4).generate([0], 30, 0).stats.rejected == 0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))])
def test_a_noisy_drafter_can_be_copied(copied):
    drafter = NoisyDrafter(TableModel.random(4), 0.2)
    ours, theirs = (some.propose([1], 3, np.random.default_rng(0)) for some in (drafter, copied(drafter)))
    assert np.array_equal(ours.tokens, theirs.tokens) and np.array_equal(ours.probs, theirs.probs)


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, math.nan])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(ValueError, match=f"expected an epsilon from 0 to 1, got {epsilon}"):
        NoisyDrafter(TableModel.random(3), epsilon)
