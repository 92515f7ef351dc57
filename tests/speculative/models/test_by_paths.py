"""ByPaths: what a model that takes trees must return; GPT-2's rows are those of its paths, bit for bit."""

import numpy as np
import pytest

import gpt2np
from gpt2np.kernels import matmul
from speculative import ByPaths
from speculative.testing import TableModel
from speculative.tree import path


def test_each_row_is_that_of_its_path():
    model = TableModel.random(5, seed=1)
    rows = ByPaths(model)([0, 1, 2, 3, 4], n_last=4, parents=[-1, -1, 0])  # after 0 1, 0 1 2, 0 1 3 and 0 1 2 4
    for row, text in zip(rows, ([0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 4]), strict=True):
        np.testing.assert_array_equal(row, model(text)[0])
    np.testing.assert_array_equal(ByPaths(model)([0, 1, 2], n_last=2), model([0, 1, 2], n_last=2))


@pytest.fixture(scope="module")
def models():
    return [gpt2np.load("tiny-target")[0] for _ in range(2)]


KINDS = {
    "whole": lambda model: model,
    "early exit": lambda model: gpt2np.EarlyExit(model, 4),
    "first layers": lambda model: gpt2np.EarlyExit(model, 4).early_exit,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", matmul.STRATEGIES)
def test_every_row_of_a_tree_is_bitwise_that_of_its_path(models, strategy, kind, monkeypatch):
    """Trees that grow, texts that continue along a branch, and texts that are cut: the cache has to follow."""
    if not matmul.probe()[strategy]["invariant"]:
        pytest.skip(f"{strategy} is not batch-invariant on this machine")
    monkeypatch.setattr(matmul, "chosen", strategy)
    model, oracle = (KINDS[kind](gpt2np.GPT2(model.params, model.hparams)) for model in models)
    rng = np.random.default_rng(len(kind))
    text = rng.integers(0, model.n_vocab, 9).tolist()
    for n in (1, 12):
        parents = [int(rng.integers(-1, i)) for i in range(n + 3)]
        nodes = rng.integers(0, model.n_vocab, n + 3).tolist()
        for size, n_last in ((n, n + 1), (n + 3, 3)):
            asked = [*text, *nodes[:size]], n_last, parents[:size]
            np.testing.assert_array_equal(model(*asked), ByPaths(oracle)(*asked))
        branch = path(parents, int(rng.integers(0, n)))
        text = [*text, *(nodes[node] for node in branch), int(rng.integers(0, model.n_vocab))][: 60 - n]


@pytest.mark.parametrize("parents", [[0], [-2], [-1] * 4, [-1, 1], [1, 0]])
def test_a_model_refuses_what_is_no_tree(models, parents):
    for model in (models[0], ByPaths(TableModel.random(5))):
        with pytest.raises(ValueError, match="expected parents of a tree after at least one token of text"):
            model([1, 2, 3, 4], 3, parents)
