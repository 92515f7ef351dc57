"""A model with an early exit: what test_model.py and tests/speculative, which test its results, do not ask."""

import copy
import pickle

import numpy as np
import pytest
from helpers import random_gpt2

from gpt2np import EarlyExit, HParams

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def test_an_early_exit_counts_its_parameters():
    model = random_gpt2(SHAPE)
    assert EarlyExit(model, 1).n_params == model.n_params


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
def test_the_first_layers_can_be_copied_without_the_whole(copied):
    """As a drafter is that goes to another process: its model refers to the whole, and the whole to it."""
    part = EarlyExit(random_gpt2(SHAPE), 1).early_exit
    expected, other = part([1, 2, 3]), copied(part)
    assert np.array_equal(other([1, 2, 3]), expected) and np.array_equal(part([1, 2, 3]), expected)
    assert other.whole.early_exit is other
