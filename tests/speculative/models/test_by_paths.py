"""ByPaths: what a model that takes trees must return; GPT-2's rows are those of its paths, bit for bit."""

import numpy as np
import pytest

import gpt2np
from gpt2np.kernels import matmul
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Sampling,
    SpeculativeSampler,
    exact_match,
)
from speculative.testing import TableModel, check_language_model
from speculative.tree import path


def test_each_row_is_that_of_its_path():
    model = TableModel.random(5, seed=1)
    rows = ByPaths(model)([0, 1, 2, 3, 4], n_last=4, parents=[-1, -1, 0])  # after 0 1, 0 1 2, 0 1 3 and 0 1 2 4
    for row, text in zip(rows, ([0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 4]), strict=True):
        np.testing.assert_array_equal(row, model(text)[0])
    np.testing.assert_array_equal(ByPaths(model)([0, 1, 2], n_last=2), model([0, 1, 2], n_last=2))
    check_language_model(ByPaths(model))


@pytest.fixture(scope="module")
def models():
    return [gpt2np.load("tiny-target")[0] for _ in range(2)]


@pytest.fixture
def strategy(request, monkeypatch):
    if not matmul.probe()[request.param]["invariant"]:
        pytest.skip(f"{request.param} is not batch-invariant on this machine")
    monkeypatch.setattr(matmul, "chosen", request.param)


every_strategy = pytest.mark.parametrize("strategy", matmul.STRATEGIES, indirect=True)


KINDS = {
    "whole": lambda model: model,
    "early exit": lambda model: gpt2np.EarlyExit(model, 4),
    "first layers": lambda model: gpt2np.EarlyExit(model, 4).early_exit,
}


@pytest.mark.parametrize("kind", KINDS)
@every_strategy
def test_every_row_of_a_tree_is_bitwise_that_of_its_path(models, strategy, kind):
    """Trees that grow, texts that continue along a branch, and texts that are cut: the cache has to follow."""
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


@every_strategy
def test_a_greedy_text_through_trees_is_the_same(models, strategy):
    target, oracle = (gpt2np.GPT2(model.params, model.hparams) for model in models)
    own = AutoregressiveSampler(oracle, sampling=Sampling(temperature=0)).generate([5, 6], 40, keep_probs=True)
    text = [5, 6, *own.tokens.tolist()]

    class Guesses:
        """Two tokens for each of three places, one of them right, in turn the first and the second."""

        def propose(self, tokens, K, rng):
            n, places = len(tokens), range(min(K, 3))
            drafted, parents, last = [], [], -1
            for place in places:
                right, wrong = text[n + place], (text[n + place] + 1) % 2048
                drafted += [right, wrong] if n % 2 else [wrong, right]
                parents += [last, last]
                last = len(drafted) - (2 if n % 2 else 1)
            return Draft(np.array(drafted, np.int64), np.eye(2048)[drafted], np.array(parents, np.int64))

    sampler = SpeculativeSampler(target, Guesses(), verifier=exact_match, sampling=Sampling(temperature=0))
    generation = sampler.generate([5, 6], 40, 0)
    assert generation.tokens.tolist() == own.tokens.tolist() and len(generation.rounds) == 10
    np.testing.assert_array_equal(target(text), oracle(text))


@pytest.mark.parametrize("parents", [[0], [-2], [-1] * 4, [-1, 1], [1, 0]])
def test_a_model_refuses_what_is_no_tree(models, parents):
    for model in (models[0], ByPaths(TableModel.random(5))):
        with pytest.raises(ValueError, match="expected parents of a tree after at least one token of text"):
            model([1, 2, 3, 4], 3, parents)
