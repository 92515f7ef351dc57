import copy
import math
import operator
import pickle

import numpy as np
import pytest

from speculative import AutoregressiveSampler, CannotEnumerate, exact_distribution
from speculative.testing import TableModel

P = np.array([0.5, 0.3, 0.0, 0.2])
CDF = np.cumsum(P)


def assert_distribution(fn, wanted):
    distribution = exact_distribution(fn)
    assert distribution.keys() == wanted.keys()
    assert abs(math.fsum(distribution.values()) - 1) < 1e-12
    for outcome, probability in wanted.items():
        assert abs(distribution[outcome] - probability) < 1e-15, (outcome, distribution[outcome], probability)


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
        lambda rng: np.argmin(rng.exponential(size=4) / np.maximum(P, 0)),
        lambda rng: (rng.standard_exponential(4) / P).argmin(),
        lambda rng: np.argmin(rng.exponential(1 / P)),
        lambda rng: np.argmax(np.log(P) + rng.gumbel(size=4)),
        lambda rng: np.argmax(np.log(P) - np.log(rng.exponential(size=4))),
        lambda rng: np.argmax([rng.gumbel(loc) for loc in np.log(P)]),
        lambda rng: min(np.flatnonzero(P), key=lambda i: rng.exponential() / P[i]),
    ],
)
def test_ways_to_draw_a_token(draw):
    with np.errstate(divide="ignore"):  # 1 / 0 and log(0), where P is 0
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


def test_separate_uniforms_are_independent():
    assert_distribution(
        lambda rng: tuple(rng.random(2) < np.array([0.5, 0.25])),
        {(True, True): 0.125, (True, False): 0.375, (False, True): 0.125, (False, False): 0.375},
    )


def test_whole_numbers():
    assert_distribution(lambda rng: int(rng.random() * 4), dict.fromkeys(range(4), 0.25))
    assert_distribution(lambda rng: int(rng.random() * 4 - 2), {-1: 0.25, 0: 0.5, 1: 0.25})
    assert_distribution(lambda rng: rng.integers(4), dict.fromkeys(range(4), 0.25))
    assert_distribution(lambda rng: rng.integers(1, 2, endpoint=True), {1: 0.5, 2: 0.5})
    assert_distribution(lambda rng: rng.choice(["a", "b"]), {"a": 0.5, "b": 0.5})
    assert_distribution(lambda rng: rng.integers(2, size=2), {(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.25, (1, 1): 0.25})


def test_arguments_are_in_numpys_order():
    assert_distribution(lambda rng: rng.integers(0, 2, None, np.int64), {0: 0.5, 1: 0.5})
    assert_distribution(lambda rng: int(rng.choice([1, 2], None, True, [0.25, 0.75], 0, False)), {1: 0.25, 2: 0.75})
    assert_distribution(lambda rng: rng.binomial(1, 0.25), {0: 0.75, 1: 0.25})
    with pytest.raises(ValueError, match=r"expected a probability p from 0 to 1, got 1\.5"):
        exact_distribution(lambda rng: rng.binomial(1, 1.5))


def test_what_is_certain_does_not_fork():
    runs = []

    def fn(rng):
        runs.append(1)
        u = rng.random()
        return u < 1, u < 0, u < -3, u < 5, u * 0 < 1, rng.choice(3, p=[0, 1, 0]), u < math.nan

    assert_distribution(fn, {(True, False, False, True, True, 1, False): 1.0})
    assert len(runs) == 1


def test_one_run_for_each_path():
    runs = []

    def fn(rng):
        runs.append(1)
        return rng.random() < 0.5 and rng.random() < 0.5

    assert_distribution(fn, {True: 0.25, False: 0.75})
    assert len(runs) == 3


@pytest.mark.parametrize(
    "fn",
    [
        lambda rng: rng.random(),
        lambda rng: float(rng.random()),
        lambda rng: rng.random(3).sum() < 1,
        lambda rng: rng.random() < rng.random(),
        lambda rng: rng.random() + rng.random() < 1,
        lambda rng: np.exp(rng.random()) < 2,
        lambda rng: rng.random() ** 2 < 0.5,
        lambda rng: 1 / rng.random() < 3,
        lambda rng: np.argmax(-np.log(-np.log(rng.random(3)))),
        lambda rng: bool(rng.random()),
        lambda rng: rng.random() % 0.5 < 0.1,
        lambda rng: rng.random() // 0.5,
        lambda rng: divmod(rng.random(), 0.5),
        lambda rng: abs(rng.random() - 0.5) < 0.2,
        lambda rng: round(rng.random()),
        lambda rng: [1, 2][rng.random()],
    ],
)
def test_a_continuous_draw_used_as_a_value_is_refused(fn):
    with pytest.raises(CannotEnumerate, match="a uniform number is used as a value"):
        exact_distribution(fn)


@pytest.mark.parametrize(
    "fn",
    [
        lambda rng: rng.exponential() < 1,
        lambda rng: float(rng.gumbel()),
        lambda rng: rng.exponential() + rng.exponential() < rng.exponential(),
        lambda rng: np.argsort(rng.exponential(size=3)).tolist(),
        lambda rng: [np.argmin(E / row) for E in [rng.exponential(size=3)] for row in ([1, 2, 3], [3, 2, 1])],
        lambda rng: [np.argmin(E / [1, 2, 3]) for E in [rng.exponential(size=3)] for _ in range(2)],
        lambda rng: rng.exponential() < rng.gumbel(),
        lambda rng: (lambda E: E < 2 * E)(rng.exponential()),
        lambda rng: np.argmin(rng.exponential(size=2) / [1, math.nan]),
        lambda rng: np.argmax(rng.gumbel(size=2) + [1, math.nan]),
    ],
)
def test_a_waiting_time_used_as_a_value_or_twice_is_refused(fn):
    with pytest.raises(CannotEnumerate, match="an exponential or Gumbel number is used as a value, or twice"):
        exact_distribution(fn)


@pytest.mark.parametrize("name", ["normal", "poisson", "laplace", "shuffle", "permutation", "bytes"])
def test_draws_that_are_not_enumerated_are_refused(name):
    with pytest.raises(CannotEnumerate, match=f"rng.{name} cannot be enumerated here"):
        exact_distribution(lambda rng: getattr(rng, name)(3))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda rng: pickle.loads(pickle.dumps(rng))])
def test_a_copy_of_the_generator_is_refused(copied):
    with pytest.raises(CannotEnumerate, match="the generator is copied"):
        exact_distribution(lambda rng: copied(rng).random() < 0.5)


def test_a_uniform_number_is_equal_to_itself():
    def compared(rng):
        u = rng.random()
        return [u < u, u > u, u <= u, u >= u, int(np.argmax(np.array([u, u])))]

    assert_distribution(compared, {(False, False, True, True, 0): 1.0})


def test_code_with_another_source_of_randomness_is_refused():
    calls = iter(range(100))
    with pytest.raises(CannotEnumerate, match="drew differently when it was run again"):
        exact_distribution(lambda rng: rng.random() < 0.5 and rng.random() < [0.2, 0.3][next(calls) % 2])
    calls = iter([True, False, False, False])
    with pytest.raises(CannotEnumerate, match="drew differently when it was run again"):
        exact_distribution(lambda rng: next(calls) and rng.random() < 0.5)


def test_too_many_paths_are_refused():
    with pytest.raises(CannotEnumerate, match=r"more than max_leaves = 10 paths, .* cover 0\.00977 of"):
        exact_distribution(lambda rng: [rng.random() < 0.5 for _ in range(10)], max_leaves=10)


def until_heads(rng):
    n = 0
    while rng.random() < 0.5:
        n += 1
    return n


def until_accepted(rng):
    while True:
        token = int(rng.choice(4, p=P))
        if rng.random() * 2 < P[token]:
            return token


def always_in_vain(rng):
    while rng.choice(2, p=[1, 0]) == 0:
        pass


def rarely_ended(rng):
    while rng.random() < 0.999:
        pass


@pytest.mark.parametrize("fn", [until_heads, until_accepted, always_in_vain, rarely_ended])
def test_a_loop_without_an_end_is_refused(fn):
    with pytest.raises(CannotEnumerate, match=r"one run has made \d+ draws so far: an endless loop"):
        exact_distribution(fn)


def test_a_loop_around_one_number_is_refused():
    def fn(rng):
        u = rng.random()
        while u < 2:
            pass

    with pytest.raises(CannotEnumerate, match="an endless loop around a number that does not change"):
        exact_distribution(fn)


def test_a_seed_for_another_generator_is_refused():
    with pytest.raises(CannotEnumerate, match="not a seed for another generator"):
        exact_distribution(lambda rng: np.random.default_rng(rng.integers(2**31)).random() < 0.5)


def test_long_runs_and_improbable_paths_that_end_are_not():
    assert_distribution(lambda rng: sum(bool(rng.random() < 1) for _ in range(499)), {499: 1.0})
    assert exact_distribution(lambda rng: [rng.random() < 1e-12 for _ in range(2)])[True, True] == 1e-24
    assert_distribution(
        lambda rng: [rng.random() < 1 for _ in range(9)] and [rng.choice(2, p=[1e-9, 1]) for _ in range(2)] and 1,
        {1: 1},
    )
    with pytest.raises(CannotEnumerate, match="7 draws so far"):
        exact_distribution(lambda rng: [rng.random() < 0.5 for _ in range(7)], max_draws=6)


def test_probabilities_below_rounding_are_left_out():
    """A cumulative sum that ends at 1 - 1e-16, and a number in the rest."""
    cdf = np.cumsum([0.1] * 10)
    assert cdf[-1] < 1
    assert_distribution(
        lambda rng: np.searchsorted(cdf, rng.random()), {n: cdf[n] - (cdf[n - 1] if n else 0) for n in range(10)}
    )


def test_the_time_of_a_run_is_linear_in_its_draws(monkeypatch):
    """Counted, not measured: each draw on a path is answered once a run, and its probability multiplied once."""
    from speculative.exact import ExactGenerator

    asked, fork = [0], ExactGenerator.fork

    def counting(self, probs):
        asked[0] += 1
        return fork(self, probs)

    monkeypatch.setattr(ExactGenerator, "fork", counting)

    def first_heads(rng, most):
        return next((n for n in range(most) if rng.random() < 0.5), most)

    for most in (10, 20, 40):
        asked[0] = 0
        exact_distribution(lambda rng, most=most: first_heads(rng, most))
        assert asked[0] == most * (most + 1) / 2 + most  # the n-th path has n draws


def test_a_uniform_number_can_be_looked_at():
    def fn(rng):
        us = rng.random(2)
        return f"{us[0]:.3f} {us[0]}", us[0].item() < 0.25

    assert_distribution(
        fn,
        {("<a uniform number> <a uniform number>", True): 0.25, ("<a uniform number> <a uniform number>", False): 0.75},
    )


def test_probabilities_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="expected 2 probabilities that add up to 1"):
        exact_distribution(lambda rng: rng.choice(2, p=[0.5, 0.6]))


def test_outcomes_are_made_hashable():
    distribution = exact_distribution(lambda rng: [np.array([1, 2]), np.int64(3), (np.float32(0.5), "a"), None])
    assert distribution == {((1, 2), 3, (0.5, "a"), None): 1.0}


def test_the_distribution_of_a_generation_is_the_product_of_the_targets_rows():
    model = TableModel([[0.5, 0.5], [0.125, 0.875]])
    distribution = exact_distribution(lambda rng: AutoregressiveSampler(model).generate([0], 2, rng).tokens)
    for (a, b), wanted in {(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.0625, (1, 1): 0.4375}.items():
        assert abs(distribution[a, b] - wanted) < 1e-7  # the logits are float32


def test_it_agrees_with_real_draws():
    """10,000 real draws: P(|frequency - p| > 0.03) < 2 exp(-18) for each of the three outcomes (Hoeffding)."""

    def fn(rng):
        u = rng.random()
        return int(u * 3 < 1) + int(rng.choice(2, p=[0.25, 0.75])) * int(u < 0.5)

    distribution, rng = exact_distribution(fn), np.random.default_rng(0)
    frequencies = np.bincount([fn(rng) for _ in range(10_000)], minlength=3) / 10_000
    np.testing.assert_allclose(frequencies, [distribution[i] for i in range(3)], atol=0.03)


@pytest.mark.parametrize(
    "logits",
    [[1000.0, 999.0], [-1000.0, -999.0], [709.5, 709.5], [-744.0, -743.5], [-1e9, -1e9, 0.0, 1.0], [-np.inf, 0.0, 2.0]],
)
def test_a_race_is_exact_for_any_logits(logits):
    found = exact_distribution(lambda rng: int(np.argmax(logits + rng.gumbel(size=len(logits)))))
    expected = np.exp(np.array(logits) - max(logits)) / np.exp(np.array(logits) - max(logits)).sum()
    assert [found.get(i, 0) for i in range(len(logits))] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("draw", [lambda rng: rng.integers(0), lambda rng: rng.choice(0), lambda rng: rng.choice([])])
def test_a_draw_from_nothing_is_an_error_as_in_numpy(draw):
    with pytest.raises(ValueError, match="expected"):
        exact_distribution(draw)
    with pytest.raises(ValueError, match=r"low|high|positive|empty"):
        draw(np.random.default_rng(0))


def test_uniform_numbers_between_arrays_are_one_for_each_element():
    def both(rng):
        return tuple((rng.uniform(np.zeros(2), [1, 2]) < 0.5).tolist())

    quarters = {(True, True): 1 / 8, (True, False): 3 / 8, (False, True): 1 / 8, (False, False): 3 / 8}
    assert_distribution(both, quarters)
    assert_distribution(lambda rng: tuple((rng.uniform(0, np.array([1, 2]), size=2) < 0.5).tolist()), quarters)
    for draw in (lambda rng: rng.integers(0, [2, 3]), lambda rng: rng.binomial(1, [0.5, 0.5])):
        with pytest.raises(CannotEnumerate, match="only with numbers as parameters, not arrays: draw one by one"):
            exact_distribution(draw)


@pytest.mark.parametrize(
    ("p", "is_valid"),
    [
        (np.array([0.5, 0.5 + 1e-6], np.float32), True),
        (np.array([0.5, 0.501], np.float32), False),
        ([0.5, 0.5 + 1e-8], True),
        ([0.5, 0.5 + 5e-8], False),
        ([0.5, math.nan], False),
    ],
)
def test_choice_takes_the_probabilities_that_numpy_takes(p, is_valid):
    for draw in (
        lambda: np.random.default_rng(0).choice(2, p=p),
        lambda: exact_distribution(lambda rng: rng.choice(2, p=p)),
    ):
        if is_valid:
            draw()
        else:
            with pytest.raises(ValueError, match="robabilities"):
                draw()


def test_nothing_is_above_nan():
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        assert_distribution(lambda rng, compare=compare: bool(compare(rng.random(), math.nan)), {False: 1.0})
        assert_distribution(lambda rng, compare=compare: bool(compare(math.nan, rng.random())), {False: 1.0})


P = np.array([0.5, 0.3, 0.0, 0.2])


@pytest.mark.parametrize(
    "fn",
    [
        lambda rng: np.argmax(rng.gumbel(scale=2.0, size=3)),
        lambda rng: np.argmax(2 * rng.gumbel(size=3)),
        lambda rng: np.argmin(rng.exponential(size=2) + [0, 1]),
        lambda rng: np.argmin(np.log(-rng.exponential(size=2))),
        lambda rng: (lambda E: E < E)(rng.exponential()),
    ],
    ids=["scale", "times", "plus", "log", "itself"],
)
def test_numbers_of_a_race_that_decide_nothing_are_refused(fn):
    with pytest.raises(CannotEnumerate, match="an exponential or Gumbel number is used as a value, or twice"):
        exact_distribution(fn)


def test_the_largest_negative_waiting_time():
    with np.errstate(divide="ignore"):
        assert exact_distribution(lambda rng: int(np.argmax(-rng.exponential(size=4) / P))) == pytest.approx(
            {0: 0.5, 1: 0.3, 3: 0.2}
        )


def test_a_logarithm_is_below_any_large_number():
    assert exact_distribution(lambda rng: bool(np.log(rng.random()) < 1000)) == {True: 1.0}


@pytest.mark.parametrize("sizes", [(2, 1, 1), (2, 3, None)], ids=str)
def test_sizes_that_do_not_fit(sizes):
    """Refused as NumPy refuses them."""
    low, high, size = sizes

    def draw(rng):
        return rng.uniform(np.zeros(low), np.ones(high), size=size)

    with pytest.raises(ValueError):
        draw(np.random.default_rng(0))
    with pytest.raises(ValueError):
        exact_distribution(draw)


@pytest.mark.parametrize(
    "fn",
    [
        lambda rng: np.add(rng.random(), 1, dtype=int) < 2,
        lambda rng: rng.choice(3, size=2, replace=False),
        lambda rng: rng.choice([[1, 2], [3, 4]], axis=1),
        lambda rng: rng.multinomial(1, [0.5, 0.5], size=2),
        lambda rng: rng.multinomial(2, [0.5, 0.5]),
        lambda rng: rng.binomial(2, 0.5),
    ],
    ids=["keyword", "replace", "axis", "size", "two", "binomial"],
)
def test_draws_that_would_be_enumerated_wrongly_are_refused(fn):
    with pytest.raises(CannotEnumerate):
        exact_distribution(fn)


def test_each_draw_has_its_own_number_of_comparisons():
    """As where a token of GPT-2 is found by a loop over its cumulative sums, twice."""
    assert exact_distribution(
        lambda rng: [all(u < 2 for _ in range(40_000)) for _ in range(2) for u in [rng.random()]]
    ) == {(True, True): 1.0}


def test_numbers_drawn_at_once_have_their_own_number_of_comparisons():
    assert exact_distribution(lambda rng: [all(u < 2 for _ in range(40_000)) for u in rng.random(2)]) == {
        (True, True): 1.0
    }
