import numpy as np
import pytest
from helpers import ALMOST_ONE, Uniform
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Sampling, acceptance_probability, residual, sample_token
from speculative.rng import as_generator

weights = st.lists(st.integers(0, 20), min_size=2, max_size=8).filter(any)


def distribution(integers):
    return np.array(integers, float) / sum(integers)


def test_temperature_divides_the_logits():
    logits = np.array([[0.0, 1.0, 3.0], [5.0, 5.0, -2.0]], np.float32)
    for temperature in (0.5, 1, 2.0):
        expected = np.exp(logits.astype(float) / temperature)
        probs = Sampling(temperature=temperature)(logits)
        np.testing.assert_allclose(probs, expected / expected.sum(-1, keepdims=True), rtol=1e-14)
        assert probs.dtype == np.float64


def test_temperature_zero_is_the_first_largest():
    logits = np.array([[0, 3, 3], [2, 1, 0]], np.float32)
    np.testing.assert_array_equal(Sampling(temperature=0)(logits), [[0, 1, 0], [1, 0, 0]])


def test_extreme_logits_and_temperatures_stay_exact():
    logits = np.array([[1e30, -1e30, -np.inf]], np.float32)
    np.testing.assert_array_equal(Sampling()(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=5e-324)(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=1e-300)(np.array([[1, 0, 1]])), [[0.5, 0, 0.5]])


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_numbers_are_refused(temperature, bad):
    with pytest.raises(ValueError, match="expected finite logits"):
        Sampling(temperature=temperature)(np.array([[0, 1], [bad, 2]]))


@pytest.mark.parametrize("temperature", [-1, np.inf, np.nan])
def test_an_invalid_temperature_is_refused(temperature):
    with pytest.raises(ValueError, match="expected a temperature of 0 or more"):
        Sampling(temperature=temperature)


@given(weights)
@settings(deadline=None, derandomize=True)
def test_sample_token_inverts_the_cumulative_distribution(integers):
    """Each token has its share of equally spaced uniforms; none of probability 0 is drawn, not even at the ends."""
    n = sum(integers)
    probs = distribution(integers)
    drawn = [sample_token(probs, Uniform((i + 0.5) / n)) for i in range(n)]
    np.testing.assert_array_equal(np.bincount(drawn, minlength=len(integers)), integers)
    for u in (0.0, ALMOST_ONE):
        assert integers[sample_token(probs, Uniform(u))] > 0


def test_a_uniform_rounded_up_to_one_does_not_draw_a_token_of_probability_zero():
    """As a float32 generator may return it."""
    assert sample_token(np.array([0.0, 0.25, 0.75, 0.0, 0.0]), Uniform(1.0)) == 2
    assert sample_token(np.array([0.3, 0.2, 0.1]), Uniform(1.0)) == 2


def test_a_large_vocabulary_whose_probabilities_do_not_add_up_to_one():
    probs = np.random.default_rng(0).dirichlet(np.ones(50257)) * (1 - 1e-6)
    assert sample_token(probs, Uniform(ALMOST_ONE)) == 50256
    assert sample_token(probs, Uniform(0.0)) == 0


def test_the_uniform_is_scaled_to_the_sum_of_the_probabilities():
    halved = np.array([0.125, 0.25, 0.125])
    assert [sample_token(halved, Uniform(u)) for u in (0.24, 0.26, 0.74, 0.76)] == [0, 1, 1, 2]


@given(weights, weights)
@settings(deadline=None, derandomize=True)
def test_residual_and_acceptance_make_up_the_target(a, b):
    """min(p, q) + (p - q)+ = p, through the two functions: what one step of the rule emits has distribution p."""
    n = max(len(a), len(b))
    p, q = (distribution(integers + [0] * (n - len(integers))) for integers in (a, b))
    accepted = [q[x] * acceptance_probability(p, q, x) if q[x] > 0 else 0.0 for x in range(n)]
    np.testing.assert_allclose(accepted + (1 - sum(accepted)) * residual(p, q), p, rtol=0, atol=1e-12)


def test_residual_of_equal_distributions_is_the_target_itself():
    p = np.array([0.25, 0.75])
    np.testing.assert_array_equal(residual(p, p.copy()), p)


def test_as_generator():
    rng = np.random.default_rng(0)
    stand_in = Uniform(0.5)
    assert as_generator(rng) is rng and as_generator(stand_in) is stand_in
    assert as_generator(7).random() == np.random.default_rng(7).random()
    assert as_generator(None).random() != as_generator(None).random()
    assert as_generator(0).random() == as_generator(np.int64(0)).random()
