"""The loop: the target's greedy text, exactly n tokens, never past n_ctx, one seed one text, K as a function."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import TreeDrafter, random_gpt2

import speculative
from gpt2np import HParams
from speculative import AutoregressiveSampler, ByPaths, ModelDrafter, Sampling, Shape, SpeculativeSampler
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GREEDY = Sampling(temperature=0)


def chain_sampler(target=TARGET, draft=DRAFT, K=3, sampling=Sampling()):
    return SpeculativeSampler(target, ModelDrafter(draft, sampling=sampling), K=K, sampling=sampling)


def tree_sampler(target=TARGET, draft=DRAFT, K=3, sampling=Sampling()):
    return SpeculativeSampler(
        ByPaths(target), TreeDrafter(draft, [-1, -1, 0, 0, 1, 2], "without"), K=K, sampling=sampling
    )


SAMPLERS = [chain_sampler, tree_sampler, lambda target=TARGET, K=0, **how: AutoregressiveSampler(target, **how)]
every_sampler = pytest.mark.parametrize("make", SAMPLERS, ids=["chain", "tree", "alone"])


# ------------------------------------------------------------------------------------------------ greedy


@pytest.fixture(scope="module")
def greedy_texts(tiny_pair):
    """Three prompts and the target's own 40 tokens after each."""
    target, _, tokenizer = tiny_pair
    texts = ("Once upon a time", '"Who are you?" said the', "<|endoftext|>")
    alone = AutoregressiveSampler(target, sampling=GREEDY)
    return [alone.generate(tokenizer.encode(text, special=True), 40) for text in texts]


@pytest.mark.parametrize("K", [1, 4, *(pytest.param(K, marks=pytest.mark.slow) for K in (2, 3, 5, 6, 7, 8))])
def test_greedy_tokens_equal_those_of_the_target_alone(tiny_pair, greedy_texts, K):
    sampler = chain_sampler(*tiny_pair[:2], K, GREEDY)
    for alone in greedy_texts:
        np.testing.assert_array_equal(sampler.generate(alone.prompt, 40).tokens, alone.tokens)


def test_greedy_tokens_through_trees_are_the_same_in_fewer_calls(tiny_pair, greedy_texts):
    target, draft, _ = tiny_pair
    calls = []
    for shape in (Shape.widths(1, 1, 1), Shape.widths(2, 2, 1)):
        drafter = speculative.TreeDrafter(draft, shape, sampling=GREEDY)
        generation = SpeculativeSampler(target, drafter, K=3, sampling=GREEDY).generate(greedy_texts[0].prompt, 40)
        np.testing.assert_array_equal(generation.tokens, greedy_texts[0].tokens)
        calls.append(len(generation.rounds))
    assert calls[1] < 0.9 * calls[0]


@pytest.mark.parametrize("make", [chain_sampler, tree_sampler])
@pytest.mark.parametrize("K", [1, 4])
def test_greedy_tokens_equal_whatever_the_draft(make, K):
    shape = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=2)
    target, other = random_gpt2(shape, seed=1), random_gpt2(shape, seed=2)
    expected = AutoregressiveSampler(target, sampling=GREEDY).generate([1, 2, 3], 50).tokens
    for draft in (other, target):  # one model may be both
        np.testing.assert_array_equal(make(target, draft, K, GREEDY).generate([1, 2, 3], 50).tokens, expected)


# ------------------------------------------------------------------------------------------------ how many tokens


@every_sampler
def test_exactly_n_tokens(make):
    for n_tokens, K, sampling in itertools.product(range(8), (1, 2, 7), (Sampling(), GREEDY)):
        generation = make(K=K, sampling=sampling).generate([1], n_tokens, 0)
        assert generation.tokens.shape == (n_tokens,) and generation.tokens.dtype == np.int64


@every_sampler
def test_the_number_of_tokens_may_be_of_a_small_type(make):
    assert len(make(TableModel.random(3, n_ctx=300)).generate([0] * 9, np.uint8(250), 0).tokens) == 250


@pytest.mark.parametrize("make", [chain_sampler, tree_sampler])
def test_never_past_n_ctx(make):
    """Up to the last position of the context and no further, for both models; a tree is cut there."""
    longest = []

    class Watched(TableModel):
        def __call__(self, tokens, n_last=1):
            longest.append(len(tokens))
            return super().__call__(tokens, n_last)

    target, draft = Watched(TARGET.probs, n_ctx=20), Watched(DRAFT.probs, n_ctx=20)
    for n_prompt, K in itertools.product((1, 5, 19), (1, 4, 30)):
        assert len(make(target, draft, K).generate([0] * n_prompt, 20 - n_prompt, 0).tokens) == 20 - n_prompt
    assert max(longest) < 20


def test_a_tree_is_cut_where_the_context_has_no_room():
    sampler = SpeculativeSampler(ByPaths(TableModel.random(3, n_ctx=8)), TreeDrafter(DRAFT, [-1] * 9, "iid"), K=3)
    generation = sampler.generate([0] * 5, 3, 0)
    assert len(generation.rounds[0].drafted) == 3 and len(generation.tokens) == 3


def test_the_target_as_its_own_draft_is_always_accepted():
    generation = chain_sampler(TARGET, TARGET, K=4).generate([0], 50, 3)
    assert generation.stats.accepted == generation.stats.drafted == 40
    assert generation.stats.target_calls == 10 and generation.stats.tokens_per_target_call == 5
    assert generation.rounds[0].origins == ["accepted"] * 4 + ["bonus"]


def test_a_draft_that_is_never_right_costs_nothing_but_time():
    wrong, right = TableModel([[0, 1], [0, 1]]), TableModel([[1, 0], [1, 0]])
    generation = chain_sampler(right, wrong, K=4).generate([0], 20, 0)
    assert generation.tokens.tolist() == [0] * 20 and generation.stats.accepted == 0
    assert [r.origins for r in generation.rounds] == [["correction"]] * 19 + [["plain"]]


# ------------------------------------------------------------------------------------------------ seeds and steps


@every_sampler
def test_one_seed_one_text(make):
    """A generator continues from call to call."""
    sampler, rng = make(), np.random.default_rng(5)
    texts = [sampler.generate([0], 30, seed).tokens.tolist() for seed in (5, 5, 6, rng, rng)]
    assert texts[0] == texts[1] == texts[3] != texts[2] and texts[4] != texts[3]


@every_sampler
def test_rounds_can_be_stepped_through(make):
    rounds = make().rounds([0, 1], 20, 4)
    steps = [next(rounds), *rounds]
    whole = make().generate([0, 1], 20, 4, keep_probs=True)
    np.testing.assert_array_equal(np.concatenate([r.tokens for r in steps]), whole.tokens)
    for step, r in zip(steps, whole.rounds, strict=True):
        np.testing.assert_array_equal(step.target_probs, r.target_probs)
        np.testing.assert_array_equal(step.draft_probs, r.draft_probs)


@every_sampler
def test_arguments_are_not_written_to(make):
    prompt, tokens = np.array([0, 1, 2]), [0, 1, 2]
    prompt.setflags(write=False)
    np.testing.assert_array_equal(make().generate(prompt, 9, 1).tokens, make().generate(tokens, 9, 1).tokens)
    assert tokens == [0, 1, 2]


@pytest.mark.slow
def test_with_real_random_numbers_the_text_has_the_distribution_of_the_target():
    """verifiers/test_exact_rules.py has the exact distribution, by enumeration.

    Of n samples over m outcomes, P(sum |frequency - probability| >= e) <= 2^m exp(-n e^2 / 2), which is below 1e-13 for
    n = 6000, m = 27 and e = 0.128 (Weissman et al. 2003, theorem 2.1). The seed is fixed; a bias of the size of e is
    what this can see.
    """
    n, epsilon, sampling = 6_000, 0.128, Sampling(0.7)
    assert 2**27 * math.exp(-n * epsilon**2 / 2) < 1e-13
    distribution = TARGET.distribution([0, 1], 3, sampling)
    sampler, rng = chain_sampler(sampling=sampling), np.random.default_rng(3)
    counts = dict.fromkeys(distribution, 0)
    for _ in range(n):
        counts[tuple(sampler.generate([0, 1], 3, rng).tokens.tolist())] += 1
    assert sum(abs(counts[tokens] / n - distribution[tokens]) for tokens in distribution) < epsilon


# ------------------------------------------------------------------------------------------------ K as a function


@pytest.mark.parametrize("make", [chain_sampler, tree_sampler])
def test_a_function_for_K_gets_depths_and_accepted_numbers(make):
    """Of all rounds so far, whatever it does to the list."""
    histories = []

    def policy(history):
        histories.append(list(history))
        history.clear()
        return 2

    rounds = make(K=policy).generate([0], 20, 3).rounds
    assert histories == [[(r.draft.depth, r.n_accepted) for r in rounds[:i]] for i in range(len(rounds))]


# ------------------------------------------------------------------------------------------------ inherited


@pytest.mark.parametrize("own", [None, Sampling(0.3)])
def test_a_drafter_without_a_sampling_draws_as_the_sampler_does(own):
    """Each sampler fills in its own, in a copy: one drafter serves samplers with different samplings."""
    drafter = ModelDrafter(DRAFT, sampling=own)
    for sampling in (Sampling(), Sampling(0.5), GREEDY):
        sampler = SpeculativeSampler(TARGET, drafter, K=1, sampling=sampling)
        [step, *_] = sampler.rounds([0, 1], 2, 0)
        np.testing.assert_array_equal(step.draft_probs, (own or sampling)(DRAFT([0, 1])))
    assert drafter.sampling is own


def test_a_drafter_may_be_frozen():
    @dataclass(frozen=True)
    class Frozen:
        sampling: object = None

        def propose(self, tokens, K, rng):
            return ModelDrafter(DRAFT, sampling=self.sampling).propose(tokens, K, rng)

    assert SpeculativeSampler(TARGET, Frozen(), sampling=GREEDY).drafter.sampling == GREEDY
