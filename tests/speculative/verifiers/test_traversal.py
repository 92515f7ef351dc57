"""Traversal verification: block verification on a chain, and never worse than rejection on a tree."""

import numpy as np
import pytest
from exactness import accepted
from helpers import TreeDrafter

from speculative import ModelDrafter, Sampling, block, rejection, traversal
from speculative.testing import TableModel

ZEROS = TableModel([[0.5, 0, 0.5], [0.25, 0.75, 0], [0, 0, 1]])
MODELS = [TableModel.random(3, seed=1), TableModel.random(3, seed=2), ZEROS]


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("draft_model", MODELS)
def test_on_a_chain_it_is_block_verification(target, draft_model):
    """Verdict for verdict, from the same uniform numbers."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        draft = ModelDrafter(draft_model).propose([0], seed % 5, rng)
        target_probs = Sampling()(target([0, *draft.tokens], n_last=seed % 5 + 1))
        sources = [np.random.default_rng(seed) for _ in range(2)]
        assert block(draft, target_probs, sources[0]) == traversal(draft, target_probs, sources[1])
        assert sources[0].random() == sources[1].random()


def test_it_accepts_no_less_than_level_by_level():
    gains = []
    for seed in range(4):
        target, draft_model = (TableModel.random(3, seed=seed + some) for some in (10, 20))
        for parents, how in (([-1, -1, 0, 0], "one drawn"), ([-1, 0], "iid")):
            drafter = TreeDrafter(draft_model, parents, how)
            gains.append(accepted(traversal, target, drafter, 2) - accepted(rejection, target, drafter, 2))
    assert min(gains) > -1e-12 and max(gains) > 1e-3
