"""Exponential and Gumbel numbers that are not drawn: races for a token."""

import numpy as np
import pytest
from exactness import assert_distribution

from speculative import exact_distribution

P = np.array([0.5, 0.3, 0.0, 0.2])


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: np.argmin(rng.exponential(size=4) / np.maximum(P, 0)),
        lambda rng: (rng.standard_exponential(4) / P).argmin(),
        lambda rng: np.argmin(rng.exponential(1 / P)),
        lambda rng: np.argmax(np.log(P) + rng.gumbel(size=4)),
        lambda rng: np.argmax(np.log(P) - np.log(rng.exponential(size=4))),
        lambda rng: np.argmax([rng.gumbel(loc) for loc in np.log(P)]),
        lambda rng: min(np.flatnonzero(P), key=lambda i: rng.exponential() / P[i]),
        lambda rng: np.argmax(-rng.exponential(size=4) / P),
        lambda rng: np.argmax(P / rng.exponential(size=4)),
        lambda rng: np.argmin(1 / rng.exponential(size=4) * -P),
        lambda rng: min(np.flatnonzero(P), key=lambda i: 1 / (P[i] / rng.exponential())),
        lambda rng: max(np.flatnonzero(P), key=lambda i: np.log(P[i] / np.array(rng.exponential()))),
        lambda rng: max(range(4), key=lambda i: P[i] / rng.exponential()),
    ],
)
def test_ways_to_draw_a_token(draw):
    with np.errstate(divide="ignore"):  # 1 / 0 and log(0), where P is 0
        assert_distribution(lambda rng: int(draw(rng)), {0: 0.5, 1: 0.3, 3: 0.2})


@pytest.mark.parametrize(
    "logits",
    [[1000.0, 999.0], [-1000.0, -999.0], [709.5, 709.5], [-744.0, -743.5], [-1e9, -1e9, 0.0, 1.0], [-np.inf, 0.0, 2.0]],
)
def test_a_race_is_exact_for_any_logits(logits):
    found = exact_distribution(lambda rng: int(np.argmax(logits + rng.gumbel(size=len(logits)))))
    expected = np.exp(np.array(logits) - max(logits)) / np.exp(np.array(logits) - max(logits)).sum()
    assert [found.get(i, 0) for i in range(len(logits))] == pytest.approx(expected, abs=1e-12)
