"""Token trees from end to end: their arithmetic, the loop, its checks, and the bits of a model that takes trees."""

import itertools

import numpy as np
import pytest
from helpers import TreeDrafter
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np
from gpt2np.kernels import matmul
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Sampling,
    SpeculativeSampler,
    Verdict,
    best_tree,
    block,
    exact_distribution,
    exact_match,
    rejection,
)
from speculative.testing import TableModel
from speculative.tree import children, depths, is_chain, path, visible

PARENTS = st.lists(st.integers(0, 100), max_size=12).map(
    lambda numbers: [number % (i + 1) - 1 for i, number in enumerate(numbers)]
)


@given(PARENTS)
def test_the_arithmetic_agrees_with_the_paths(parents):
    paths = [path(parents, node) for node in range(len(parents))]
    assert depths(parents) == [len(nodes) - 1 for nodes in paths]
    assert [np.flatnonzero(row).tolist() for row in visible(parents)] == paths
    assert all(node in children(parents, parents[node]) for node in range(len(parents)))
    assert is_chain(parents) == all(nodes == list(range(node + 1)) for node, nodes in enumerate(paths))


@settings(max_examples=15)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=2), st.integers(1, 5), st.integers(1, 3))
def test_best_tree_is_the_best_of_all(weights, n, max_depth):
    weights = sorted(weights, reverse=True)
    nodes = [ranks for d in range(1, max_depth + 1) for ranks in itertools.product(range(len(weights)), repeat=d)]

    def closed(chosen):
        above = {ranks[:-1] for ranks in chosen if len(ranks) > 1}
        elder = {(*ranks[:-1], ranks[-1] - 1) for ranks in chosen if ranks[-1]}
        return above | elder <= set(chosen)

    def value(chosen):
        return sum(float(np.prod([weights[rank] for rank in ranks])) for ranks in chosen)

    best = max(value(chosen) for chosen in itertools.combinations(nodes, min(n, len(nodes))) if closed(chosen))
    parents, ranks = best_tree(n, weights, max_depth)
    assert depths(parents) == sorted(depths(parents)) and len(parents) == min(n, len(nodes))
    assert value([[ranks[node] for node in path(parents, i)] for i in range(len(parents))]) == pytest.approx(best)


@pytest.mark.parametrize("rule", [rejection, exact_match], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("how", ["iid", "without"])
def test_the_text_has_the_distribution_of_the_target(how, rule):
    target, draft = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    sampler = SpeculativeSampler(ByPaths(target), TreeDrafter(draft, [-1, -1, 0], how), verifier=rule, K=2)
    n = 3 if rule is rejection else 2
    found = exact_distribution(lambda rng: tuple(sampler.generate([0], n, rng).tokens.tolist()))
    expected = target.distribution([0], n)
    assert max(abs(found.get(tokens, 0) - expected[tokens]) for tokens in expected) < 1e-12


def test_a_chain_written_as_a_tree_is_a_chain():
    target, draft = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    sampler = SpeculativeSampler(target, TreeDrafter(draft, [-1, 0, 1], "iid"), verifier=block, K=3)
    assert all(is_chain(r.parents) for r in sampler.rounds([0], 9, 1))


def test_rounds_of_trees_are_counted_by_depth():
    target = ByPaths(TableModel.random(3, seed=1))
    sampler = SpeculativeSampler(target, TreeDrafter(TableModel.random(3, seed=2), [-1, -1, 0, 1], "iid"), K=2)
    generation = sampler.generate([0], 40, 3, keep_probs=True)
    assert {r.depth for r in generation.rounds} <= {0, 1, 2} and len(generation.tokens) == 40
    for r in generation.rounds:
        assert r.tokens[: r.n_accepted].tolist() == r.drafted[list(r.nodes)].tolist() and r.n_accepted == len(r.nodes)
        last = r.nodes[-1] if r.nodes else -1
        assert r.origins[-1] == ("correction" if children(r.parents, last) else "bonus")
        assert r.target_probs.shape == (len(r.drafted) + 1, 3)
    stats = generation.stats
    assert len(stats.drafted_by_position) == 2 and stats.accepted == sum(stats.accepted_by_position)


def test_a_penalty_looks_at_the_path():
    logits = np.log([[0.5, 0.3, 0.2]] * 4)
    sampling = Sampling(repetition_penalty=1.5)
    rows = sampling(logits, [2, 0, 1, 1], parents=[-1, -1, 0])
    for row, text in zip(rows, ([2], [2, 0], [2, 1], [2, 0, 1])):
        np.testing.assert_array_equal(row, sampling(logits[:1], text)[0])


def proposing(parents, n_tokens=None):
    n = len(parents) if n_tokens is None else n_tokens

    class Proposes:
        def propose(self, tokens, K, rng):
            return Draft(np.zeros(n, np.int64), np.full((n, 3), 1 / 3), np.array(parents))

    return Proposes()


def accepting(n, nodes):
    def rule(draft, target_probs, rng):
        return Verdict(n, 0, nodes)

    rule.trees = True
    return rule


@pytest.mark.parametrize(("drafter", "verifier", "words"), [
    (proposing([-1, 1, -1]), rejection, "1 as the parent of draft token 1: expected an earlier draft token, or -1"),
    (proposing([-1, -2, -1]), rejection, "-2 as the parent of draft token 1"),
    (proposing([-1, -1], 3), rejection, "one parent for each of its 3 tokens, whole numbers; it returned parents of"),
    (proposing([-1, 0.0, 0.0]), rejection, "and dtype float64"),
    (proposing([-1, 0, 1, 2, 0]), rejection, "at most 3 tokens and proposed 4 on one path of its tree"),
    (proposing([-1, -1]), block, "the verifier block takes chains only: use rejection, exact_match or traversal"),
    (proposing([-1, -1, 0]), accepting(2, (0, 1)), r"nodes = \(0, 1\): expected Verdict.nodes to be the"),
    (proposing([-1, -1, 0]), accepting(2, (2,)), "accepted 2 draft tokens, nodes = \\(2,\\)"),
    (proposing([-1, -1, 0]), accepting(2, None), r"nodes = \(0, 1\)"),
    (proposing([-1, -1, 0]), accepting(1, ("a",)), "two whole numbers"),
])  # fmt: skip
def test_what_is_wrong_with_a_tree_is_said(drafter, verifier, words):
    sampler = SpeculativeSampler(ByPaths(TableModel.random(3)), drafter, verifier=verifier, K=3)
    with pytest.raises(ValueError, match=words):
        sampler.generate([0], 9, 0)


def test_a_target_that_takes_chains_only_is_named():
    with pytest.raises(ValueError, match=r"the target takes chains only: .* or use ByPaths"):
        SpeculativeSampler(TableModel.random(3), proposing([-1, -1])).generate([0], 9, 0)


def test_near_the_end_of_the_context_a_tree_is_cut():
    target = ByPaths(TableModel.random(3, n_ctx=8))
    generation = SpeculativeSampler(target, TreeDrafter(TableModel.random(3), [-1] * 9, "iid"), K=3).generate(
        [0] * 5, 3, 0
    )
    assert next(len(r.drafted) for r in generation.rounds) == 3 and len(generation.tokens) == 3


# ------------------------------------------------------------------------------------------------ the model


@pytest.fixture(scope="module")
def models():
    return [gpt2np.load("tiny-target")[0] for _ in range(2)]


@pytest.mark.parametrize("kind", ["whole", "early exit", "first layers"])
@pytest.mark.parametrize("strategy", matmul.STRATEGIES)
def test_every_row_of_a_tree_is_bitwise_that_of_its_path(models, strategy, kind, monkeypatch):
    """Trees that grow, texts that continue along a branch, and texts that are cut: the cache has to follow."""
    monkeypatch.setattr(matmul, "chosen", (strategy, strategy))
    models = [gpt2np.GPT2(model.params, model.hparams) for model in models]
    if not matmul.probe()[strategy]["invariant"]:
        pytest.skip(f"{strategy} is not batch-invariant on this machine")
    made = {"whole": lambda m: m, "early exit": lambda m: gpt2np.EarlyExit(m, 4)}
    made["first layers"] = lambda m: gpt2np.EarlyExit(m, 4).early_exit
    model, oracle = (made[kind](m) for m in models)
    rng = np.random.default_rng(len(kind))
    text = rng.integers(0, model.n_vocab, 9).tolist()
    for n in (1, 7, 12, 40):
        parents = [int(rng.integers(-1, i)) for i in range(n + 3)]
        nodes = rng.integers(0, model.n_vocab, n + 3).tolist()
        for size, n_last in ((n, n + 1), (n + 3, 3)):
            asked = [*text, *nodes[:size]], n_last, parents[:size]
            np.testing.assert_array_equal(model(*asked), ByPaths(oracle)(*asked))
        branch = path(parents, int(rng.integers(0, n)))
        text = [*text, *(nodes[node] for node in branch), int(rng.integers(0, model.n_vocab))][: 60 - n]


@pytest.mark.parametrize("strategy", matmul.STRATEGIES)
def test_a_greedy_text_through_trees_is_the_same(models, strategy, monkeypatch):
    if not matmul.probe()[strategy]["invariant"]:
        pytest.skip(f"{strategy} is not batch-invariant on this machine")
    monkeypatch.setattr(matmul, "chosen", (strategy, strategy))
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


@pytest.mark.parametrize("parents", [[0], [-2], [-1] * 4, [-1, 1]])
def test_a_model_refuses_what_is_no_tree(models, parents):
    with pytest.raises(ValueError, match="expected parents of a tree after at least one token of text"):
        models[0]([1, 2, 3, 4], 1, parents)
