"""HeadsDrafter: the trees that it makes of a target's heads, and text by them."""

import numpy as np
import pytest
from helpers import random_gpt2, random_heads

from gpt2np import EarlyExit, HParams, load_heads
from speculative import (
    AutoregressiveSampler,
    Draft,
    HeadsDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    Typical,
    Verdict,
    exact_match,
    rejection,
)
from speculative.drafters.ranked import fixed_tree, grown_tree, top
from speculative.exact import exact_distribution
from speculative.testing import TableModel
from speculative.tree import depths

SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)


GREEDY = Sampling(temperature=0)


@pytest.fixture(params=["hydra", "medusa"])
def kind(request):
    return request.param


def table(paths, n):
    """Candidates by a table: token 10 * depth + rank, with probabilities .6, .3, .1, .."""
    depth = np.shape(paths)[1]
    return np.tile(10 * depth + np.arange(n), (len(paths), 1)), np.tile([0.6, 0.3, 0.1, 0.0][:n], (len(paths), 1))


def test_a_fixed_tree_has_the_tokens_of_its_ranks():
    shape = Shape.best(5, [0.6, 0.3])
    assert shape == Shape([-1, -1, 0, 0, 2], [0, 1, 0, 1, 0])
    draft = fixed_tree(shape, 3, lambda paths, n: table(paths, n)[0], 40)
    assert draft.tokens.tolist() == [0, 1, 10, 11, 20] and tuple(draft.parents) == shape.parents
    assert (draft.probs.argmax(-1) == draft.tokens).all() and (draft.probs.sum(-1) == 1).all()
    assert fixed_tree(shape, 2, lambda paths, n: table(paths, n)[0], 40).tokens.tolist() == [0, 1, 10, 11]


def test_a_grown_tree_is_the_best_tree_where_all_nodes_have_the_same_probabilities():
    for n in range(1, 5):
        shape, draft = Shape.best(n, [0.6, 0.3, 0.1, 0.0][:n]), grown_tree(n, 4, table, 40)
        assert tuple(draft.parents) == shape.parents
        assert draft.tokens.tolist() == [10 * depth + rank for depth, rank in zip(depths(shape.parents), shape.ranks)]
    certain = lambda paths, n: (table(paths, n)[0], np.eye(len(paths), n) * 0 + (np.arange(n) == 0))  # noqa: E731
    assert grown_tree(3, 3, certain, 40).parents.tolist() == [-1, 0, 1]  # a chain; ties: the parent first


def test_a_node_takes_the_candidates_of_its_own_path():
    """Candidate r after a path has the digits of the path, and then r + 1."""

    def digits(paths, n):
        last = np.array([path[-1] if len(path) else 0 for path in paths])
        return 10 * last[:, None] + 1 + np.arange(n)

    draft = fixed_tree(Shape([-1, -1, 0, 0, 1, 4], [0, 1, 0, 1, 0, 1]), 3, digits, 300)
    assert draft.tokens.tolist() == [1, 2, 11, 12, 21, 212]
    even = lambda paths, n: (digits(paths, n), np.full((len(paths), n), 1 / n))  # noqa: E731
    assert grown_tree(2, 2, even, 300).tokens.tolist() == [1, 2]


def test_top():
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]])
    assert top(scores, 2).tolist() == [[1, 2], [2, 0]] and top(scores, 9).shape == (2, 3)


@pytest.mark.parametrize("tree", [None, Shape.chain(1), Shape([-1, -1, 0, 1, 2], [0, 1, 0, 0, 0])], ids=str)
def test_greedy_text_with_heads_is_the_targets_own(kind, tree):
    target = random_gpt2(SHAPE)
    drafter = HeadsDrafter(target, random_heads(SHAPE, kind), tree)
    sampler = SpeculativeSampler(target, drafter, verifier=exact_match, K=4, sampling=GREEDY)
    generation = sampler.generate([1, 2, 3], 30)
    wanted = AutoregressiveSampler(random_gpt2(SHAPE), sampling=GREEDY).generate([1, 2, 3], 30)
    np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert max(r.draft.depth for r in generation.rounds) <= 3  # as many as there are heads
    again = sampler.generate([1, 2, 3], 30)  # a used model drafts what a fresh one drafts
    assert [r.drafted.tolist() for r in again.rounds] == [r.drafted.tolist() for r in generation.rounds]


@pytest.mark.parametrize("verifier", [exact_match, rejection])
def test_the_text_has_the_targets_distribution(kind, verifier):
    shape = HParams(n_vocab=3, n_ctx=12, n_embd=12, n_head=2, n_layer=1)
    target, tree = random_gpt2(shape), Shape.best(4, [0.6, 0.3])
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(target).generate([0, 1], 3, rng).tokens)
    drafter = HeadsDrafter(target, random_heads(shape, kind), tree)
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=2)
    found = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert found.keys() == wanted.keys() and max(abs(found[text] - wanted[text]) for text in wanted) < 1e-12


def test_typical_acceptance_takes_the_longest_path_of_a_tree():
    """Token 0 is typical everywhere and token 2 nowhere; the first child is accepted but leads no further."""
    draft = Draft(np.array([0, 1, 2, 0, 1]), np.eye(3)[[0, 1, 2, 0, 1]], np.array([-1, -1, 0, 1, 3]))
    p = np.tile([0.6, 0.4, 0.0], (6, 1))
    assert Typical()(draft, p, None) == Verdict((1, 3, 4), 0)
    p[4] = [0.0, 0.0, 1.0]  # after node 3: its child is not typical
    assert Typical()(draft, p, None) == Verdict((1, 3), 2)
    p[2] = [0.0, 1.0, 0.0]  # after node 1, too: two paths of length 1, of which the first is taken
    assert Typical()(draft, p, None) == Verdict((0,), 0)


def test_typical_acceptance_over_a_tree_is_lossy():
    shape = HParams(n_vocab=3, n_ctx=12, n_embd=12, n_head=2, n_layer=1)
    target = random_gpt2(shape)
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(target).generate([0, 1], 3, rng).tokens)
    sampler = SpeculativeSampler(target, HeadsDrafter(target, random_heads(shape)), verifier=Typical(), K=2)
    found = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert len(found) == 1 and max(abs(found.get(text, 0) - wanted[text]) for text in wanted) > 0.05


def test_heads_pay_on_the_bundled_pair(tiny_pair):
    """One held-out prompt: the target's own text, in fewer calls."""
    target, _, tokenizer = tiny_pair
    prompt = tokenizer.encode("Once upon a time there lived a king who lived in a great forest")
    drafter = HeadsDrafter(target, load_heads("tiny-target"))
    sampler = SpeculativeSampler(target, drafter, verifier=exact_match, K=3, sampling=GREEDY)
    generation = sampler.generate(prompt, 60)
    wanted = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 60)
    np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert generation.stats.tokens_per_target_call > 1.6


def test_the_tree_has_the_most_probable_tokens_of_each_head():
    target, heads, text = random_gpt2(SHAPE), random_heads(SHAPE), [1, 2, 3]
    draft = HeadsDrafter(target, heads, Shape.widths(2, 1)).propose(text, 3, None)
    assert draft.parents.tolist() == [-1, -1, 0, 1]
    state = target.states(text[:-1])
    first = np.argsort(-heads.logits(target, state, np.array([[3]]))[0])[:2]
    second = heads.logits(target, np.repeat(state, 2, axis=0), np.array([[3, x] for x in first])).argmax(axis=-1)
    assert draft.tokens.tolist() == [*first, *second]


def test_more_ranks_were_counted_than_there_are_tokens():
    shape = HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2)
    draft = HeadsDrafter(random_gpt2(shape), random_heads(shape)).propose([0, 1, 0], 3, None)
    assert len(draft.tokens) == 7 and set(draft.tokens.tolist()) == {0, 1}


def test_nothing_is_drafted_after_one_token_and_the_text_is_the_targets():
    target = random_gpt2(SHAPE)
    drafter = HeadsDrafter(target, random_heads(SHAPE))
    assert len(drafter.propose([5], 3, None).tokens) == 0
    sampler = SpeculativeSampler(target, drafter, verifier=exact_match, K=3, sampling=Sampling(0))
    own = AutoregressiveSampler(random_gpt2(SHAPE), sampling=Sampling(0)).generate([5], 10).tokens
    assert sampler.generate([5], 10).tokens.tolist() == own.tolist()


def test_a_shape_in_any_order_is_cut_at_K():
    target, heads = random_gpt2(SHAPE), random_heads(SHAPE)
    draft = HeadsDrafter(target, heads, Shape([-1, 0, -1], [0, 0, 1])).propose([1, 2, 3], 1, None)
    assert draft.parents.tolist() == [-1, -1]
    wanted = HeadsDrafter(target, heads, Shape.widths(2)).propose([1, 2, 3], 1, None)
    assert draft.tokens.tolist() == wanted.tokens.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m, h: HeadsDrafter(m, h, 8), r"expected a tree such as Shape\.best\(8, weights\) or Shape\.widths"),
        (lambda m, h: HeadsDrafter(m, h, Shape([-1], [17])), "expected ranks below 17, the number of tokens, got 17"),
        (lambda m, h: HeadsDrafter(TableModel.random(3), h), "expected a model with hidden states, such as a gpt2np"),
        (lambda m, h: HeadsDrafter(EarlyExit(m, 1), h), "expected a model with hidden states, such as a gpt2np.GPT2"),
        (lambda m, h: HeadsDrafter(m, m), r"expected heads, such as gpt2np\.load_heads returns, got GPT2"),
        (lambda m, h: HeadsDrafter(m, load_heads("tiny-target")), "expected heads for a model with n_embd 15, got"),
    ],
)
def test_what_has_no_states_no_heads_or_no_tree_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(random_gpt2(SHAPE), random_heads(SHAPE))
