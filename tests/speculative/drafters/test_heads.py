"""Drafting with heads: the shape, the ranks, and the first draft of a text."""

import numpy as np
import pytest
from helpers import random_gpt2, random_heads

from gpt2np import EarlyExit, Heads, HParams
from speculative import AutoregressiveSampler, HeadsDrafter, Sampling, SpeculativeSampler, exact_match, widths
from speculative.testing import TableModel

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)


def heads_of(accepted=None, shape=SHAPE):
    heads = random_heads(shape)
    for head in heads:
        head["accepted"] = np.array(accepted if accepted is not None else head["accepted"], np.float32)
    return Heads(random_gpt2(shape), heads)


def test_the_tree_has_the_most_probable_tokens_of_each_head():
    heads, text = heads_of(), [1, 2, 3]
    draft = HeadsDrafter(heads, widths(2, 1)).propose(text, 3, None)
    assert draft.parents.tolist() == [-1, -1, 0, 1]
    first = np.argsort(-heads.head_logits(text, np.empty((1, 0), int))[0])[:2]
    second = heads.head_logits(text, first[:, None]).argmax(axis=-1)
    assert draft.tokens.tolist() == [*first, *second]


def test_more_ranks_were_counted_than_there_are_tokens():
    heads = heads_of([0.3, 0.2, 0.15, 0.1], HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
    draft = HeadsDrafter(heads, 5).propose([0, 1, 0], 2, None)
    assert len(draft.tokens) == 5 and set(draft.tokens.tolist()) == {0, 1}


def test_nothing_is_drafted_after_one_token_and_the_text_is_the_targets():
    heads = heads_of()
    assert len(HeadsDrafter(heads).propose([5], 3, None).tokens) == 0
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads), verifier=exact_match, K=3, sampling=Sampling(0))
    own = AutoregressiveSampler(random_gpt2(SHAPE), sampling=Sampling(0)).generate([5], 10).tokens
    assert sampler.generate([5], 10).tokens.tolist() == own.tolist()


def test_a_shape_in_any_order_is_cut_at_K():
    heads = heads_of()
    draft = HeadsDrafter(heads, ([-1, 0, -1], [0, 0, 1])).propose([1, 2, 3], 1, None)
    assert draft.parents.tolist() == [-1, -1]
    assert draft.tokens.tolist() == HeadsDrafter(heads, ([-1, -1], [0, 1])).propose([1, 2, 3], 1, None).tokens.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeadsDrafter(heads_of(), ([-1, 5], [0, 0])), r"expected a tree as \(parents, ranks\), two lists of"),
        (lambda: HeadsDrafter(heads_of(), ([-1], [17])), "expected ranks below 17, the number of tokens, got 17"),
        (lambda: HeadsDrafter(heads_of(), 0), "expected a tree of 1 node or more, got 0"),
        (lambda: HeadsDrafter(TableModel.random(3)), r"expected a target with heads, such as gpt2np.Heads\(model"),
        (lambda: Heads(EarlyExit(random_gpt2(SHAPE), 1), random_heads(SHAPE)), "expected a GPT2, got an EarlyExit, wh"),
    ],
)
def test_what_has_no_heads_or_no_tree_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
