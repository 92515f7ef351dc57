"""The grader's case of a sampling that looks back: every wrong bookkeeping is caught and named."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from students import told

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, exact_distribution
from speculative.testing.cases import largest_difference
from speculative.testing.mistakes.samplers import LOOKING_BACK, ROW_I, Loop, loop
from speculative.testing.sampler_diagnosis import LOOKING_BACK as KNOWN
from speculative.testing.sampler_parts import AllTokens, Made, models
from speculative.testing.samplers import check_distribution


def made_of(make, seed=0):
    rng = np.random.default_rng(seed)
    target, other = models(rng)
    sampling = Sampling(processors=[AllTokens(rng)])
    return Made(make, target, ModelDrafter(other, sampling=Sampling()), 2, sampling, "a sampling that looks back")


def check(make, seed=0):
    check_distribution(made_of(make, seed), (3,), KNOWN)


def test_each_mistake_has_a_distribution_of_its_own():
    """So each is caught, and the hint is that of the mistake."""
    made = made_of(Loop)
    found = [made.target.table.distribution([2, 1], 3, made.sampling)]
    wrong = [replace(made, make=mistake.variants[0]) for mistake in LOOKING_BACK]
    found += [exact_distribution(partial(one.text, 3)) for one in wrong]
    for one, another in itertools.combinations(found, 2):
        assert largest_difference(one, another) > 1e-3


SLOW = [pytest.param(*one, marks=pytest.mark.slow) for one in list(itertools.product(LOOKING_BACK, range(4)))[1:]]


@pytest.mark.parametrize(("mistake", "seed"), [(LOOKING_BACK[0], 0), *SLOW])
def test_each_mistake_is_named(mistake, seed):
    assert told(lambda make: check(make, seed), mistake.variants[0]) == mistake.hint


def test_right_ones_pass():
    check(Loop)
    check(lambda target, drafter, K, sampling: AutoregressiveSampler(target, sampling=sampling))


def test_other_mistakes_are_told_apart_from_these():
    said = told(check, loop(seen=staticmethod(lambda rounds, i: [*rounds[-1][0], *rounds[-1][1][:i]][::-1])))
    assert said == "your sampler goes wrong with a sampling that looks back, as penalties and grammars do" + ROW_I
