"""The single-draft rules: exact if they say so, as good as theory says, and biased if they say LOSSY."""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest

import speculative
from speculative import (
    AutoregressiveSampler,
    Draft,
    Lenient,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    Typical,
    Verdict,
    block,
    exact_distribution,
    exact_match,
    rejection,
)
from speculative.testing import TableModel, check_verifier
from speculative.testing.cases import Case

EXACT = {"rejection": rejection, "exact_match": exact_match, "block": block, "Lenient(1)": Lenient(1)}
TARGET, OTHER = TableModel.random(3, seed=1, n_ctx=12), TableModel.random(3, seed=2, n_ctx=12)
ZEROS = TableModel([[0.5, 0, 0.5], [0.25, 0.75, 0], [0, 0, 1]], n_ctx=12)
LOW, HIGH = TableModel([[1, 0, 0]] * 3, n_ctx=12), TableModel([[0, 0.5, 0.5]] * 3, n_ctx=12)


class TopK:
    """Drafts with the two likeliest tokens of a model, and returns that distribution."""

    def __init__(self, model):
        def truncated(tokens):
            logits = model(tokens).copy()
            logits[logits < np.sort(logits)[:, -2:-1]] = -np.inf
            return logits

        self.drafter = ModelDrafter(truncated)
        truncated.n_vocab, truncated.n_ctx = model.n_vocab, model.n_ctx

    def propose(self, tokens, K, rng):
        return self.drafter.propose(tokens, K, rng)


class Short:
    """One draft token of a model after an odd token, none after an even one, whatever K is."""

    def propose(self, tokens, K, rng):
        return ModelDrafter(OTHER).propose(tokens, min(K, tokens[-1] % 2), rng)


PAIRS = {  # target, drafter
    "another model": (TARGET, ModelDrafter(OTHER)),
    "another temperature": (TARGET, ModelDrafter(OTHER, sampling=Sampling(2.0))),
    "top-k": (TARGET, TopK(OTHER)),
    "one-hot": (TARGET, ModelDrafter(OTHER, sampling=Sampling(0))),
    "shorter than K": (TARGET, Short()),
    "q equals p": (TARGET, ModelDrafter(TARGET)),
    "zeros in p": (ZEROS, ModelDrafter(OTHER)),
    "zeros in q": (TARGET, ModelDrafter(ZEROS)),
    "disjoint": (HIGH, ModelDrafter(LOW)),
}


def distribution_of(sampler, n_tokens):
    return exact_distribution(lambda rng: sampler.generate([0, 1], n_tokens, rng).tokens)


@lru_cache
def distribution_of_target(target, sampling, n_tokens):
    return distribution_of(AutoregressiveSampler(target, sampling=sampling), n_tokens)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("verifier", "K"), [*itertools.product(["rejection", "block"], [1, 2, 3]), ("exact_match", 2), ("Lenient(1)", 2)]
)
def test_the_joint_distribution_is_that_of_the_target(verifier, pair, K):
    target, drafter = PAIRS[pair]
    for sampling, n_tokens in ((Sampling(), 3), (Sampling(0.7), 2), (Sampling(0), 4)):
        sampler = SpeculativeSampler(target, drafter, verifier=EXACT[verifier], K=K, sampling=sampling)
        distribution, wanted = distribution_of(sampler, n_tokens), distribution_of_target(target, sampling, n_tokens)
        assert abs(math.fsum(distribution.values()) - 1) < 1e-12
        for tokens in distribution.keys() | wanted.keys():
            assert abs(distribution.get(tokens, 0) - wanted.get(tokens, 0)) < 1e-12


def test_a_longer_text_over_several_rounds():
    sampler = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=block, K=2)
    distribution, wanted = distribution_of(sampler, 4), distribution_of(AutoregressiveSampler(TARGET), 4)
    assert len(wanted) == 3**4 and max(abs(distribution[tokens] - wanted[tokens]) for tokens in wanted) < 1e-12


@pytest.mark.parametrize("name", EXACT)
def test_every_exact_verifier_passes_its_grader(name):
    for seed in range(3):
        check_verifier(EXACT[name], seed=seed)


def test_every_exported_verifier_says_what_it_is():
    """What has an `exactness` is a verifier; one that is exact passes the grader, one that is LOSSY does not."""
    found = {name: thing for name in speculative.__all__ if hasattr(thing := getattr(speculative, name), "exactness")}
    assert found.keys() == {"rejection", "exact_match", "block", "traversal", "Lenient", "Typical"}
    for thing in found.values():
        verifier = thing() if isinstance(thing, type) else thing
        if verifier.exactness == "exact":
            check_verifier(verifier)
        else:
            assert verifier.exactness == "LOSSY" and "LOSSY" in repr(verifier) and "LOSSY" in thing.__doc__
            with pytest.raises(AssertionError):
                check_verifier(verifier)


# ------------------------------------------------------------------------------------------------ how much is accepted


def expected_accepted(verifier, case):
    distribution = exact_distribution(lambda rng: case.run(verifier, rng)[1])
    return sum(n * probability for n, probability in distribution.items())


@pytest.mark.parametrize("seed", range(20))
def test_expected_acceptance_and_its_order(seed):
    """Rejection: the overlaps, summed over prefixes. Block: never less. Sample and match: never more."""
    rng = np.random.default_rng(seed)
    for K in (1, 2, 3):
        case = Case(3, K, "random", rng)
        overlaps = 0.0
        for length in range(1, K + 1):
            for tokens in itertools.product(range(3), repeat=length):
                overlaps += math.prod(min(case.p[tokens[:i]][x], case.q[tokens[:i]][x]) for i, x in enumerate(tokens))
        by_rejection, by_block = expected_accepted(rejection, case), expected_accepted(block, case)
        assert abs(by_rejection - overlaps) < 1e-12
        assert expected_accepted(exact_match, case) <= by_rejection + 1e-12
        assert by_block > by_rejection + 1e-6 if K > 1 and seed < 3 else by_block >= by_rejection - 1e-12
        if K == 1:
            assert abs(by_block - by_rejection) < 1e-12


def test_the_example_of_the_block_verification_paper():
    """p = (1/3, 2/3), q = (2/3, 1/3), K = 2: 10/9 by rejection, 11/9 by block (arXiv:2403.10444, section 2)."""
    case = Case(2, 2, "random", np.random.default_rng(0))
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = np.array([1, 2]) / 3, np.array([2, 1]) / 3
    assert abs(expected_accepted(rejection, case) - 10 / 9) < 1e-12
    assert abs(expected_accepted(block, case) - 11 / 9) < 1e-12


# ------------------------------------------------------------------------------------------------ the lossy ones


def test_lenience_bounds_every_probability():
    for seed, l in itertools.product(range(10), (0.9, 0.5, 0.1)):  # noqa: E741
        case = Case(4, 1, "random", np.random.default_rng(seed))

        def first(rng, case=case, l=l):  # noqa: E741
            guesses, n_accepted, next_token = case.run(Lenient(l), rng)
            return guesses[0] if n_accepted else next_token

        distribution, p, q = exact_distribution(first), case.p[()], case.q[()]
        assert all(distribution.get(token, 0) <= p[token] / l + 1e-12 for token in range(4))
        assert abs(expected_accepted(Lenient(l), case) - np.minimum(p / l, q).sum()) < 1e-12


@pytest.mark.parametrize("l", [0, -1, 1.1, math.nan])
def test_lenience_outside_its_range_is_refused(l):  # noqa: E741
    with pytest.raises(ValueError, match="expected a lenience l above 0 and at most 1"):
        Lenient(l)


def test_typical_acceptance_by_hand():
    p = np.array([[0.9, 0.06, 0.04], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    draft = Draft(np.array([1, 2]), np.full((2, 3), 1 / 3))  # 0.06 < min(0.09, 0.3 exp(-0.39)): not typical
    assert Typical()(draft, p, None) == Verdict(0, 0)
    draft = Draft(np.array([0, 2]), np.full((2, 3), 1 / 3))  # 0.9 and 0.3 > min(0.09, 0.3 exp(-1.09))
    assert Typical()(draft, p, None) == Verdict(2, 2)
    assert Typical(epsilon=0.5, delta=2)(draft, p, None) == Verdict(1, 0)


@pytest.mark.parametrize("verifier", [Lenient(0.3), Typical()])
def test_the_lossy_ones_are_greedy_at_temperature_zero(verifier):
    greedy = Sampling(0)
    for K in (1, 3):
        sampler = SpeculativeSampler(
            TARGET, ModelDrafter(OTHER, sampling=greedy), verifier=verifier, K=K, sampling=greedy
        )
        assert distribution_of(sampler, 6) == distribution_of(AutoregressiveSampler(TARGET, sampling=greedy), 6)


def test_lenience_draws_the_correction_from_what_the_lowered_draft_lacks():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.25, 0.25])
    distribution = exact_distribution(lambda rng: Lenient(0.5)(Draft(np.array([0]), q[None]), np.array([p, p]), rng))
    assert (
        abs(sum(share for verdict, share in distribution.items() if verdict.n_accepted) - 0.8) < 1e-12
    )  # 0.2 / (0.5 * 0.5)
    for token, lacking in ((1, 0.3 - 0.125), (2, 0.5 - 0.125)):
        assert abs(distribution[Verdict(0, token)] - 0.2 * lacking / 0.55) < 1e-12


def test_typical_acceptance_asks_for_less_where_the_target_is_unsure():
    """Of 20 equally likely tokens each passes: 1/20 > 0.3 exp(-log 20), though 1/20 < epsilon."""
    p = np.full((2, 20), 1 / 20)
    assert Typical()(Draft(np.array([7]), p[:1]), p, None).n_accepted == 1
    assert Typical(delta=2)(Draft(np.array([7]), p[:1]), p, None).n_accepted == 0
