"""Drafting several tokens in one pass. Its rows: test_states.py; all else: test_drafters.py."""

import numpy as np
import pytest
from helpers import random_gpt2, random_parallel

import gpt2np
from gpt2np import HParams
from speculative import Grown, ParallelDrafter, Shape

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
SEED = np.random.default_rng
TREES = {"grown": {"tree": Grown(8), "siblings": "top"}, "drawn": {"tree": Shape.widths(2, 2, 1), "siblings": "drawn"}}


def parallel(**options):
    return ParallelDrafter(random_gpt2(SHAPE), random_parallel(SHAPE, n_slots=5), **options)


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
