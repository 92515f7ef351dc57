"""The exact distribution of random code: one run for each path, and NumPy's draws."""

import math

import numpy as np
import pytest
from exactness import assert_distribution

from speculative import exact_distribution
from speculative.exact import ExactGenerator

N_AGAIN = 12  # by default the most probable path is run so often again

# ------------------------------------------------------------------------------------------------ paths


def test_one_run_for_each_path():
    runs = []

    def fn(rng):
        runs.append(1)
        return rng.random() < 0.5 and rng.random() < 0.5

    assert_distribution(fn, {True: 0.25, False: 0.75})
    assert len(runs) == 3 + N_AGAIN  # on the most probable path again, whether it does the same


def test_what_is_certain_does_not_fork():
    runs = []

    def fn(rng):
        runs.append(1)
        u = rng.random()
        return u < 1, u < 0, u < -3, u < 5, u * 0 < 1, rng.choice(3, p=[0, 1, 0]), u < math.nan

    assert_distribution(fn, {(True, False, False, True, True, 1, False): 1.0})
    assert len(runs) == 1 + N_AGAIN


def test_nan_is_one_outcome():
    assert str(exact_distribution(lambda rng: float("nan"))) == "{nan: 1.0}"
    assert str(exact_distribution(lambda rng: [np.float64("nan"), rng.random() < 0.25])) == (
        "{(nan, True): 0.25, (nan, False): 0.75}"
    )


def test_the_time_of_a_run_is_linear_in_its_draws(monkeypatch):
    """Counted, not measured: each draw on a path is answered once a run, and its probability multiplied once."""
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
        assert asked[0] == most * (most + 1) / 2 + most + N_AGAIN  # the n-th path has n draws


def test_outcomes_are_made_hashable():
    distribution = exact_distribution(lambda rng: [np.array([1, 2]), np.int64(3), (np.float32(0.5), "a"), None])
    assert distribution == {((1, 2), 3, (0.5, "a"), None): 1.0}


# ------------------------------------------------------------------------------------------------ NumPy's draws

TWO = {(True, True): 0.125, (True, False): 0.375, (False, True): 0.125, (False, False): 0.375}


@pytest.mark.parametrize(
    ("draw", "wanted"),
    [
        (lambda rng: rng.integers(4), dict.fromkeys(range(4), 0.25)),
        (lambda rng: rng.integers(1, 2, endpoint=True), {1: 0.5, 2: 0.5}),
        (lambda rng: rng.integers(2, size=2), {(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.25, (1, 1): 0.25}),
        (lambda rng: rng.integers(0, 2, None, np.int64), {0: 0.5, 1: 0.5}),
        (lambda rng: rng.integers(0, size=0), {(): 1.0}),
        (lambda rng: rng.choice(["a", "b"]), {"a": 0.5, "b": 0.5}),
        (lambda rng: int(rng.choice([1, 2], None, True, [0.25, 0.75], 0, False)), {1: 0.25, 2: 0.75}),
        (lambda rng: rng.binomial(1, 0.25), {0: 0.75, 1: 0.25}),
        (lambda rng: rng.multinomial(1, [0.25, 0.75]), {(1, 0): 0.25, (0, 1): 0.75}),
        (lambda rng: rng.random(2) < np.array([0.5, 0.25]), TWO),
        (lambda rng: rng.uniform(0, np.array([1, 2]), size=2) < 0.5, TWO),
        (lambda rng: rng.uniform(np.zeros(2), [1, 2]) < 0.5, TWO),
    ],
)
def test_arguments_are_those_of_numpy(draw, wanted):
    assert_distribution(draw, wanted)


@pytest.mark.parametrize("p", [np.array([0.5, 0.5 + 1e-6], np.float32), [0.5, 0.5 + 1e-8]])
def test_choice_takes_the_probabilities_that_numpy_takes(p):
    assert np.random.default_rng(0).choice(2, p=p) in (0, 1)
    assert exact_distribution(lambda rng: rng.choice(2, p=p)) == pytest.approx({0: 0.5, 1: 0.5}, abs=1e-6)


def test_long_runs_and_improbable_paths_that_end_are_not():
    assert_distribution(lambda rng: sum(bool(rng.random() < 1) for _ in range(499)), {499: 1.0})
    assert exact_distribution(lambda rng: [rng.random() < 1e-12 for _ in range(2)])[True, True] == 1e-24
    assert_distribution(
        lambda rng: [rng.random() < 1 for _ in range(9)] and [rng.choice(2, p=[1e-9, 1]) for _ in range(2)] and 1,
        {1: 1},
    )


@pytest.mark.parametrize("draw", [lambda rng: (rng.random() for _ in range(2)), lambda rng: rng.random(2)])
def test_each_number_may_be_compared_often(draw):
    """As where a token of GPT-2 is found by a loop over its cumulative sums, twice."""
    assert exact_distribution(lambda rng: [all(u < 2 for _ in range(31_000)) for u in draw(rng)]) == {(True, True): 1.0}


def test_a_generator_with_a_seed_is_no_other_source():
    """What it returns is always the same, such as the weights of a model that is made inside."""
    threshold = np.random.default_rng(1).random()
    found = exact_distribution(lambda rng: rng.random() < np.random.default_rng(1).random())
    assert found == {True: threshold, False: 1 - threshold}
