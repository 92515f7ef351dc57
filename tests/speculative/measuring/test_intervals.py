"""95 % intervals over prompts: by hand, at the edge, and how often they contain the true value."""

import math

import numpy as np
import pytest

from speculative.measuring import gain
from speculative.measuring.intervals import share
from speculative.theory import estimate_alpha


def test_the_gain_is_that_of_the_sums_and_its_interval_that_of_the_prompts():
    plain, other = np.array([2.0, 4.0, 6.0, 3.0] * 10), np.array([1.0, 4.0, 2.0, 3.0] * 10)
    middle, low, high = gain(plain, other)
    assert middle == 1.5 and 1.25 < low < 1.5 < high < 1.8
    assert gain(plain, plain / 2) == (2, 2, 2) and gain(plain[:1], other[:1]) == (2, None, None)
    same_ratio = np.array([1.0, 2.0, 3.0])  # of prompts that take longer and shorter: no spread
    assert gain(3 * same_ratio, same_ratio) == (3, pytest.approx(3), pytest.approx(3))


def test_an_interval_of_a_share_by_hand():
    assert share(np.array([3, 1]), np.array([4, 0])) == (0.75, None, None)  # the second text says nothing
    assert share(np.zeros(3), np.zeros(3)) == (None, None, None)
    half = 12.7062 * 0.25 / 0.25  # t with 1 degree of freedom, the standard error of the mean, the slope of the logit
    wanted = 0.5, 1 / (1 + math.exp(half)), 1 / (1 + math.exp(-half))
    np.testing.assert_allclose(share(np.array([1.0, 3.0]), np.array([4.0, 4.0])), wanted, rtol=1e-4)
    above = np.array([0.1, 0.2, 0.3]) * 1.0000000000000002  # almost one, without overflow
    assert share(above, np.array([0.1, 0.2, 0.3])) == (1.0, 1.0, 1.0)


def test_a_share_that_is_counted_is_not_certain():
    """That 36 of 36 were accepted does not show that alpha is 1; a mean of overlaps may."""
    ones = np.full(4, 9.0)
    assert share(ones, ones, counted=True) == (1, estimate_alpha(36, 0)[1], 1) and estimate_alpha(36, 0)[1] < 0.95


@pytest.mark.parametrize("n", [3, 12])
def test_intervals_of_few_prompts_contain_the_true_value_in_95_percent_of_the_cases(n):
    """2,000 draws each: a coverage of 0.95 is measured with a standard error of 0.005. The first-order intervals are
    allowed 0.93 to 0.975. Of the same draws a bootstrap has 0.74 (n = 3) to 0.90, Wilson's interval 0.5."""
    rng, n_draws = np.random.default_rng(n), 2000
    plain = rng.lognormal(0, 0.1, (n_draws, n))
    other = plain / rng.lognormal(math.log(1.4), 0.2, (n_draws, n))
    true_gain = 1.4 * math.exp(-(0.2**2) / 2)  # of the sums, over infinitely many prompts
    tested = rng.integers(80, 150, (n_draws, n))
    accepted = rng.binomial(tested, rng.beta(12, 3, (n_draws, n)))  # alpha differs by text, with a spread of 0.1
    for interval, above, below, true in ((gain, plain, other, true_gain), (share, accepted, tested, 0.8)):
        assert 0.93 < np.mean([low <= true <= high for _, low, high in map(interval, above, below)]) < 0.975
