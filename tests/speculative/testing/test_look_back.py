"""The grader's case of a sampling that looks back: every wrong bookkeeping is caught and named."""

import itertools
import math

import numpy as np
import pytest

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, exact_distribution
from speculative.museum import DRAFT, PROMPT, TARGET
from speculative.testing.cases import largest_difference
from speculative.testing.look_back import HINTS, RIGHT, AllTokens, LooksBack
from speculative.testing.samplers import check_looking_back, models


def check(make, seed=0):
    rng = np.random.default_rng(seed)
    target, other = models(rng)
    check_looking_back(make, target, other, rng)


def with_mistake(seen):
    return type("Wrong", (LooksBack,), {"seen": staticmethod(seen)})


def test_each_mistake_has_a_distribution_of_its_own():
    """So each is caught, and the hint is that of the mistake."""
    rng = np.random.default_rng(0)
    target, other = (model.table for model in models(rng))
    sampling, drafter = Sampling(processors=[AllTokens(rng)]), ModelDrafter(other, sampling=Sampling())
    found = [target.distribution([2, 1], 3, sampling)]
    for seen in HINTS:
        sampler = with_mistake(seen)(target, drafter, K=2, sampling=sampling)
        found.append(exact_distribution(lambda rng, sampler=sampler: sampler.generate([2, 1], 3, rng)))
    for one, another in itertools.combinations(found, 2):
        assert largest_difference(one, another) > 1e-3


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in range(4)])
@pytest.mark.parametrize("seen", HINTS, ids=lambda seen: seen.__name__)
def test_each_mistake_is_named(seen, seed):
    with pytest.raises(AssertionError) as error:
        check(with_mistake(seen), seed)
    assert str(error.value).splitlines()[0] == HINTS[seen] + RIGHT


def test_right_ones_pass():
    check(LooksBack)
    check(lambda target, drafter, K, sampling: AutoregressiveSampler(target, sampling=sampling))


@pytest.mark.slow
def test_other_mistakes_are_told_apart_from_these():
    """Two mistakes at once."""

    def reversed_text(rounds, i):
        return [*rounds[-1][0], *rounds[-1][1][:i]][::-1]

    with pytest.raises(AssertionError, match="your sampler goes wrong with a sampling that looks back"):
        check(with_mistake(reversed_text))


def test_a_sampler_that_passes_no_tokens_is_told():
    class NoTokens(LooksBack):
        def row(self, logits, text):
            return self.sampling(logits)

    with pytest.raises(
        AssertionError, match=r"looks at the tokens before each row: pass them, sampling\(logits, tokens"
    ):
        check(NoTokens)


@pytest.mark.parametrize(("sampling", "wanted"), [(Sampling(repetition_penalty=1.7), 0.237)])
def test_the_distance_of_an_ignored_penalty(sampling, wanted):
    """The total variation of four tokens, by a prototype."""

    class Ignored(LooksBack):
        def row(self, logits, text):
            return Sampling()(logits)

    sampler = Ignored(TARGET, ModelDrafter(DRAFT, sampling=Sampling()), K=2, sampling=sampling)
    found = exact_distribution(lambda rng: sampler.generate(PROMPT, 4, rng))
    right = TARGET.distribution(PROMPT, 4, sampling)
    assert math.fsum(abs(found.get(text, 0) - right[text]) for text in right) / 2 == pytest.approx(wanted, abs=5e-4)
