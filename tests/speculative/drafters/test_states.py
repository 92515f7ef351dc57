"""Drafting with the target's own layers or states: early exits, heads, and EAGLE's block."""

import copy
import pickle

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2, random_heads

import gpt2np
from gpt2np import EarlyExit, HParams, load_eagle, load_heads
from speculative import (
    AutoregressiveSampler,
    EagleDrafter,
    EarlyExitDrafter,
    Grown,
    HeadsDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    exact_match,
    rejection,
    traversal,
)

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=3)
GREEDY, SEED = Sampling(temperature=0), np.random.default_rng
TREES = {"chain": {}, "grown": {"tree": Grown(5), "siblings": "top"}, "without": {"tree": Shape.widths(2, 2)}}
TREES["drawn"] = {"tree": Shape.best(6, [0.6, 0.3]), "siblings": "drawn"}


def eagle(**options):
    return EagleDrafter(random_gpt2(SHAPE), random_eagle(SHAPE), **options)


# ------------------------------------------------------------------------------------------------ what a draft costs


def test_the_first_layers_run_each_committed_token_once(monkeypatch):
    run, block = [], gpt2np.model.block
    monkeypatch.setattr(gpt2np.model, "block", lambda x, *arguments: run.append(len(x)) or block(x, *arguments))
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    stats = SpeculativeSampler(whole, EarlyExitDrafter(whole), K=3, sampling=GREEDY).generate([1, 2, 3], 37).stats
    dropped = stats.drafted - stats.accepted  # draft tokens that were computed in vain
    assert sum(run) == 3 * (3 + 37 - 1 + dropped)  # in 3 layers; the last token is never run


@pytest.mark.parametrize("drafter", [*TREES, "hydra", "medusa"])
def test_the_target_makes_one_pass_a_round_and_one_before_the_first(drafter, monkeypatch):
    """Drafts start from the hidden states that the target kept of its last call."""
    target, passes = random_gpt2(SHAPE), []
    options = TREES.get(drafter)
    some = HeadsDrafter(target, random_heads(SHAPE, drafter)) if options is None else None
    some = some or EagleDrafter(target, random_eagle(SHAPE), **options)
    run = target.run
    monkeypatch.setattr(target, "run", lambda *call: passes.append(call) or run(*call))
    rounds = SpeculativeSampler(target, some, K=4).generate([0, 1, 2], 10, 0).rounds
    assert len(passes) == len(rounds) + 1


DRAWN = {"tree": Shape.widths(2, 2, 1), "n_frequent": 1024}
BUNDLED = [  # options of EAGLE's block, or None for heads; sampling, rule, least tokens per call of the target
    (None, GREEDY, exact_match, 1.6),
    ({}, GREEDY, exact_match, 2.6),
    ({}, Sampling(), rejection, 2.3),
    (TREES["grown"], GREEDY, exact_match, 3.0),
    *((DRAWN | {"siblings": way}, Sampling(), traversal, 1.5) for way in ("without", "drawn")),
]


@pytest.mark.parametrize(("options", "sampling", "verifier", "least"), BUNDLED)
def test_the_bundled_ones_pay(tiny_pair, options, sampling, verifier, least):
    """One held-out prompt: the target's own text, in fewer calls."""
    target, _, tokenizer = tiny_pair
    prompt = tokenizer.encode("Once upon a time there lived a king who lived in a great forest")
    drafter = HeadsDrafter(target, load_heads("tiny-target")) if options is None else None
    drafter = drafter or EagleDrafter(target, load_eagle("tiny-target"), **options)
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=4, sampling=sampling)
    generation = sampler.generate(prompt, 60, 0)
    if sampling is GREEDY:
        wanted = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 60)
        np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert generation.stats.tokens_per_target_call > least


# ------------------------------------------------------------------------------------------------ early exits


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))])
def test_a_copy_has_its_target_with_it(copied):
    """A copy that begins with the drafter, or with the exit, meets the whole model before the exit is complete."""
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    drafter = EarlyExitDrafter(whole)
    expected = whole.early_exit([1, 2, 3])
    first = copied(whole.early_exit)
    assert np.array_equal(first([1, 2, 3]), expected) and first.whole.early_exit is first
    target, of_both = copied((whole, drafter))
    assert of_both.model is target.early_exit and whole.early_exit.whole is whole


# ------------------------------------------------------------------------------------------------ heads


def test_the_tree_has_the_most_probable_tokens_of_each_head():
    """No deeper than there are heads, and nothing after one token, which has no state yet."""
    target, heads, text = random_gpt2(SHAPE), random_heads(SHAPE), [1, 2, 3]
    draft = HeadsDrafter(target, heads, Shape.widths(2, 1)).propose(text, 3, None)
    assert draft.parents.tolist() == [-1, -1, 0, 1]
    state = target.states(text[:-1])
    first = np.argsort(-heads.logits(target, state, np.array([[3]]))[0])[:2]
    second = heads.logits(target, np.repeat(state, 2, axis=0), np.array([[3, x] for x in first])).argmax(axis=-1)
    assert draft.tokens.tolist() == [*first, *second]
    assert HeadsDrafter(target, heads, Shape.chain(9)).propose(text, 9, None).depth == heads.n_heads == 3
    assert [len(HeadsDrafter(target, heads).propose(short, 3, None).tokens) for short in ([5], [5, 1])] == [0, 7]


def test_more_ranks_were_counted_than_there_are_tokens():
    shape = HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
    draft = HeadsDrafter(random_gpt2(shape), random_heads(shape)).propose([0, 1, 0], 3, None)
    assert len(draft.tokens) == 7 and set(draft.tokens.tolist()) == {0, 1}


# ------------------------------------------------------------------------------------------------ EAGLE


def test_a_chain_has_the_rows_of_the_block_with_the_sampling():
    text, sampling = [1, 2, 3], Sampling(0.7, top_k=5)
    draft = eagle(sampling=sampling).propose(text, 4, SEED(0))
    block = random_eagle(SHAPE).on(random_gpt2(SHAPE))
    logits = block.draft_logits([*text, *draft.tokens[:3].tolist()], 3, 4)
    np.testing.assert_array_equal(draft.probs, sampling(logits))


def test_tokens_that_are_not_drafted_have_probability_0():
    kept = set(random_eagle(SHAPE).frequent[:3].tolist())
    for options in TREES.values():
        draft = eagle(n_frequent=3, **options).propose([1, 2, 3], 2, SEED(0))
        assert set(draft.tokens.tolist()) <= kept and np.flatnonzero(draft.probs.any(axis=0)).tolist() <= sorted(kept)


def test_a_draft_ends_at_the_context():
    for n in (1, 38, 39, 40):
        assert len(eagle().propose([1] * n, 5, SEED(0)).tokens) == min(5, 41 - n)
