"""EagleDrafter: chains and trees of a target's own block, and text by them; exactness: test_drafters.py."""

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2

from gpt2np import GPT2, HParams, load_eagle
from speculative import (
    AutoregressiveSampler,
    EagleDrafter,
    Grown,
    Sampling,
    Shape,
    SpeculativeSampler,
    exact_match,
    rejection,
    traversal,
)
from speculative.testing import TableModel

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
GREEDY = Sampling(temperature=0)
TREES = {"chain": {}, "grown": {"tree": Grown(5), "siblings": "top"}, "without": {"tree": Shape.widths(2, 2)}}
TREES["drawn"] = {"tree": Shape.best(6, [0.6, 0.3]), "siblings": "drawn"}


def drafter_of(**options):
    return EagleDrafter(random_gpt2(SHAPE), random_eagle(SHAPE), **options)


@pytest.mark.parametrize("kind", TREES)
def test_greedy_text_is_the_targets_own_and_so_are_its_rows(kind):
    rows = []

    class Watched(GPT2):
        def __call__(self, tokens, n_last=1, parents=()):
            rows.append((tokens, parents, super().__call__(tokens, n_last, parents)))
            return rows[-1][-1]

    alone = random_gpt2(SHAPE)
    target = Watched(alone.params, SHAPE)
    drafter = EagleDrafter(target, random_eagle(SHAPE), n_frequent=9, **TREES[kind])
    sampler = SpeculativeSampler(target, drafter, K=3, sampling=GREEDY)
    generation = sampler.generate([1, 2, 3], 36)
    wanted = AutoregressiveSampler(alone, sampling=GREEDY).generate([1, 2, 3], 36)
    np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    for tokens, parents, logits in rows:
        assert logits.tobytes() == alone(tokens, len(logits), parents).tobytes()
    again = sampler.generate([1, 2, 3], 36)  # a used block drafts what a fresh one drafts
    assert [r.drafted.tolist() for r in again.rounds] == [r.drafted.tolist() for r in generation.rounds]


def test_a_chain_has_the_rows_of_the_block_and_the_samplers_sampling():
    target, text, sampling = random_gpt2(SHAPE), [1, 2, 3], Sampling(0.7, top_k=5)
    sampler = SpeculativeSampler(target, EagleDrafter(target, random_eagle(SHAPE)), sampling=sampling)
    draft = sampler.drafter.propose(text, 4, np.random.default_rng(0))
    block = random_eagle(SHAPE).on(random_gpt2(SHAPE))
    logits = block.draft_logits([*text, *draft.tokens[:3].tolist()], 3, 4)
    np.testing.assert_array_equal(draft.probs, sampling(logits))
    own = EagleDrafter(target, random_eagle(SHAPE), sampling=GREEDY)
    sampler = SpeculativeSampler(target, own, sampling=sampling)
    assert (sampler.drafter.propose(text, 4, np.random.default_rng(0)).probs.max(axis=1) == 1).all()


def test_tokens_that_are_not_drafted_have_probability_0():
    kept = set(random_eagle(SHAPE).frequent[:3].tolist())
    for options in TREES.values():
        draft = drafter_of(n_frequent=3, **options).propose([1, 2, 3], 2, np.random.default_rng(0))
        assert set(draft.tokens.tolist()) <= kept and np.flatnonzero(draft.probs.any(axis=0)).tolist() <= sorted(kept)


def test_a_draft_ends_at_the_context_and_at_the_threshold():
    for n in (38, 39, 40):
        assert len(drafter_of().propose([1] * n, 5, np.random.default_rng(0)).tokens) == 41 - n
    assert len(drafter_of(threshold=1).propose([1, 2], 5, np.random.default_rng(0)).tokens) == 1
    assert len(drafter_of().propose([5], 3, np.random.default_rng(0)).tokens) == 3  # after a single token, too


def test_what_has_no_block_or_no_states_is_refused():
    with pytest.raises(ValueError, match=r"expected a block that drafts, such as gpt2np\.load_eagle returns, got GPT2"):
        EagleDrafter(random_gpt2(SHAPE), random_gpt2(SHAPE))
    with pytest.raises(ValueError, match="expected a GPT2, whose hidden states the block continues, got <spec"):
        EagleDrafter(TableModel.random(3), random_eagle(SHAPE))
    with pytest.raises(ValueError, match="expected siblings to be one of"):
        drafter_of(tree=Shape.widths(2), siblings="two")


@pytest.mark.parametrize(
    ("options", "sampling", "verifier", "least"),
    [({}, GREEDY, exact_match, 2.6), ({}, Sampling(), rejection, 2.3), (TREES["grown"], GREEDY, exact_match, 3.0)],
)
def test_the_bundled_block_pays(tiny_pair, options, sampling, verifier, least):
    """One held-out prompt: the target's own text, in fewer calls."""
    target, _, tokenizer = tiny_pair
    drafter = EagleDrafter(target, load_eagle("tiny-target"), **options)
    prompt = tokenizer.encode("Once upon a time there lived a king who lived in a great forest")
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=4, sampling=sampling)
    generation = sampler.generate(prompt, 100, 0)
    if sampling is GREEDY:
        wanted = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 100)
        np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert generation.stats.tokens_per_target_call > least


@pytest.mark.parametrize("siblings", ["without", "drawn"])
def test_trees_of_drawn_siblings_run_with_traversal(tiny_pair, siblings):
    target, block = tiny_pair[0], load_eagle("tiny-target")
    drafter = EagleDrafter(target, block, Shape.widths(2, 2, 1), n_frequent=1024, siblings=siblings)
    sampler = SpeculativeSampler(target, drafter, verifier=traversal, K=3)
    assert sampler.generate([1, 2, 3], 30, 0).stats.tokens_per_target_call > 1.5
