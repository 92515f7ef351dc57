"""Drafting several tokens in one pass. The tests of every drafter: test_drafters.py; of the block: gpt2np/drafting."""

import numpy as np
import pytest
from helpers import random_gpt2, random_parallel

import gpt2np
from gpt2np import HParams, load_parallel
from speculative import (
    AutoregressiveSampler,
    Grown,
    ParallelDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    exact_match,
    rejection,
    traversal,
)

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
GREEDY, SEED = Sampling(temperature=0), np.random.default_rng
TREES = {"grown": {"tree": Grown(8), "siblings": "top"}, "drawn": {"tree": Shape.widths(2, 2, 1), "siblings": "drawn"}}


def parallel(**options):
    return ParallelDrafter(random_gpt2(SHAPE), random_parallel(SHAPE, n_slots=5), **options)


def test_a_row_has_the_term_of_the_token_drawn_before():
    text, sampling = [1, 2, 3], Sampling(0.7, top_k=5)
    draft = parallel(sampling=sampling).propose(text, 4, SEED(0))
    alone = random_parallel(SHAPE, n_slots=5).on(random_gpt2(SHAPE))
    logits = alone.draft_logits([*text, *draft.tokens[:3].tolist()], 3, 4)
    np.testing.assert_array_equal(draft.probs, sampling(logits))


@pytest.mark.parametrize("options", [{}, *TREES.values()])
def test_a_draft_is_one_pass(options, monkeypatch):
    """For the second one the target's states are there, and the pass has only new tokens and slots."""
    drafter, passes, layer = parallel(**options), [], gpt2np.drafting.eagle.block
    monkeypatch.setattr(gpt2np.drafting.eagle, "block", lambda x, *rest: passes.append(len(x)) or layer(x, *rest))
    drafter.propose([1, 2, 3], 3, SEED(0))
    drafter.propose([1, 2, 3, 4, 5], 3, SEED(0))
    assert passes == [3 + 2, 2 + 2]


def test_a_draft_ends_with_the_slots_and_with_the_context():
    assert len(parallel().propose([1, 2], 9, SEED(0)).tokens) == 5
    assert parallel(**TREES["drawn"]).propose([1, 2], 9, SEED(0)).depth == 3
    for n in (36, 38, 40):
        assert len(parallel().propose([1] * n, 9, SEED(0)).tokens) == min(5, 41 - n)


BUNDLED = [  # options, sampling, rule, least tokens per call of the target
    ({}, GREEDY, exact_match, 2.5),
    ({}, Sampling(), rejection, 2.0),
    (TREES["grown"], GREEDY, exact_match, 2.5),
    (TREES["drawn"], Sampling(), traversal, 1.5),
]


@pytest.mark.parametrize(("options", "sampling", "verifier", "least"), BUNDLED)
def test_the_bundled_one_pays(tiny_pair, options, sampling, verifier, least):
    """One held-out prompt: the target's own text, in fewer calls."""
    target, _, tokenizer = tiny_pair
    prompt = tokenizer.encode("Once upon a time there lived a king who lived in a great forest")
    drafter = ParallelDrafter(target, load_parallel("tiny-target"), **options)
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=4, sampling=sampling)
    generation = sampler.generate(prompt, 60, 0)
    if sampling is GREEDY:
        wanted = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 60)
        np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert generation.stats.tokens_per_target_call > least
