"""What drafters, their trees and their tables refuse, each with its sentence."""

import math
import re

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2, random_heads

from gpt2np import EarlyExit, HParams, load_heads
from speculative import (
    ByPaths,
    EagleDrafter,
    EarlyExitDrafter,
    Grown,
    HeadsDrafter,
    LookaheadDrafter,
    ModelDrafter,
    NGramModel,
    NoisyDrafter,
    PromptLookupDrafter,
    RecyclingDrafter,
    Shape,
    SpeculativeSampler,
    SuffixDrafter,
    TreeDrafter,
)
from speculative.drafters.deterministic import one_hot
from speculative.testing import TableModel

TABLE, GPT2 = TableModel.random(3), random_gpt2(HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
HEADS, BLOCK = random_heads(GPT2.hparams), random_eagle(GPT2.hparams)
WANTS_A_TREE = "expected a tree such as Shape.best(8, weights) or Shape.widths(2, 1), got"
COPIED = "the drafter copied token {}, and its n_vocab is 3: draft, target and corpus must share one vocabulary"
IDS, FEW, BITS = "expected token ids in one list, got", "expected at least 3 tokens from 0 to 2", "fit 64 bits, got"
TREE = "expected the parents and the ranks of a tree, two lists of one length, each parent -1 or an earlier node"
WEIGHTS = "expected weights of 0 or more that do not increase with the rank, got"


def copying(drafter):
    return lambda: SpeculativeSampler(TableModel.random(6), drafter).generate([4, 1, 4, 1, 4, 1], 3, 0)


def counted(tokens, n_vocab, n):
    return lambda: NGramModel.from_tokens(tokens, n_vocab, n)


REFUSED = [
    *((lambda bad=bad: one_hot([0, bad], 3), COPIED.format(bad)) for bad in (-1, 3)),
    (copying(PromptLookupDrafter(3)), COPIED.format(4)),
    (copying(SuffixDrafter(3)), COPIED.format(4)),
    (lambda: SuffixDrafter(3, corpus=[1, 5] * 9).propose([0, 2, 1], 3, None), COPIED.format(5)),
    *((lambda bad=bad: NoisyDrafter(TABLE, bad), f"expected an epsilon from 0 to 1, got {bad}")
      for bad in (-0.1, 1.5, math.nan)),
    *((lambda bad=bad: SuffixDrafter(3, floor=bad), f"expected a floor from 0 to 1, got {bad}")
      for bad in (-0.1, 1.5, math.nan)),
    *((lambda bad=bad: ModelDrafter(TABLE, threshold=bad), f"expected a threshold from 0 to 1, got {bad}")
      for bad in (-0.1, 2, math.nan)),
    *((lambda make=make: make("tiny-draft"), "got 'tiny-draft': gpt2np.load(name) returns (model, tokenizer)")
      for make in (ModelDrafter, ByPaths, lambda model: TreeDrafter(model, Shape.widths(2)))),
    (lambda: EagleDrafter(GPT2, GPT2), "expected a block that drafts, such as gpt2np.load_eagle returns, got GPT2"),
    (lambda: EagleDrafter(TABLE, BLOCK), "expected a GPT2, whose hidden states the block continues, got <spec"),
    (lambda: EagleDrafter(GPT2, BLOCK, Shape.widths(2), siblings="two"), "expected siblings to be one of"),
    (lambda: EarlyExitDrafter(GPT2), "expected a target with an early exit, such as EarlyExit(model, 2), got"),
    (lambda: HeadsDrafter(GPT2, HEADS, 8), WANTS_A_TREE),
    (lambda: HeadsDrafter(GPT2, HEADS, Shape([-1], [17])), "expected ranks below 17, the number of tokens, got 17"),
    *((lambda model=model: HeadsDrafter(model, HEADS), "expected a model with hidden states, such as a gpt2np.GPT2")
      for model in (TABLE, EarlyExit(GPT2, 1))),
    (lambda: HeadsDrafter(GPT2, GPT2), "expected heads, such as gpt2np.load_heads returns, got GPT2"),
    (lambda: HeadsDrafter(GPT2, load_heads("tiny-target")), "expected heads for a model with n_embd 15, got"),
    *((lambda sizes=sizes: LookaheadDrafter(3, *sizes), "expected W of 1 or more, N of 2 or more and G of 1 or more, "
       "got {}, {} and {}".format(*sizes)) for sizes in ((1, 1, 5), (0, 2, 1), (1, 2, 0))),
    (lambda: PromptLookupDrafter(3, 0), "expected a longest match n_max of 1 token or more, got 0"),
    (lambda: PromptLookupDrafter(3, n_copies=0), "expected n_copies of 1 or more, got 0"),
    (lambda: RecyclingDrafter(3, Shape.widths(3), n_followers=2), "ranks below 2, the number of followers kept, got 2"),
    (lambda: RecyclingDrafter(3, ([-1, 0], [0, 0])), WANTS_A_TREE),
    *((lambda tree=tree: TreeDrafter(TABLE, tree), WANTS_A_TREE) for tree in (8, ([-1, 0], [0, 0]), [-1], "2,1", None)),
    (lambda: TreeDrafter(TABLE, Grown(3), siblings="drawn"), "a tree that grows needs siblings='top', got 'drawn'"),
    (lambda: TreeDrafter(TABLE, Shape.widths(2), siblings="best"),
     "expected siblings to be one of without, drawn, top, got 'best'"),
    (lambda: Grown(0), "expected a tree of 1 node or more, a whole number, got 0"),
    *((lambda tree=tree: Shape(*tree), TREE) for tree in (
        ([-1, -1], [0]), ([-1, 5], [0, 0]), ([0, 0], [0, 1]), ([-1], [-1]), ("a", "b"), (1, 2), (None, None))),
    *((lambda weights=weights: Shape.best(3, weights), WEIGHTS) for weights in (
        [0.3, 0.6], [[0.6, 0.3], [0.2, 0.4]], [0.5, -0.1], [math.nan], 0.5, [[[0.5]]])),
    (counted([0.5, 1.5, 1.0], 3, 1), f"{IDS} float64 in 1 dimensions"),
    (counted([[0, 1], [1, 0]], 3, 1), f"{IDS} int64 in 2 dimensions"),
    (counted([0, 1], 3, 3), f"{FEW}, got 2 tokens: take a longer text, encoded with the"),
    *((counted(tokens, 3, 3), FEW) for tokens in ([0, 1, 3], [0, 1, -1])),
    (counted([], 3, 1), "expected at least 1 tokens from 0 to 2, got 0 tokens"),
    (counted([0] * 9, 50257, 5), f"expected n from 1 to 4 for 50257 tokens, so that n-grams {BITS} 5"),
    (counted([0, 1, 2, 3], 2**21, 3), f"{BITS} 3"),
    (counted([0] * 9, 3, 0), f"{BITS} 0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "sentence"), REFUSED, ids=[f"{i} {words[:50]}" for i, (_, words) in enumerate(REFUSED)]
)
def test_what_is_refused(make, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make()


FILES = [
    *(("n_vocab", array) for array in (np.array(0), np.array(10**12), np.array(7.0), np.array([7, 7]))),
    *(("codes1", np.array(codes)) for codes in ([0, 1, 7], [-1, 1, 2], [1, 0, 2], [[0, 1, 2]], [0, 1])),
    *(("counts1", np.array(counts)) for counts in ([1, 0, 1], [2**62] * 3, [1.0, 1.0, 1.0], [None, 1, 1])),
    ("codes2", np.zeros(10_000_000, np.int8)),  # compressed to nothing
    *(("", content) for content in (b"", b"no table", b"PK\x03\x04 broken")),
]


@pytest.mark.parametrize(("name", "array"), FILES)
def test_a_file_that_is_no_table_of_n_grams(tmp_path, name, array):
    codes, counts = NGramModel.from_tokens([0, 1, 2, 0], n_vocab=7, n=1).counts[0]
    path, arrays = tmp_path / "table", {"n_vocab": np.array(7), "codes1": codes, "counts1": counts}
    with open(path, "wb") as file:
        if name:
            (np.savez_compressed if name == "codes2" else np.savez)(file, **arrays | {name: array})
        else:
            file.write(array)
    with pytest.raises(ValueError) as error:
        NGramModel.load(path)
    assert str(error.value) == (
        f"{path} is not a table of n-grams: expected a file written by NGramModel.save; count again, and save under a "
        "new name"
    )
