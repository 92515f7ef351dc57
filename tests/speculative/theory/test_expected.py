"""What to expect, compared with the published tables and with exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import ModelDrafter, Sampling, SpeculativeSampler, exact_distribution
from speculative.testing import TableModel
from speculative.theory import acceptance_of, best_K, estimate_alpha, expected_time, expected_tokens, speedup

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


@pytest.mark.parametrize(
    ("alpha", "K", "speed"),
    [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 2, 2.44), (0.8, 5, 3.69), (0.9, 2, 2.71), (0.9, 10, 6.86)],
)
def test_leviathans_table_1(alpha, K, speed):
    """arXiv:2211.17192, table 1: a draft that costs nothing."""
    assert round(speedup(alpha, K, 0), 2) == speed
    assert math.isclose(expected_tokens(alpha, K), (1 - alpha ** (K + 1)) / (1 - alpha))


@pytest.mark.parametrize(
    ("c", "wanted"),
    [
        (0.02, [(4, 1.79), (6, 2.17), (8, 2.76), (11, 3.82), (19, 6.37)]),
        (0.05, [(3, 1.63), (4, 1.92), (6, 2.35), (8, 3.09), (13, 4.67)]),
        (0.10, [(2, 1.46), (3, 1.67), (4, 1.98), (6, 2.47), (10, 3.43)]),
        (0.20, [(1, 1.25), (2, 1.40), (3, 1.58), (4, 1.87), (7, 2.37)]),
        (0.35, [(1, 1.11), (1, 1.19), (2, 1.29), (3, 1.44), (4, 1.71)]),
        (0.60, [(0, 1.00), (0, 1.00), (1, 1.06), (1, 1.12), (2, 1.23)]),  # pays only where alpha > c, corollary 3.9
    ],
)
def test_the_best_draft_lengths(c, wanted):
    """By the condition that one more draft token pays, alpha^(K+1) (1 - alpha) (K c + 1) > c (1 - alpha^(K+1))."""
    for alpha, (K, speed) in zip((0.5, 0.6, 0.7, 0.8, 0.9), wanted):
        assert best_K(alpha, c) == K and round(speedup(alpha, K, c), 2) == speed
        pays = [alpha ** (k + 1) * (1 - alpha) * (k * c + 1) > c * (1 - alpha ** (k + 1)) for k in range(21)]
        assert pays.index(False) == K


def test_costs_that_grow_with_the_tokens_and_the_borders_of_the_formulas():
    assert best_K(0.9, 0.1, v=(1, 1.95, 2.9)) == 0  # where the target needs as long for each token of a block
    assert math.isclose(speedup(0.5, 1, 0.25, v=(1, 1.25)), 1.0)
    assert best_K(1.0, 0.0, [1.0] * 31) == 30  # as long as the costs allow
    assert best_K(math.nan, 0.1) == 0
    assert expected_time([0.5] * 2, 5, 0.1, (1, 1.1)) > 0  # no draft of such a text is longer than one token
    for K in (2.5, -1, [1.0, 2.0]):
        with pytest.raises(ValueError, match="expected draft lengths K of 0 or more, whole numbers"):
            expected_tokens(0.8, K)
    for alpha in (-0.1, 1.1):
        with pytest.raises(ValueError, match="expected acceptance probabilities from 0 to 1"):
            expected_tokens(alpha, 2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.integers(0, 4))
@settings(deadline=None, derandomize=True)
def test_expected_time_is_the_mean_over_all_outcomes_of_the_draft_tokens(acceptance, K):
    c, v, wanted = 0.25, (1, 1.5, 1.75, 1.875, 2.0), 0.0
    for flags in itertools.product((False, True), repeat=len(acceptance)):
        i, time = 0, 0.0
        while i < len(flags):
            k = min(K, len(flags) - i - 1)
            time += k * c + v[k]
            i += next((j for j in range(k) if not flags[i + j]), k) + 1
        wanted += math.prod(a if flag else 1 - a for a, flag in zip(acceptance, flags)) * time
    np.testing.assert_allclose(expected_time(acceptance, K, c, v), wanted, rtol=1e-12)


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0)], ids=["sampled", "greedy"])
def test_the_expected_calls_of_the_targets_own_texts_are_those_of_the_sampler(sampling, K):
    """sum over texts of P(text) T(text) = E[target calls] of speculative sampling, by two enumerations."""
    n, prompt, expected = 4 if K == 1 else 3, [0, 1], 0.0
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=K, sampling=sampling)
    calls = exact_distribution(lambda rng: sampler.generate(prompt, n, rng).stats.target_calls)
    for text, probability in TARGET.distribution(prompt, n, sampling).items():
        if probability:
            p, q = (sampling(model([*prompt, *text[:-1]], n_last=n)) for model in (TARGET, DRAFT))
            expected += probability * expected_time(acceptance_of(text, p, q), K)
    np.testing.assert_allclose(expected, sum(number * share for number, share in calls.items()), rtol=1e-12)


def test_alpha_is_estimated_from_accepted_draft_tokens_and_rejections():
    """For draft tokens accepted with probability 0.7 and K = 5, A / (A + J) is about 0.7, and A / drafted is not."""
    rng, K = np.random.default_rng(0), 5
    accepted = [next((j for j in range(K) if rng.random() >= 0.7), K) for _ in range(20_000)]
    _, low, high = estimate_alpha(sum(accepted), sum(n < K for n in accepted))
    assert low < 0.7 < high and high - low < 0.01 and abs(sum(accepted) / (K * len(accepted)) - 0.388) < 0.01
    assert math.isnan(estimate_alpha(0, 0)[0]) and estimate_alpha(0, 0)[1:] == (0, 1)


def test_an_interval_at_the_edge():
    """Wilson's by hand; rounding goes beyond 0 and 1, and a low end of -1e-17 was printed as -0.00."""
    for n in range(1, 200):
        edge = 1 / (1 + 1.959964**2 / n)
        for counts, wanted in (((0, n), (0, 0, 1 - edge)), ((n, 0), (1, edge, 1))):
            found = estimate_alpha(*counts)
            np.testing.assert_allclose(found, wanted, atol=1e-12)
            assert found[1] >= 0 and found[2] <= 1 and math.copysign(1, found[1]) == 1


def test_a_list_of_costs_that_is_too_short():
    with pytest.raises(ValueError, match=r"each of 1 to K \+ 1 = 4 tokens, got 3"):
        speedup(0.8, 3, 0.1, [1, 1.1, 1.2])
