"""A uniform number that is not drawn: every way to accept or to draw a token with it."""

import math
import operator

import numpy as np
import pytest
from exactness import assert_distribution

P = np.array([0.5, 0.3, 0.0, 0.2])
CDF = np.cumsum(P)


@pytest.mark.parametrize(
    "accept",
    [
        lambda rng, p, q: rng.random() < p / q,
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
    ],
)
def test_ways_to_draw_a_token(draw):
    assert_distribution(lambda rng: int(draw(rng)), {0: 0.5, 1: 0.3, 3: 0.2})


def test_comparisons_of_one_uniform_stay_consistent():
    def fn(rng):
        u = rng.random()
        return u < 0.5, u < 0.25, 1 - u < 0.5, u * 4 < 3, u < 0.5

    wanted = {
        (True, True, False, True, True): 0.25,
        (True, False, False, True, True): 0.25,
        (False, False, True, True, False): 0.25,
        (False, False, True, False, False): 0.25,
    }
    assert_distribution(fn, wanted)


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (lambda u: int(u * 4), dict.fromkeys(range(4), 0.25)),
        (lambda u: int(u * 4 - 2), {-1: 0.25, 0: 0.5, 1: 0.25}),
        (lambda u: bool(np.log(u) < 1000), {True: 1.0}),  # a logarithm is below any large number
    ],
)
def test_functions_of_a_uniform_number(fn, wanted):
    assert_distribution(lambda rng: fn(rng.random()), wanted)


def test_a_uniform_number_is_equal_to_itself():
    def compared(rng):
        u = rng.random()
        return [u < u, u > u, u <= u, u >= u, int(np.argmax(np.array([u, u])))]

    assert_distribution(compared, {(False, False, True, True, 0): 1.0})


def test_nothing_is_above_nan():
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        assert_distribution(lambda rng, compare=compare: bool(compare(rng.random(), math.nan)), {False: 1.0})
        assert_distribution(lambda rng, compare=compare: bool(compare(math.nan, rng.random())), {False: 1.0})


def test_probabilities_below_rounding_are_left_out():
    """A cumulative sum that ends at 1 - 1e-16, and a number in the rest."""
    cdf = np.cumsum([0.1] * 10)
    assert cdf[-1] < 1
    assert_distribution(
        lambda rng: np.searchsorted(cdf, rng.random()), {n: cdf[n] - (cdf[n - 1] if n else 0) for n in range(10)}
    )


def test_a_uniform_number_can_be_looked_at():
    looked_at = lambda u: (f"{u:.3f} {u}", u.item() < 0.25)  # noqa: E731
    words = "<a uniform number> <a uniform number>"
    assert_distribution(lambda rng: looked_at(rng.random()), {(words, True): 0.25, (words, False): 0.75})
