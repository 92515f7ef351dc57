"""A model's tree: its siblings by hand, what its rows depend on, where it grows, and where it ends."""

import numpy as np
import pytest
from helpers import random_gpt2

import speculative as sp
from gpt2np import HParams
from speculative import Sampling, Shape
from speculative.drafters import model_tree
from speculative.testing import TableModel
from speculative.tree import path

GREEDY, PENALTY = Sampling(temperature=0), Sampling(repetition_penalty=3.0)
SEED = np.random.default_rng


@pytest.mark.parametrize(
    ("siblings", "wanted"),
    [
        ("drawn", {(1, 0): 0.6, (2, 0): 0.4}),  # outside of 0, then 0
        ("without", {(0, 1): 0.3, (0, 2): 0.2, (1, 0): 3 / 14, (1, 2): 6 / 70, (2, 0): 1 / 8, (2, 1): 3 / 40}),
        ("top", {(0, 1): 1.0}),
    ],
)
def test_the_siblings_by_hand(siblings, wanted):
    """Two of q = (.5, .3, .2)."""
    drafter = sp.TreeDrafter(sp.ByPaths(TableModel([[0.5, 0.3, 0.2]] * 3)), Shape.widths(2), siblings=siblings)
    found = sp.exact_distribution(lambda rng: drafter.propose([0], 2, rng).tokens)
    assert found == pytest.approx(wanted)
    if siblings == "drawn":
        np.testing.assert_allclose(drafter.propose([0], 2, SEED(0)).probs, [[0, 0.6, 0.4], [1, 0, 0]])


@pytest.mark.parametrize("siblings", model_tree.RULES)
def test_a_greedy_tree_has_the_most_probable_tokens(siblings):
    """At temperature 0 the siblings are ranked by the model's probabilities, though q itself has a single token."""
    model = TableModel.random(3, seed=2)
    drafter = sp.TreeDrafter(sp.ByPaths(model), Shape.widths(2, 1), siblings=siblings, sampling=GREEDY)
    draft = drafter.propose([0], 2, SEED(0))
    first = np.argsort(-model([0])[0])[:2]
    wanted = [*first, *(np.argmax(model([0, token])[0]) for token in first)]
    assert draft.tokens.tolist() == wanted and draft.parents.tolist() == [-1, -1, 0, 1]


def test_the_rows_are_those_of_its_sampling_after_the_paths():
    model, text = TableModel.random(20, seed=1), [0, 1]
    draft = sp.TreeDrafter(sp.ByPaths(model), Shape.widths(2, 2), sampling=PENALTY).propose(text, 2, SEED(0))
    for node in (-1, 0, 1):
        after = [*text, *draft.tokens[path(draft.parents, node)].tolist()]
        np.testing.assert_array_equal(draft.probs[draft.children(node)[0]], PENALTY(model(after), after)[0])


@pytest.mark.parametrize("sampling", [Sampling(), PENALTY], ids=["plain", "penalty"])
def test_with_common_random_numbers_first_children_are_the_targets_own_draws(sampling):
    """The target as its own draft, at every level."""
    target = sp.ByPaths(TableModel.random(5, seed=1))
    drafter = sp.TreeDrafter(target, Shape.widths(2, 2, 1), sampling=sampling)
    sampler = sp.SpeculativeSampler(target, drafter, verifier=sp.exact_match, K=3, sampling=sampling)
    for seed in range(5):
        stats = sampler.generate([0, 1], 20, sp.Gumbel(seed)).stats
        assert stats.target_calls == 5 and stats.accepted == 15


def test_a_tree_grows_where_its_joint_probability_is_largest(monkeypatch):
    """From 0: .6 .4; after 0 .6 .4, after 1 .1 .9. The products: .6, .4, .36 (0 0), .36 (1 1), .24 (0 1), .04 (1 0)."""
    monkeypatch.setattr(model_tree, "GROWTH", Sampling())
    drafter = sp.TreeDrafter(sp.ByPaths(TableModel([[0.6, 0.4], [0.1, 0.9]])), sp.Grown(5), siblings="top")
    draft = drafter.propose([0], 2, None)
    nodes = {*zip(draft.tokens.tolist(), draft.parents.tolist())}
    assert len(draft.tokens) == 5 and nodes == {(0, -1), (1, -1), (0, 0), (1, 0), (1, 1)}


@pytest.mark.parametrize("sampling", [Sampling(), GREEDY, Sampling(9.0)], ids=["1", "greedy", "9"])
def test_how_a_tree_grows_does_not_depend_on_the_sampling(sampling):
    """.6 .4 at temperature 0.3 are .79 .21: a chain, and no sibling."""
    drafter = sp.TreeDrafter(sp.ByPaths(TableModel([[0.6, 0.4]] * 2)), sp.Grown(4), siblings="top", sampling=sampling)
    draft = drafter.propose([0], 4, None)
    assert draft.tokens.tolist() == [0] * 4 and draft.parents.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("tree", "n_below"),
    [(Shape.widths(2, 1, 1), 2), (Shape.chain(3), 1), (sp.Grown(3), 3)],
    ids=["tree", "chain", "grown"],
)
def test_a_tree_ends_at_K_and_at_the_context(tree, n_below):
    """The model is never asked for more than n_ctx tokens, which GPT2 refuses; n_below are those of the first depth."""
    drafter = sp.TreeDrafter(
        random_gpt2(HParams(n_vocab=17, n_ctx=12, n_embd=8, n_head=2, n_layer=1)), tree, siblings="top"
    )
    for n in range(1, 14):
        for K in range(4):
            draft = drafter.propose([1] * n, K, None)
            assert draft.depth <= K and bool(len(draft.tokens)) == (K > 0 and n <= 12)
            if n + n_below > 12:
                assert draft.depth <= 1
            elif n < 4:
                assert draft.depth == K or isinstance(tree, sp.Grown)


def test_a_chain_is_that_of_a_model_drafter():
    """Of a model that takes no trees; it ends where that one does."""
    model = TableModel.random(3, seed=2, n_ctx=6)
    for n in range(3, 9):
        drafters = sp.ModelDrafter(model), sp.TreeDrafter(model, Shape.chain(4))
        chains = [drafter.propose([0] * n, 4, SEED(n)).tokens.tolist() for drafter in drafters]
        assert chains[0] == chains[1] and len(chains[0]) == min(4, max(0, 7 - n))
