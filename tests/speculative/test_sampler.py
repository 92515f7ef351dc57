"""The loop: the target's greedy text, exactly n tokens, never past n_ctx, K as a function."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import TreeDrafter

import speculative
from speculative import AutoregressiveSampler, ByPaths, ModelDrafter, Sampling, Shape, SpeculativeSampler
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GREEDY = Sampling(temperature=0)


def chain_sampler(target=TARGET, draft=DRAFT, K=3, sampling=Sampling()):
    return SpeculativeSampler(target, ModelDrafter(draft, sampling=sampling), K=K, sampling=sampling)


def tree_sampler(target=TARGET, draft=DRAFT, K=3, sampling=Sampling()):
    drafter = TreeDrafter(draft, [-1, -1, 0, 0, 1, 2], "without")
    return SpeculativeSampler(ByPaths(target), drafter, K=K, sampling=sampling)


SAMPLERS = [chain_sampler, tree_sampler, lambda target=TARGET, K=0, **how: AutoregressiveSampler(target, **how)]
every_sampler = pytest.mark.parametrize("make", SAMPLERS, ids=["chain", "tree", "alone"])
chain_or_tree = pytest.mark.parametrize("make", [chain_sampler, tree_sampler])


# ------------------------------------------------------------------------------------------------ greedy


def test_greedy_tokens_equal_those_of_the_target_alone(tiny_pair):
    """Through chains and trees, which need fewer calls; with one model as both, every draft token is accepted."""
    target, draft, tokenizer = tiny_pair
    alone, n_calls = AutoregressiveSampler(target, sampling=GREEDY), np.zeros(4)
    drafters = [speculative.TreeDrafter(draft, Shape.widths(*widths)) for widths in ((1, 1, 1), (2, 2, 1))]
    samplers = [SpeculativeSampler(target, drafter, sampling=GREEDY) for drafter in drafters]
    samplers += [chain_sampler(target, model, 4, GREEDY) for model in (draft, target)]
    for prompt in ("Once upon a time", '"Who are you?" said the', "<|endoftext|>"):
        expected = alone.generate(tokenizer.encode(prompt, special=True), 30)
        for i, sampler in enumerate(samplers):
            generation = sampler.generate(expected.prompt, 30)
            np.testing.assert_array_equal(generation.tokens, expected.tokens)
            n_calls[i] += len(generation.rounds)
    assert n_calls[1] < 0.9 * n_calls[0] and n_calls[3] == 3 * 30 / 5


# ------------------------------------------------------------------------------------------------ how many tokens


@every_sampler
def test_exactly_n_tokens(make):
    """Also where their number is of a small type."""
    for n_tokens, K, sampling in itertools.product(range(8), (1, 2, 7), (Sampling(), GREEDY)):
        generation = make(K=K, sampling=sampling).generate([1], n_tokens, 0)
        assert generation.tokens.shape == (n_tokens,) and generation.tokens.dtype == np.int64
    assert len(make(TableModel.random(3, n_ctx=300)).generate([0] * 9, np.uint8(250), 0).tokens) == 250


@chain_or_tree
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
    wide = SpeculativeSampler(ByPaths(target), TreeDrafter(DRAFT, [-1] * 9, "iid"))
    assert len(wide.generate([0] * 17, 3, 0).rounds[0].drafted) == 3


# ------------------------------------------------------------------------------------------------ steps


@every_sampler
def test_rounds_can_be_stepped_through_and_arguments_are_not_written_to(make):
    prompt, listed = np.array([0, 1]), [0, 1]
    prompt.setflags(write=False)
    rounds = make().rounds(prompt, 20, 4)
    stepped, whole = [next(rounds), *rounds], make().generate(listed, 20, 4, keep_probs=True)
    np.testing.assert_array_equal(np.concatenate([r.tokens for r in stepped]), whole.tokens)
    for r, expected in zip(stepped, whole.rounds, strict=True):
        np.testing.assert_array_equal(r.target_probs, expected.target_probs)
        np.testing.assert_array_equal(r.draft_probs, expected.draft_probs)
    assert listed == [0, 1]


# ------------------------------------------------------------------------------------------------ K and sampling


@chain_or_tree
def test_a_function_for_K_gets_depths_and_accepted_numbers(make):
    """Of all rounds so far; a length of 0 is a plain step."""
    histories = []

    def policy(history):
        histories.append(history)
        return (0, 2, 0, 1)[len(history) % 4]

    rounds = make(K=policy).generate([0], 20, 3).rounds
    assert histories == [[(r.draft.depth, r.n_accepted) for r in rounds[:i]] for i in range(len(rounds))]
    assert [r.draft.depth for r in rounds[:-1]] == [(0, 2, 0, 1)[i % 4] for i in range(len(rounds) - 1)]
    assert all((r.origins == ["plain"]) == (r.draft.depth == 0) for r in rounds)


def test_a_drafter_without_a_sampling_draws_as_the_sampler_does():
    """Each sampler fills in its own, in a copy: one drafter, which may be frozen, serves different samplings."""

    @dataclass(frozen=True)
    class Frozen:
        sampling: object = None

        def propose(self, tokens, K, rng):
            return ModelDrafter(DRAFT, sampling=self.sampling).propose(tokens, K, rng)

    for drafter, sampling in itertools.product((ModelDrafter(DRAFT), Frozen()), (Sampling(), Sampling(0.5))):
        [r, *_] = SpeculativeSampler(TARGET, drafter, K=1, sampling=sampling).rounds([0, 1], 2, 0)
        np.testing.assert_array_equal(r.draft_probs, sampling(DRAFT([0, 1])))
        assert drafter.sampling is None
