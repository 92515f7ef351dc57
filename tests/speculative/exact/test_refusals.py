"""What cannot be enumerated: each piece of code in refusals.txt is refused with its sentence."""

import copy
import math
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from refusals import answered

from speculative import CannotEnumerate, exact_distribution


def until_heads(rng):
    n = 0
    while rng.random() < 0.5:
        n += 1
    return n


def until_accepted(rng):
    while rng.random() * 2 >= rng.choice([0.5, 0.3, 0.2], p=[0.5, 0.3, 0.2]):
        pass


def always_in_vain(rng):
    while rng.choice(2, p=[1, 0]) == 0:
        pass


def rarely_ended(rng):
    while rng.random() < 0.999:
        pass


def around_one_number(rng):
    u = rng.random()
    while u < 2:
        pass


CAPTURED = np.random.default_rng(0)
MODULES = {"copy": copy, "math": math, "pickle": pickle, "random": random}


def drawn(code, names):
    """What an expression of rng is refused with; if NumPy refuses it as well, that."""
    draw = eval(f"lambda rng: {code}", names)
    try:
        return exact_distribution(draw)
    except CannotEnumerate as error:
        return str(error)
    except ValueError:
        with pytest.raises(ValueError):
            draw(np.random.default_rng(0))
        return "NumPy refuses it as well"


def test_what_cannot_be_enumerated_is_refused_with_one_sentence(golden):
    path = Path(__file__).with_name("refusals.txt")
    golden(path, answered(path, globals() | MODULES, drawn))


@pytest.mark.parametrize("draws", [[0.2, 0.3] * 99, [1, 0, 0, 0]])
def test_code_that_keeps_something_from_an_earlier_call_is_refused(draws):
    kept = iter(draws)
    with pytest.raises(CannotEnumerate, match="the function drew differently when it was run again on the same path"):
        exact_distribution(lambda rng: rng.random() < next(kept) and rng.random() < 0.5)


def test_thresholds_of_whole_numbers_are_refused_in_the_first_run():
    runs = []
    for code in (lambda rng: int(rng.random() * 1000), lambda rng: rng.integers(2000) < rng.integers(2000)):
        with pytest.raises(CannotEnumerate, match=r"a threshold such as int\(n \* p / q\) rounds p / q to a multiple"):
            exact_distribution(lambda rng, code=code: runs.append(1) or code(rng))
    assert len(runs) == 2


def test_too_many_paths_and_draws_are_refused():
    with pytest.raises(CannotEnumerate) as error:
        exact_distribution(lambda rng: [rng.random() < 0.5 for _ in range(10)], max_leaves=10)
    assert str(error.value) == (
        "more than max_leaves = 10 paths, and those so far cover 0.00977 of the probability: take a smaller case "
        "(fewer tokens, a smaller vocabulary, a smaller K) or raise max_leaves"
    )
    with pytest.raises(CannotEnumerate, match="7 draws so far"):
        exact_distribution(lambda rng: [rng.random() < 0.5 for _ in range(7)], max_draws=6)
