"""The largest scores, by their definition: in order, of equal ones the first, whatever is finite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative.drafters.ranked import FEW, top


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, FEW))
def test_the_largest_in_order_and_of_equals_the_first(seed, n):
    rng = np.random.default_rng(seed)
    for dtype in (np.float32, np.float64):
        scores = rng.integers(-3, 3, (3, 40)).astype(dtype)
        scores[rng.random(scores.shape) < rng.random()] = -np.inf  # perhaps fewer than n are finite
        before, wanted = scores.copy(), np.argsort(-scores, axis=-1, kind="stable")[:, :n]
        np.testing.assert_array_equal(top(scores, n), wanted)
        np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("n", [FEW + 1, 60, 99])
def test_many_of_them(n):
    scores = np.random.default_rng(0).standard_normal((3, 80))
    np.testing.assert_array_equal(top(scores, n), np.argsort(-scores, axis=-1)[:, :n])
