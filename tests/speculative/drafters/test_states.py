"""Drafting with the target's own layers or states: early exits, heads, EAGLE's block and the parallel one."""

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2, random_heads, random_parallel

import gpt2np
import speculative as sp
from gpt2np import EarlyExit, HParams
from speculative import Sampling, Shape

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=3)
GREEDY, SEED = Sampling(temperature=0), np.random.default_rng
TREES = {"chain": {}, "grown": {"tree": sp.Grown(5), "siblings": "top"}, "without": {"tree": Shape.widths(2, 2)}}
TREES["drawn"] = {"tree": Shape.best(6, [0.6, 0.3]), "siblings": "drawn"}


def eagle(target, **options):
    return sp.EagleDrafter(target, random_eagle(SHAPE), **options)


def parallel(**options):
    return sp.ParallelDrafter(random_gpt2(SHAPE), random_parallel(SHAPE, n_slots=5), **options)


# ------------------------------------------------------------------------------------------------ what a draft costs


def test_the_first_layers_run_each_committed_token_once(monkeypatch):
    run, block = [], gpt2np.model.block
    monkeypatch.setattr(gpt2np.model, "block", lambda x, *arguments: run.append(len(x)) or block(x, *arguments))
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    stats = sp.SpeculativeSampler(whole, sp.EarlyExitDrafter(whole), K=3, sampling=GREEDY).generate([1, 2, 3], 37).stats
    dropped = stats.drafted - stats.accepted  # draft tokens that were computed in vain
    assert sum(run) == 3 * (3 + 37 - 1 + dropped)  # in 3 layers; the last token is never run


@pytest.mark.parametrize("name", [*TREES, "hydra", "medusa"])
def test_the_target_makes_one_pass_a_round_and_one_before_the_first(name, monkeypatch):
    """Drafts start from the hidden states that the target kept of its last call."""
    target, passes = random_gpt2(SHAPE), []
    drafter = eagle(target, **TREES[name]) if name in TREES else sp.HeadsDrafter(target, random_heads(SHAPE, name))
    run = target.run
    monkeypatch.setattr(target, "run", lambda *call: passes.append(call) or run(*call))
    rounds = sp.SpeculativeSampler(target, drafter, K=4).generate([0, 1, 2], 10, 0).rounds
    assert len(passes) == len(rounds) + 1


@pytest.mark.parametrize("name", TREES)
def test_a_draft_of_the_parallel_block_is_one_pass(name, monkeypatch):
    """For the second one the target's states are there, and the pass has only new tokens and slots."""
    drafter, passes, layer = parallel(**TREES[name]), [], gpt2np.drafting.eagle.block
    monkeypatch.setattr(gpt2np.drafting.eagle, "block", lambda x, *rest: passes.append(len(x)) or layer(x, *rest))
    drafter.propose([1, 2, 3], 3, SEED(0))
    drafter.propose([1, 2, 3, 4, 5], 3, SEED(0))
    assert passes == [3 + 2, 2 + 2]
    assert drafter.propose([1, 2], 9, SEED(0)).depth <= 5 == parallel().propose([1, 2], 9, SEED(0)).depth


@pytest.mark.parametrize(
    ("drafter", "load", "least"),
    [
        (sp.HeadsDrafter, gpt2np.load_heads, 1.6),
        (sp.EagleDrafter, gpt2np.load_eagle, 2.7),
        (sp.ParallelDrafter, gpt2np.load_parallel, 2.2),
    ],
)
def test_the_bundled_ones_pay(tiny_pair, drafter, load, least):
    """One held-out prompt."""
    target, _, tokenizer = tiny_pair
    sampler = sp.SpeculativeSampler(target, drafter(target, load("tiny-target")), K=4, sampling=GREEDY)
    generation = sampler.generate(tokenizer.encode("Once upon a time there lived a king who lived in a"), 40)
    assert generation.stats.tokens_per_target_call > least


# ------------------------------------------------------------------------------------------------ heads


def test_the_tree_has_the_most_probable_tokens_of_each_head():
    """No deeper than there are heads, and nothing after one token, which has no state yet."""
    target, heads, text = random_gpt2(SHAPE), random_heads(SHAPE), [1, 2, 3]
    draft = sp.HeadsDrafter(target, heads, Shape.widths(2, 1)).propose(text, 3, None)
    assert draft.parents.tolist() == [-1, -1, 0, 1]
    state = target.states(text[:-1])
    first = np.argsort(-heads.logits(target, state, np.array([[3]]))[0])[:2]
    second = heads.logits(target, np.repeat(state, 2, axis=0), np.array([[3, x] for x in first])).argmax(axis=-1)
    assert draft.tokens.tolist() == [*first, *second]
    assert sp.HeadsDrafter(target, heads, Shape.chain(9)).propose(text, 9, None).depth == heads.n_heads == 3
    assert [len(sp.HeadsDrafter(target, heads).propose(short, 3, None).tokens) for short in ([5], [5, 1])] == [0, 3]


def test_more_ranks_were_counted_than_there_are_tokens():
    shape = HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
    model, heads = random_gpt2(shape), random_heads(shape)
    draft = sp.HeadsDrafter(model, heads, Shape.best(7, sp.HeadsDrafter(model, heads).weights())).propose(
        [0, 1, 0], 3, None
    )
    assert len(draft.tokens) == 7 and set(draft.tokens.tolist()) == {0, 1}


# ------------------------------------------------------------------------------------------------ EAGLE


@pytest.mark.parametrize(
    ("drafter", "block"), [(sp.EagleDrafter, random_eagle(SHAPE)), (sp.ParallelDrafter, random_parallel(SHAPE))]
)
def test_a_chain_has_the_rows_of_the_block_with_the_sampling(drafter, block):
    """A row of the parallel block has the term of the token drawn before it."""
    target, sampling = random_gpt2(SHAPE), Sampling(0.7, top_k=5)
    draft = drafter(target, block, sampling=sampling).propose([1, 2, 3], 4, SEED(0))
    logits = block.on(random_gpt2(SHAPE)).draft_logits([1, 2, 3, *draft.tokens[:3].tolist()], 3, 4)
    np.testing.assert_array_equal(draft.probs, sampling(logits))
    for n in (1, 38, 39, 40):  # it ends at the context
        assert len(drafter(target, block).propose([1] * n, 5, SEED(0)).tokens) == min(5, 41 - n)
