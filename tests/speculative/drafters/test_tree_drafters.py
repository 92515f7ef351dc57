"""Drafters of trees: what they propose, by hand, and that every one of them is exact in the loop."""

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    PromptLookupDrafter,
    Recycling,
    RecyclingDrafter,
    Sampling,
    SpeculativeSampler,
    SuffixDrafter,
    TreeDrafter,
    Typical,
    best_tree,
    exact_distribution,
    exact_match,
    rejection,
    widths,
)
from speculative.drafters import model_tree
from speculative.drafters.deterministic import merged
from speculative.drafters.jacobi import JacobiDrafter, LastRows
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.model_tree import RULES
from speculative.measuring.tree_size import acceptance_by_rank, acceptance_together, added, best_shape
from speculative.testing import TableModel
from speculative.theory import tree_tokens
from speculative.theory.shapes import of_ranks
from speculative.tree import depths

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GREEDY = Sampling(temperature=0)


def error_of(make, n_tokens, verifier=rejection, K=2, sampling=Sampling()):
    """The largest error of a probability of the text; make(target) -> (target, drafter), built for each text."""

    def text(rng):
        target, drafter = make(ByPaths(TARGET))
        sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=sampling)
        return tuple(sampler.generate([0, 1], n_tokens, rng).tokens.tolist())

    found = exact_distribution(text)
    alone = AutoregressiveSampler(TARGET, sampling=sampling)
    wanted = exact_distribution(lambda rng: tuple(alone.generate([0, 1], n_tokens, rng).tokens.tolist()))
    return max(abs(found.get(tokens, 0) - wanted.get(tokens, 0)) for tokens in found.keys() | wanted.keys())


# ------------------------------------------------------------------------------------------------ a model's tree


@pytest.mark.parametrize("children", RULES)
@pytest.mark.parametrize("tree", [widths(2, 1), widths(3), best_tree(4, [0.6, 0.3], 2)], ids=["2,1", "3", "best"])
def test_a_models_tree_is_exact(children, tree):
    for draft_sampling in (Sampling(), Sampling(0.6, top_k=2), GREEDY):
        drafter = TreeDrafter(ByPaths(DRAFT), tree, siblings=children, sampling=draft_sampling)
        assert error_of(lambda target, drafter=drafter: (target, drafter), 2) < 1e-12


@pytest.mark.parametrize("children", RULES)
def test_over_several_rounds_and_with_exact_match(children):
    drafter = TreeDrafter(ByPaths(DRAFT), widths(2), siblings=children)
    assert error_of(lambda target: (target, drafter), 3) < 1e-12
    assert error_of(lambda target: (target, drafter), 2, exact_match) < 1e-12


def test_a_drawn_tree_that_is_pruned_afterwards_is_caught():
    """The bug that the header warns of: three draws without replacement, of which the two likeliest are kept."""

    class Pruned(TreeDrafter):
        def propose(self, tokens, K, rng):
            draft = TreeDrafter.propose(self, tokens, K, rng)
            kept = np.argsort(-draft.probs[np.arange(len(draft.tokens)), draft.tokens])[:2]
            return type(draft)(draft.tokens[kept], draft.probs[kept], draft.parents[kept])

    drafter = Pruned(ByPaths(DRAFT), widths(3), siblings="without")
    assert error_of(lambda target: (target, drafter), 2) > 0.001


def test_the_children_by_hand():
    """q = (.5, .3, .2), two children: drawn outside of 0, then 0; or twice without replacement; or 0 and 1."""
    model, tree = ByPaths(TableModel([[0.5, 0.3, 0.2]] * 3)), widths(2)
    rows = {
        "drawn": [([1, 0], 0.6), ([2, 0], 0.4)],
        "without": [
            ([0, 1], 0.3),
            ([0, 2], 0.2),
            ([1, 0], 3 / 14),
            ([1, 2], 6 / 70),
            ([2, 0], 1 / 8),
            ([2, 1], 3 / 40),
        ],
        "top": [([0, 1], 1.0)],
    }
    for children, wanted in rows.items():
        drafter = TreeDrafter(model, tree, siblings=children)
        found = exact_distribution(lambda rng, d=drafter: tuple(d.propose([0], 2, rng).tokens.tolist()))
        assert found == pytest.approx({tuple(tokens): p for tokens, p in wanted})
    draft = TreeDrafter(model, tree, siblings="drawn").propose([0], 2, np.random.default_rng(0))
    np.testing.assert_allclose(draft.probs, [[0, 0.6, 0.4], [1, 0, 0]])


@pytest.mark.parametrize("children", RULES)
def test_a_greedy_tree_has_the_likeliest_tokens(children):
    """At temperature 0 the siblings are ranked by the model's probabilities, though q itself has a single token."""
    drafter = TreeDrafter(ByPaths(DRAFT), widths(2, 1), siblings=children, sampling=GREEDY)
    draft = drafter.propose([0], 2, np.random.default_rng(0))
    first = np.argsort(-DRAFT([0])[0])[:2]
    wanted = [*first, *(np.argmax(DRAFT([0, token])[0]) for token in first)]
    assert draft.tokens.tolist() == wanted and draft.parents.tolist() == [-1, -1, 0, 1]


def test_a_tree_grows_where_its_joint_probability_is_largest(monkeypatch):
    """From 0: .6 .4; after 0 .6 .4, after 1 .1 .9. The products: .6, .4, .36 (0 0), .36 (1 1), .24 (0 1), .04 (1 0)."""
    monkeypatch.setattr(model_tree, "GROWTH", Sampling())
    drafter = TreeDrafter(ByPaths(TableModel([[0.6, 0.4], [0.1, 0.9]])), 5, siblings="top")
    draft = drafter.propose([0], 2, None)
    paths = {(int(draft.tokens[i]), int(draft.parents[i])) for i in range(5)}
    assert paths == {(0, -1), (1, -1), (0, 0), (1, 0), (1, 1)}
    assert error_of(lambda target: (target, drafter_of(5)), 2) < 1e-12


def drafter_of(n):
    return TreeDrafter(ByPaths(DRAFT), n, siblings="top")


def test_a_tree_ends_at_K_at_the_context_and_for_a_chain():
    assert depths(drafter_of(9).propose([0], 2, None).parents)[-1] == 1
    short = ByPaths(TableModel.random(3, seed=2, n_ctx=4))
    for tree in (widths(2, 1, 1), widths(1, 1, 1)):
        drafter = TreeDrafter(short, tree, siblings="top")
        assert len(drafter.propose([0], 0, None).tokens) == 0 == len(drafter.propose([0] * 5, 3, None).tokens)
        assert 0 < len(drafter.propose([0, 1, 2], 3, None).tokens) < len(tree[0])
    chain = TreeDrafter(DRAFT, widths(1, 1, 1))  # the model needs no trees here
    assert len(chain.propose([0], 3, np.random.default_rng(0)).tokens) == 3


@pytest.mark.parametrize(("tree", "children"), [(3, "drawn"), (0, "top"), (widths(2), "best")])
def test_what_is_no_tree_drafter(tree, children):
    with pytest.raises(ValueError, match=r"expected siblings to be one of|needs 1 node or more and siblings='top'"):
        TreeDrafter(DRAFT, tree, siblings=children)


def test_choices_are_closed():
    assert of_ranks([(1,), (0, 0), (0,)]) == ([-1, -1, 0], [0, 1, 0])
    for choices in ([(0,), (1, 0)], [(1,)], [(0,), (0, 1)]):
        with pytest.raises(ValueError, match="expected with each path its parent and its elder sibling"):
            of_ranks(choices)


def test_a_models_tree_on_the_bundled_pair(tiny_pair):
    """The greedy text, in fewer calls than with the chain of the same depth."""
    target, draft, tokenizer = tiny_pair
    prompt, calls = tokenizer.encode("Once upon a time there was"), []
    own = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 30).tokens.tolist()
    for tree in (widths(1, 1, 1), widths(2, 2, 1)):
        drafter = TreeDrafter(draft, tree, sampling=GREEDY)
        generation = SpeculativeSampler(target, drafter, K=3, sampling=GREEDY).generate(prompt, 30)
        assert generation.tokens.tolist() == own
        calls.append(len(generation.rounds))
    assert calls[1] < 0.9 * calls[0]


# ------------------------------------------------------------------------------------------------ recycling


def test_recycling_keeps_the_latest_followers_of_each_token():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    rows = target([0, 1, 2, 0], n_last=2, parents=[-1, -1])  # after 2 and after the sibling 0
    assert target.followers[1].tolist() == [-1, -1]  # no row after 1 was asked for
    for token, row in zip((2, 0), rows):
        assert target.followers[token].tolist() == np.argsort(-row)[:2].tolist()
    np.testing.assert_array_equal(target([0, 1], n_last=2), TARGET([0, 1], n_last=2))


def test_the_tree_of_recycled_tokens_by_hand():
    target = Recycling(ByPaths(TARGET), n_followers=2)
    drafter = RecyclingDrafter(target, widths(2, 2))
    assert drafter.propose([0], 2, None).tokens.tolist() == []
    target.followers[:] = [[1, 2], [2, 0], [-1, -1]]
    draft = drafter.propose([0], 2, None)
    assert draft.tokens.tolist() == [1, 2, 2, 0] and draft.parents.tolist() == [-1, -1, 0, 0]
    assert drafter.propose([0], 1, None).tokens.tolist() == [1, 2] == drafter.propose([0, 0], 1, None).tokens.tolist()
    kept = RecyclingDrafter(target, widths(2, 2), keep=True)
    assert kept.propose([1, 2, 0], 1, None).tokens.tolist() == [1, 2] == kept.propose([0], 1, None).tokens.tolist()
    assert drafter.propose([1, 0], 1, None).tokens.tolist() == []  # another text: what was learned is forgotten
    with pytest.raises(ValueError, match="expected ranks below 2, the number of followers kept, got 2"):
        RecyclingDrafter(target, widths(3))


@pytest.mark.parametrize("verifier", [rejection, exact_match], ids=["rejection", "match"])
def test_recycling_is_exact(verifier):
    def make(target):
        target = Recycling(target, n_followers=2)
        return target, RecyclingDrafter(target, widths(2, 1))

    assert error_of(make, 3, verifier) < 1e-12


# ------------------------------------------------------------------------------------------------ tries


def test_equal_prefixes_are_shared():
    sequences = [[0, 1, 2], [0, 2], [], [1], [0, 1]]
    tokens, parents, ends = merged(sequences)
    assert tokens == [0, 1, 1, 2, 2] and parents == [-1, -1, 0, 0, 2] and ends == [4, 3, -1, 1, 2]


def test_several_copies_are_a_tree():
    """After 1 came 2 3 (near), 2 4 and 5; after 0 1, the longer match, 2 4."""
    text = [0, 1, 2, 4, 1, 5, 6, 1, 2, 3, 0, 1]
    one, three = (PromptLookupDrafter(7, 2, n_copies=n).propose(text, 2, None) for n in (1, 3))
    assert one.tokens.tolist() == [2, 4]
    assert three.tokens.tolist() == [2, 5, 4, 3, 6] and three.parents.tolist() == [-1, -1, 0, 0, 1]
    assert error_of(lambda target: (target, PromptLookupDrafter(3, n_copies=2)), 3) < 1e-12


def test_the_suffix_automaton_branches_where_the_text_did():
    """After 1 came 2 3, 2 4 and 5: two thirds and one third, then a third each."""
    text = [1, 2, 3, 1, 2, 4, 1, 5, 6, 1]
    draft = SuffixDrafter(7, n_nodes=4, floor=0.1).propose(text, 2, None)
    assert draft.tokens.tolist() == [2, 3, 4, 5] and draft.parents.tolist() == [-1, 0, 0, -1]
    assert SuffixDrafter(7, n_nodes=4).propose(text, 1, None).tokens.tolist() == [2, 5]
    assert SuffixDrafter(7, n_nodes=9, floor=0.4).propose(text, 4, None).tokens.tolist() == [2]
    assert len(SuffixDrafter(7, n_nodes=4).propose([1, 2], 4, None).tokens) == 0
    assert error_of(lambda target: (target, SuffixDrafter(3, [0, 1, 0, 2, 1], n_nodes=3, floor=0.1)), 3) < 1e-12


# ------------------------------------------------------------------------------------------------ jacobi, lookahead


def both(target):
    target = LastRows(target)
    return {"jacobi": (target, JacobiDrafter(target)), "lookahead": (target, LookaheadDrafter(target, W=2, N=2, G=2))}


@pytest.mark.parametrize("name", ["jacobi", "lookahead"])
@pytest.mark.parametrize("verifier", [rejection, exact_match], ids=["rejection", "match"])
def test_jacobi_and_lookahead_are_exact(name, verifier):
    assert error_of(lambda target: both(target)[name], 3, verifier) < 1e-12


def test_jacobis_guesses_are_the_rows_after_the_rejected_ones():
    target, _ = both(ByPaths(TARGET))["jacobi"]
    drafter = JacobiDrafter(target)
    assert drafter.propose([0, 1], 3, None).tokens.tolist() == [1, 1, 1]
    best = TARGET([0, 1, 1, 1, 1], n_last=4).argmax(axis=-1).tolist()
    target([0, 1, 1, 1, 1], n_last=4)
    assert drafter.propose([0, 1, best[0]], 3, None).tokens.tolist() == best[1:]
    assert drafter.propose([2, 2], 2, None).tokens.tolist() == [2, 2]  # another text


def test_the_comb_and_the_pool_by_hand():
    """W = 2, N = 3: the second call has levels 0 and 1; its answers complete two trigrams."""
    target = LastRows(ByPaths(TARGET))
    drafter = LookaheadDrafter(target, W=2, N=3)
    first = drafter.propose([0, 1], 4, None)
    assert first.tokens.tolist() == [1, 0] and first.parents.tolist() == [-1, 0]
    target([0, 1, 1, 0], n_last=3)
    answers = target.best[1:]
    second = drafter.propose([0, 1, 2], 4, None)
    assert second.tokens.tolist() == [1, answers[0], 0, answers[1]] and second.parents.tolist() == [-1, 0, 0, 2]
    target([0, 1, 2, *second.tokens], n_last=5, parents=second.parents.tolist())
    newest = target.best[2], target.best[4]
    third = drafter.propose([0, 1, 2, 1], 4, None)
    assert drafter.pool == {1: [[answers[0], newest[0]]], 0: [[answers[1], newest[1]]]}
    assert third.tokens.tolist()[:1] == [answers[0]]  # what followed 1 in the pool comes first
    with pytest.raises(ValueError, match="expected W of 1 or more, N of 2 or more and G of 1 or more, got 1, 1 and 5"):
        LookaheadDrafter(target, W=1, N=1)


# ------------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize("verifier", [rejection, exact_match])
@pytest.mark.parametrize("children", RULES)
def test_acceptance_by_rank_is_what_the_loop_accepts(children, verifier, monkeypatch):
    """One place, two siblings: the exact probability that the first, or the second, is accepted."""
    monkeypatch.setattr("speculative.measuring.tree_size.N_COUNTED", 1)
    target, drafter = ByPaths(TARGET), TreeDrafter(ByPaths(DRAFT), widths(2), siblings=children)
    sampler = SpeculativeSampler(target, drafter, K=1, verifier=verifier)
    found = exact_distribution(lambda rng: next(sampler.rounds([0, 1], 2, rng)).nodes)
    by_draws = exact_distribution(
        lambda rng: tuple(acceptance_by_rank(target, drafter, [0, 1, 2], 1, Sampling(), rng, verifier))
    )
    wanted = [found.get((0,), 0), found.get((1,), 0)]
    np.testing.assert_allclose(sum(p * np.array(w) for w, p in by_draws.items()), wanted, atol=1e-12)


@pytest.mark.parametrize("children", RULES)
def test_k_children_together_are_accepted_as_often_as_a_tree_of_k(children):
    """The rows of "drawn" depend on how many siblings there are, so each number of them is a tree of its own."""
    target, draft, where = ByPaths(TARGET), ByPaths(DRAFT), ([0, 1, 2], 1, Sampling(), 0)

    def planted(shape):
        return target, TreeDrafter(draft, shape, siblings=children)

    if children == "without":  # one draw of siblings tells of all numbers of them
        w = acceptance_by_rank(*planted(widths(3)), *where)
        np.testing.assert_allclose(added(acceptance_together(planted, 3, *where)), w, atol=1e-15)
        return
    for seed in range(6):
        together = acceptance_together(planted, 3, *where[:3], seed)
        wanted = [acceptance_by_rank(*planted(widths(k)), *where[:3], seed).sum() for k in (1, 2, 3)]
        np.testing.assert_allclose(together, wanted, atol=1e-15)
        assert (added(together) >= 0).all() and added(together).sum() == pytest.approx(max(together))


def test_the_best_shape_is_the_best_of_all_small_ones():
    w, v = [0.5, 0.25, 0.1], [1, 1.1, 1.2, 1.5, 1.6]
    shapes = [tree for depth in range(1, 5) for n in range(5) for tree in [best_tree(n, w, depth)] if tree[0]]
    shapes += [widths(*[1] * n) for n in range(1, 5)]
    for c in (0.01, 0.2, 0.5):
        speedups = [tree_tokens(s[0], w) / (v[len(s[0])] + c * (max(depths(s[0])) + 1)) for s in shapes]
        shape, speedup = best_shape(w, c, v)
        assert speedup == pytest.approx(max(1, *speedups))
        assert speedup == pytest.approx(tree_tokens(shape[0], w) / (v[len(shape[0])] + c * (max(depths(shape[0])) + 1)))


@pytest.mark.parametrize("verifier", [exact_match, Typical()], ids=["match", "typical"])
@pytest.mark.parametrize("temperature", [0, 1])
def test_acceptance_by_rank_of_recycled_tokens(verifier, temperature):
    """It is measured along the text, so the drafter knows more and more of it."""
    target, text = Recycling(ByPaths(TARGET)), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    drafter, sampling = RecyclingDrafter(target, widths(2)), Sampling(temperature)
    w = acceptance_by_rank(target, drafter, text, 9, sampling, 0, verifier)
    assert len(w) == 2 and w.sum() > 0.3


def test_two_proposals_without_a_call_between_them_are_the_same():
    target, drafter = recycling()
    drafter.propose([0, 1], 2, None)
    target([0, 1, 2])
    first = drafter.propose([0, 1, 2], 2, None)
    assert len(first.tokens) and drafter.propose([0, 1, 2], 2, None).tokens.tolist() == first.tokens.tolist()


@pytest.mark.parametrize(
    "tree", [[-1, -1, 0], ([-1, -1], [0]), ([-1, 5], [0, 0]), ([0, 0], [0, 1]), ([-1], [-1]), ("a", "b"), (1, 2)]
)
def test_shapes_that_are_no_trees_are_refused_at_once(tree):
    makers = lambda tree: RecyclingDrafter(recycling()[0], tree), lambda tree: TreeDrafter(ByPaths(DRAFT), tree)
    for make in makers:
        with pytest.raises(ValueError, match=r"expected a tree as \(parents, ranks\), two lists of one length"):
            make(tree)


def recycling():
    target = Recycling(ByPaths(TARGET))
    return target, RecyclingDrafter(target, widths(2, 1))


def lookahead():
    target = LastRows(ByPaths(TARGET))
    return target, LookaheadDrafter(target, W=2, N=3)


def jacobi():
    target = LastRows(ByPaths(TARGET))
    return target, JacobiDrafter(target)


@pytest.mark.parametrize("make", [recycling, lookahead, jacobi])
def test_a_text_does_not_depend_on_one_that_ended_after_a_round(make):
    def used(seed):
        target, drafter = make()
        sampler = SpeculativeSampler(target, drafter, K=4)
        next(sampler.rounds([0, 1, 2], 8, 0))
        return sampler.generate([0, 1, 2], 8, seed).tokens.tolist()

    def fresh(seed):
        target, drafter = make()
        return SpeculativeSampler(target, drafter, K=4).generate([0, 1, 2], 8, seed).tokens.tolist()

    assert [used(seed) for seed in range(20)] == [fresh(seed) for seed in range(20)]


@pytest.mark.parametrize("n_vocab", [2, 4, 5, 20])
def test_recycling_has_a_tree_for_small_vocabularies(n_vocab):
    target = Recycling(TableModel.random(n_vocab))
    drafter = RecyclingDrafter(target)
    assert len(drafter.tree[0]) == 16 and max(drafter.tree[1]) < n_vocab
    generation = SpeculativeSampler(ByPaths(target), drafter, K=3).generate([1], 6, 0)
    assert len(generation.tokens) == 6
