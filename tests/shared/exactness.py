"""The exact distribution of a sampler's text, by enumeration, against that of the target alone."""

import math
from functools import lru_cache

from speculative import AutoregressiveSampler, ByPaths, SpeculativeSampler, exact_distribution
from speculative.testing.cases import largest_difference


def assert_distribution(fn, wanted):
    """Raise AssertionError unless fn(rng) has this distribution, to 1e-15."""
    found = exact_distribution(fn)
    assert found.keys() == wanted.keys()
    assert abs(math.fsum(found.values()) - 1) < 1e-12
    for outcome, probability in wanted.items():
        assert abs(found[outcome] - probability) < 1e-15, (outcome, found[outcome], probability)


@lru_cache
def of_the_target(target, sampling, prompt, n_tokens):
    alone = AutoregressiveSampler(target, sampling=sampling)
    return exact_distribution(lambda rng: alone.generate(prompt, n_tokens, rng).tokens)


def error_of(sampler, n_tokens, prompt=(0, 1), *, make=None):
    """The largest error of the joint probability of n tokens, over all texts; the sampler runs all its rounds.

    `make() -> sampler` builds another one for each run, where drafter or target keep something from round to round.
    """
    found = exact_distribution(lambda rng: (make() if make else sampler).generate(prompt, n_tokens, rng).tokens)
    return largest_difference(found, of_the_target(sampler.target, sampler.sampling, prompt, n_tokens))


def error_by_rounds(sampler, n_tokens, prompt=(0, 1)):
    """The same for parts without a memory, in less time: one round is enumerated for each text before it."""
    found = {(): 1.0}
    while any(len(text) < n_tokens for text in found):
        longer = {}
        for text, reached in found.items():
            step = {(): 1.0}
            if n_left := n_tokens - len(text):
                step = exact_distribution(
                    lambda rng, a=(*prompt, *text), n=n_left: next(sampler.rounds(a, n, rng)).tokens
                )
            for tokens, share in step.items():
                longer[text + tokens] = longer.get(text + tokens, 0) + reached * share
        found = longer
    return largest_difference(found, of_the_target(sampler.target, sampler.sampling, prompt, n_tokens))


def accepted(verifier, target, drafter, K, prompt=(0, 1)):
    """The expected number of tokens that are accepted in a round."""
    sampler = SpeculativeSampler(ByPaths(target), drafter, verifier=verifier, K=K)
    found = exact_distribution(lambda rng: next(sampler.rounds(prompt, K + 1, rng)).n_accepted)
    return sum(n * share for n, share in found.items())
