"""A draft model of some tokens only: the model's logits for these, no others, and drafts that stay exact."""

import numpy as np
import pytest
from exactness import error_of
from helpers import random_gpt2

from gpt2np import FrequentTokens, HParams
from gpt2np.frequent import most_frequent
from speculative import ByPaths, Grown, ModelDrafter, Sampling, SpeculativeSampler, TreeDrafter, block, traversal
from speculative.testing import TableModel

SHAPE = HParams(n_vocab=4, n_ctx=16, n_embd=6, n_head=2, n_layer=2)


@pytest.mark.parametrize("parents", [(), (-1, -1, 0)])
def test_its_logits_are_the_models_for_these_tokens_and_none_for_others(parents):
    model, text = random_gpt2(SHAPE), [0, 3, 1, 2, 1]
    found, whole = FrequentTokens(model, [3, 1, 1])(text, 3, parents), model(text, 3, parents)
    np.testing.assert_allclose(found[:, [1, 3]], whole[:, [1, 3]], rtol=1e-6, atol=1e-6)
    assert np.isneginf(found[:, [0, 2]]).all() and found.dtype == np.float32


def test_its_drafts_are_exact():
    draft, target = FrequentTokens(random_gpt2(SHAPE), (0, 2)), ByPaths(TableModel.random(4, n_back=2, seed=1))
    for rule, drafter in {block: ModelDrafter(draft), traversal: TreeDrafter(draft, Grown(3), siblings="top")}.items():
        assert error_of(SpeculativeSampler(target, drafter, K=2, verifier=rule, sampling=Sampling()), 3) < 1e-12


def test_the_most_frequent_tokens_and_of_equals_the_first():
    text = np.random.default_rng(0).integers(0, 9, 50).tolist()
    found = most_frequent(text, 12, 12).tolist()
    assert sorted(found) == [*range(12)]
    assert found == sorted(range(12), key=lambda token: (-text.count(token), token))
