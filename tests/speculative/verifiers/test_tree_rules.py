"""The rules on trees are exact, whatever way siblings are drawn: over several rounds, by enumeration."""

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Gumbel,
    Sampling,
    SpeculativeSampler,
    block,
    exact_distribution,
    exact_match,
    rejection,
    traversal,
)
from speculative.rng import at_position
from speculative.testing import TableModel, check_verifier
from speculative.testing.cases import WAYS, Case, largest_difference
from speculative.theory.candidates import (
    P,
    Q,
    drawn_then_likeliest,
    likeliest,
    matched,
    with_replacement,
    without_replacement,
)
from speculative.tree import children, depths

TARGET, OTHER = TableModel.random(3, seed=1, n_ctx=12), TableModel.random(3, seed=2, n_ctx=12)
RULES = {rule.__name__: rule for rule in (rejection, exact_match, traversal)}
TWO_BY_TWO, UNEVEN, DEPTH_FIRST = [-1, -1, 0, 0, 1, 1], [-1, -1, 0], [-1, 0, 0, -1]


class Tree:
    """Drafts a tree of this shape with a model, its siblings drawn in one of the WAYS."""

    def __init__(self, model, parents, way):
        self.model, self.parents, self.way = model, parents, way

    def propose(self, tokens, K, rng):
        levels = depths(self.parents)
        drafted, rows, texts = {}, {}, {-1: list(tokens)}
        for node in range(-1, len(self.parents)):
            below = [child for child in children(self.parents, node) if levels[child] < K] if node in texts else []
            if not below:
                continue
            here = at_position(rng, len(texts[node]))
            q = Sampling()(self.model(texts[node]))[0]
            for child, (token, row) in zip(below, WAYS[self.way](q, len(below), here)):
                drafted[child], rows[child], texts[child] = int(token), row, [*texts[node], int(token)]
        kept = sorted(drafted)
        parents = [kept.index(self.parents[node]) if self.parents[node] >= 0 else -1 for node in kept]
        probs = np.reshape([rows[node] for node in kept], (len(kept), 3))
        return Draft(np.array([drafted[node] for node in kept], np.int64), probs, np.array(parents, np.int64))


def sampler_of(rule, way, parents, target=TARGET, draft=OTHER):
    return SpeculativeSampler(ByPaths(target), Tree(draft, parents, way), verifier=RULES[rule], K=2)


def by_rounds(sampler, prompt, n_tokens):
    """The distribution of n tokens, round by round: enumerated for each text that a round may start from."""
    distribution = {(): 1.0}
    while any(len(tokens) < n_tokens for tokens in distribution):
        longer = {}
        for text, reached in distribution.items():
            step = {(): 1.0}
            if n_tokens > len(text):
                rest = [*prompt, *text], n_tokens - len(text)
                step = exact_distribution(lambda rng, rest=rest: next(sampler.rounds(*rest, rng)).tokens)
            for tokens, share in step.items():
                longer[text + tokens] = longer.get(text + tokens, 0) + reached * share
        distribution = longer
    return distribution


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] if way.startswith("drawn") else []) for way in WAYS]
)
@pytest.mark.parametrize("rule", RULES)
def test_three_tokens_with_trees_of_two_by_two(rule, way):
    distribution = by_rounds(sampler_of(rule, way, TWO_BY_TWO), [0, 1], 3)
    assert largest_difference(distribution, TARGET.distribution([0, 1], 3)) < 1e-12


@pytest.mark.parametrize("parents", [UNEVEN, pytest.param(DEPTH_FIRST, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] if way.startswith("drawn") else []) for way in WAYS]
)
@pytest.mark.parametrize("rule", RULES)
def test_three_tokens_over_several_rounds_with_uneven_trees(rule, way, parents):
    sampler = sampler_of(rule, way, parents)
    distribution = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert largest_difference(distribution, TARGET.distribution([0, 1], 3)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", RULES)
def test_with_zeros_in_target_and_draft(rule, way):
    zeros = TableModel([[0.5, 0, 0.5], [0.25, 0.75, 0], [0, 0, 1]], n_ctx=12)
    for target, draft in ((zeros, OTHER), (TARGET, zeros), (zeros, zeros)):
        distribution = by_rounds(sampler_of(rule, way, UNEVEN, target, draft), [0, 1], 3)
        assert largest_difference(distribution, target.distribution([0, 1], 3)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_grader_passes_them(rule):
    check_verifier(RULES[rule], seed=1)


def accepted(rule, case):
    distribution = exact_distribution(lambda rng: case.run(rule, rng)[1])
    return sum(n * share for n, share in distribution.items())


CLOSED_FORMS = {
    ("rejection", "drawn independently"): with_replacement,
    ("rejection", "drawn without replacement"): without_replacement,
    ("rejection", "one drawn, then the likeliest"): drawn_then_likeliest,
    ("rejection", "the likeliest"): likeliest,
    ("exact_match", "drawn independently"): matched,
    ("exact_match", "the likeliest"): likeliest,
    ("traversal", "drawn independently"): with_replacement,
    ("traversal", "drawn without replacement"): without_replacement,
}


@pytest.mark.parametrize("method", CLOSED_FORMS, ids=", ".join)
def test_as_much_is_accepted_at_one_place_as_the_closed_form_says(method):
    rule, way = method
    case = Case(4, [-1, -1], "random", np.random.default_rng(0), way)
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = P, Q
    assert accepted(RULES[rule], case) == pytest.approx(CLOSED_FORMS[method](P, Q, 2), abs=1e-12)


# ------------------------------------------------------------------------------------------------ traversal


def test_traversal_on_a_chain_is_block_verification():
    """Verdict for verdict, from the same uniform numbers."""
    rng = np.random.default_rng(0)
    for trial in range(120):
        case = Case(4, int(rng.integers(0, 5)), ["random", "zeros in p", "equal", "one-hot q"][trial % 4], rng)
        seeds = [np.random.default_rng(trial) for _ in range(2)]
        assert case.run(block, seeds[0]) == case.run(traversal, seeds[1])
        assert seeds[0].random() == seeds[1].random()


def test_traversal_accepts_no_less_than_level_by_level():
    gains = []
    for seed in range(4):
        for way, parents in (("one drawn, then the likeliest", [-1, -1, 0, 0]), ("drawn independently", [-1, 0])):
            case = Case(3, parents, "random", np.random.default_rng(seed), way)
            gains.append(accepted(traversal, case) - accepted(rejection, case))
    assert min(gains) > -1e-12 and max(gains) > 1e-3


# ------------------------------------------------------------------------------------------------ common random numbers


@pytest.mark.parametrize("temperature", [1, 0.5, 0])
def test_one_seed_one_text_whatever_the_tree(temperature):
    sampling, texts, per_call = Sampling(temperature), set(), []
    for seed in range(12):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 10, Gumbel(seed)).tokens.tolist()
        texts.add(tuple(alone))
        for parents in (TWO_BY_TWO, UNEVEN, DEPTH_FIRST, [-1, -1, -1], [-1, -1, 1, 1, 2, 2]):
            drafter = Tree(OTHER, parents, "drawn without replacement")  # the k smallest of E / q
            sampler = SpeculativeSampler(ByPaths(TARGET), drafter, verifier=exact_match, K=3, sampling=sampling)
            generation = sampler.generate([0, 1], 10, Gumbel(seed))
            assert generation.tokens.tolist() == alone
            per_call.append(generation.stats.tokens_per_target_call)
    assert len(texts) > 8 if temperature else len(texts) == 1
    assert np.mean(per_call) > 1.5
