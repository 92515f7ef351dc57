"""Averages of accepted tokens and of speed, each by the definition of a benchmark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculative.cli.experiments.acceptance_length import acceptance_lengths, mean_speedup
from speculative.measuring import Run


def test_two_averages_of_the_same_calls():
    found = acceptance_lengths([[4, 4], [1, 1, 1, 1, 2, 2]])
    assert found["mean_accepted_tokens"] == 2 and found["average_AL"] == pytest.approx((4 + 8 / 6) / 2)


@given(st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=9), min_size=1, max_size=5))
def test_rates_follow_from_the_histogram(lengths):
    found, calls = acceptance_lengths(lengths), np.concatenate(lengths)
    assert [k for k, n in found["histogram"].items() for _ in range(n)] == sorted(calls)
    for k in range(2, max(calls) + 1):
        assert found["joint"][k] == np.mean(calls >= k)
        assert found["conditional"][k] == pytest.approx(np.mean(calls[calls >= k - 1] >= k))
    assert found["joint"].keys() == found["conditional"].keys() == {*range(2, max(calls) + 1)}
    assert found["mean_accepted_tokens"] == pytest.approx(1 + sum(found["joint"].values()))


def test_the_mean_of_speeds_is_not_the_ratio_of_times():
    def runs(*seconds):
        return [Run(time - 1, 0, [0] * 12, [1] * 12, 0, 0, 0, prefill_seconds=1) for time in seconds]

    assert mean_speedup(runs(12, 4), runs(4, 3)) == pytest.approx((3 + 4) / (1 + 3))  # of times: 16 / 7
