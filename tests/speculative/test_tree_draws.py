"""Different tokens for one place: drawn one after the other, or ranked by common random numbers."""

import numpy as np
import pytest

from speculative import Gumbel, exact_distribution
from speculative.probs import sample_distinct, sample_token
from speculative.rng import Recorder

PROBS = np.array([0.5, 0.0, 0.125, 0.375])


def test_each_token_is_drawn_from_its_row():
    """And the rows are those given the elder siblings."""
    distribution = exact_distribution(lambda rng: sample_distinct(PROBS, 2, rng)[0])
    for (first, second), share in distribution.items():
        assert abs(share - PROBS[first] * PROBS[second] / (1 - PROBS[first])) < 1e-15
    assert len(distribution) == 6
    tokens, rows = sample_distinct(PROBS, 4, np.random.default_rng(0))
    assert sorted(tokens) == [0, 2, 3] and tokens.dtype == np.int64  # the support is used up
    for i, row in enumerate(rows):
        wanted = np.where(np.isin(np.arange(4), tokens[:i]), 0, PROBS)
        np.testing.assert_allclose(row, wanted / wanted.sum(), rtol=0, atol=1e-15)


def test_one_candidate_is_the_draw_of_a_chain():
    for seed in range(20):
        one, alone = (np.random.default_rng(seed) for _ in range(2))
        tokens, rows = sample_distinct(PROBS, 1, one)
        assert tokens.tolist() == [sample_token(PROBS, alone)] and one.random() == alone.random()
        np.testing.assert_array_equal(rows, [PROBS])
    tokens, rows = sample_distinct(PROBS, 0, np.random.default_rng(0))
    assert tokens.shape == (0,) and rows.shape == (0, 4)


@pytest.mark.parametrize("wrapped", [lambda rng: rng, Recorder])
def test_common_random_numbers_rank_the_tokens(wrapped):
    """The first is the token that is drawn, the next the one that would be if the first were impossible."""
    for seed in range(50):
        rng = wrapped(Gumbel(seed, 7))
        tokens, rows = sample_distinct(PROBS, 3, rng)
        assert rng.position == 8
        left = PROBS.copy()
        for token, row in zip(tokens, rows):
            np.testing.assert_allclose(row, left / left.sum(), rtol=0, atol=1e-15)
            assert token == Gumbel(seed, 7).draw(left)
            left[token] = 0
    assert len(Gumbel(0).draw_distinct(PROBS, 4)) == 3
