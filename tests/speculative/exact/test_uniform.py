"""Random numbers that are not drawn: every way to accept or to draw a token with them."""

import math

import numpy as np
import pytest
from exactness import assert_distribution

from speculative import exact_distribution

P = np.array([0.5, 0.3, 0.0, 0.2])
CDF = np.cumsum(P)


@pytest.mark.parametrize(
    "accept",
    [
        lambda rng, p, q: rng.random() < p / q,
        lambda rng, p, q: not rng.exponential() < math.log(q / p),
        lambda rng, p, q: -2 * rng.exponential(0.5) < math.log(p / q),
        lambda rng, p, q: 1 / rng.exponential() < 1 / max(math.log(q / p), 0) if q > p else True,
        lambda rng, p, q: -math.inf < rng.gumbel() < -math.log(math.log(q / p)) if q > p else True,
        lambda rng, p, q: rng.random() < min(1, p / q),
        lambda rng, p, q: rng.random() <= p / q,
        lambda rng, p, q: rng.random() * q < p,
        lambda rng, p, q: q * rng.random() < p,
        lambda rng, p, q: np.float64(q) * rng.random() < np.float64(p),
        lambda rng, p, q: p > rng.random() * q,
        lambda rng, p, q: rng.random() / p < 1 / q,
        lambda rng, p, q: np.float64(p) >= rng.random() * q,
        lambda rng, p, q: p / q - rng.random() > 0,
        lambda rng, p, q: 1 - rng.random() < p / q,
        lambda rng, p, q: not rng.random() >= p / q,
        lambda rng, p, q: rng.uniform() < p / q,
        lambda rng, p, q: rng.uniform(0, q) < p,
        lambda rng, p, q: rng.uniform(-q, 0) > -p,
        lambda rng, p, q: np.log(rng.random()) < np.log(p / q),
        lambda rng, p, q: bool((rng.random(1) < p / q)[0]),
        lambda rng, p, q: bool(np.all(rng.random((1, 1)) * q < np.array([p]))),
        lambda rng, p, q: bool(np.less(rng.random(), p / q)),
        lambda rng, p, q: bool(rng.binomial(1, p / q)),
        lambda rng, p, q: rng.choice([True, False], p=[p / q, 1 - p / q]),
        lambda rng, p, q: np.random.default_rng(rng).random() < p / q,
    ],
)
def test_ways_to_accept(accept):
    assert_distribution(lambda rng: bool(accept(rng, 0.15, 0.6)), {True: 0.25, False: 0.75})


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: np.searchsorted(CDF, rng.random(), side="right"),
        lambda rng: CDF.searchsorted(rng.random(), "right"),
        lambda rng: np.searchsorted(CDF, rng.random() * CDF[-1]),
        lambda rng: np.digitize(rng.random(), CDF),
        lambda rng: np.argmax(CDF > rng.random()),
        lambda rng: np.sum(CDF <= rng.random()),
        lambda rng: (rng.random() >= CDF).sum(),
        lambda rng: next(i for u in [rng.random()] for i, c in enumerate(CDF) if u < c),
        lambda rng: rng.choice(4, p=P),
        lambda rng: rng.choice(np.arange(4), p=P),
        lambda rng: rng.choice(4, size=1, p=P)[0],
        lambda rng: np.argmax(rng.multinomial(1, P)),
        # races
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


WORDS = "<a uniform number> <a uniform number>"


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (
            lambda u: (u < 0.5, u < 0.25, 1 - u < 0.5, u * 4 < 3, u < 0.5),
            {
                (True, True, False, True, True): 0.25,
                (True, False, False, True, True): 0.25,
                (False, False, True, True, False): 0.25,
                (False, False, True, False, False): 0.25,
            },
        ),
        (lambda u: int(u * 4), dict.fromkeys(range(4), 0.25)),
        (lambda u: int(u * 4 - 2), {-1: 0.25, 0: 0.5, 1: 0.25}),
        (lambda u: bool(np.log(u) < 1000), {True: 1.0}),  # a logarithm is below any large number
        (lambda u: (u < u, u > u, u <= u, u >= u, np.argmax(np.array([u, u]))), {(False, False, True, True, 0): 1.0}),
        (lambda u: (u < math.nan, u <= math.nan, u > math.nan, u >= math.nan), {(False,) * 4: 1.0}),
        (lambda u: (math.nan < u, math.nan <= u, math.nan > u, math.nan >= u), {(False,) * 4: 1.0}),
        (lambda u: (f"{u:.3f} {u}", u.item() < 0.25), {(WORDS, True): 0.25, (WORDS, False): 0.75}),
    ],
)
def test_functions_of_one_uniform_number(fn, wanted):
    assert_distribution(lambda rng: fn(rng.random()), wanted)


def test_probabilities_below_rounding_are_left_out():
    """A cumulative sum that ends at 1 - 1e-16, and a number in the rest."""
    cdf = np.cumsum([0.1] * 10)
    assert cdf[-1] < 1
    assert_distribution(
        lambda rng: np.searchsorted(cdf, rng.random()), {n: cdf[n] - (cdf[n - 1] if n else 0) for n in range(10)}
    )
