"""HeadsDrafter: the trees that it makes of a target's heads, and text by them."""

import numpy as np
import pytest
from helpers import random_gpt2, random_heads

from gpt2np import EarlyExit, Heads, HParams, load_heads
from speculative import (
    AutoregressiveSampler,
    Draft,
    HeadsDrafter,
    Sampling,
    SpeculativeSampler,
    Typical,
    Verdict,
    best_tree,
    exact_match,
    rejection,
    widths,
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


def wrapped(kind="hydra", shape=SHAPE):
    return Heads(random_gpt2(shape), random_heads(shape, kind))


def table(paths, n):
    """Candidates by a table: token 10 * depth + rank, with probabilities .6, .3, .1, .."""
    depth = np.shape(paths)[1]
    return np.tile(10 * depth + np.arange(n), (len(paths), 1)), np.tile([0.6, 0.3, 0.1, 0.0][:n], (len(paths), 1))


def test_a_fixed_tree_has_the_tokens_of_its_ranks():
    shape = best_tree(5, [0.6, 0.3])
    assert shape == ([-1, -1, 0, 0, 2], [0, 1, 0, 1, 0])
    draft = fixed_tree(shape, 3, lambda paths, n: table(paths, n)[0], 40)
    assert draft.tokens.tolist() == [0, 1, 10, 11, 20] and draft.parents.tolist() == shape[0]
    assert (draft.probs.argmax(-1) == draft.tokens).all() and (draft.probs.sum(-1) == 1).all()
    assert fixed_tree(shape, 2, lambda paths, n: table(paths, n)[0], 40).tokens.tolist() == [0, 1, 10, 11]


def test_a_grown_tree_is_the_best_tree_where_all_nodes_have_the_same_probabilities():
    for n in range(1, 5):
        parents, ranks = best_tree(n, [0.6, 0.3, 0.1, 0.0][:n])
        draft = grown_tree(n, 4, table, 40)
        assert draft.parents.tolist() == parents
        assert draft.tokens.tolist() == [10 * depth + rank for depth, rank in zip(depths(parents), ranks)]
    certain = lambda paths, n: (table(paths, n)[0], np.eye(len(paths), n) * 0 + (np.arange(n) == 0))  # noqa: E731
    assert grown_tree(3, 3, certain, 40).parents.tolist() == [-1, 0, 1]  # a chain; ties: the parent first


def test_a_node_takes_the_candidates_of_its_own_path():
    """Candidate r after a path has the digits of the path, and then r + 1."""

    def digits(paths, n):
        last = np.array([path[-1] if len(path) else 0 for path in paths])
        return 10 * last[:, None] + 1 + np.arange(n)

    draft = fixed_tree(([-1, -1, 0, 0, 1, 4], [0, 1, 0, 1, 0, 1]), 3, digits, 300)
    assert draft.tokens.tolist() == [1, 2, 11, 12, 21, 212]
    even = lambda paths, n: (digits(paths, n), np.full((len(paths), n), 1 / n))  # noqa: E731
    assert grown_tree(2, 2, even, 300).tokens.tolist() == [1, 2]


def test_top():
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]])
    assert top(scores, 2).tolist() == [[1, 2], [2, 0]] and top(scores, 9).shape == (2, 3)


def test_a_target_without_heads_is_refused():
    with pytest.raises(ValueError, match=r"expected a target with heads, such as gpt2np\.Heads"):
        HeadsDrafter(random_gpt2(SHAPE))
    with pytest.raises(ValueError, match="expected a tree of 1 node or more, got 0"):
        HeadsDrafter(wrapped(), 0)


@pytest.mark.parametrize("tree", [6, 1, ([-1, -1, 0, 1, 2], [0, 1, 0, 0, 0])], ids=str)
def test_greedy_text_with_heads_is_the_targets_own(kind, tree):
    heads = wrapped(kind)
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads, tree), verifier=exact_match, K=4, sampling=GREEDY)
    generation = sampler.generate([1, 2, 3], 30)
    wanted = AutoregressiveSampler(random_gpt2(SHAPE), sampling=GREEDY).generate([1, 2, 3], 30)
    np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert max(r.depth for r in generation.rounds) <= 3  # as many as there are heads
    again = sampler.generate([1, 2, 3], 30)  # a used model drafts what a fresh one drafts
    assert [r.drafted.tolist() for r in again.rounds] == [r.drafted.tolist() for r in generation.rounds]


@pytest.mark.parametrize("verifier", [exact_match, rejection])
def test_the_text_has_the_targets_distribution(kind, verifier):
    shape = HParams(n_vocab=3, n_ctx=12, n_embd=12, n_head=2, n_layer=1)
    heads = wrapped(kind, shape)
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(heads.model).generate([0, 1], 3, rng).tokens)
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads, 4), verifier=verifier, K=2)
    found = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert found.keys() == wanted.keys() and max(abs(found[text] - wanted[text]) for text in wanted) < 1e-12


def test_typical_acceptance_takes_the_longest_path_of_a_tree():
    """Token 0 is typical everywhere and token 2 nowhere; the first child is accepted but leads no further."""
    draft = Draft(np.array([0, 1, 2, 0, 1]), np.eye(3)[[0, 1, 2, 0, 1]], np.array([-1, -1, 0, 1, 3]))
    p = np.tile([0.6, 0.4, 0.0], (6, 1))
    assert Typical()(draft, p, None) == Verdict(3, 0, (1, 3, 4))
    p[4] = [0.0, 0.0, 1.0]  # after node 3: its child is not typical
    assert Typical()(draft, p, None) == Verdict(2, 2, (1, 3))
    p[2] = [0.0, 1.0, 0.0]  # after node 1, too: two paths of length 1, of which the first is taken
    assert Typical()(draft, p, None) == Verdict(1, 0, (0,))


def test_typical_acceptance_over_a_tree_is_lossy():
    shape = HParams(n_vocab=3, n_ctx=12, n_embd=12, n_head=2, n_layer=1)
    heads = wrapped("hydra", shape)
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(heads.model).generate([0, 1], 3, rng).tokens)
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads, 4), verifier=Typical(), K=2)
    found = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert len(found) == 1 and max(abs(found.get(text, 0) - wanted[text]) for text in wanted) > 0.05


def test_heads_pay_on_the_bundled_pair(tiny_pair):
    """One held-out prompt: the target's own text, in fewer calls."""
    target, _, tokenizer = tiny_pair
    heads = Heads(target, load_heads("tiny-target"))
    prompt = tokenizer.encode("Once upon a time there lived a king who lived in a great forest")
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads), verifier=exact_match, K=3, sampling=GREEDY)
    generation = sampler.generate(prompt, 60)
    wanted = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 60)
    np.testing.assert_array_equal(generation.tokens, wanted.tokens)
    assert generation.stats.tokens_per_target_call > 1.6


def heads_of(accepted=None, shape=SHAPE):
    heads = random_heads(shape)
    for head in heads:
        head["accepted"] = np.array(accepted if accepted is not None else head["accepted"], np.float32)
    return Heads(random_gpt2(shape), heads)


def test_the_tree_has_the_most_probable_tokens_of_each_head():
    heads, text = heads_of(), [1, 2, 3]
    draft = HeadsDrafter(heads, widths(2, 1)).propose(text, 3, None)
    assert draft.parents.tolist() == [-1, -1, 0, 1]
    first = np.argsort(-heads.head_logits(text, np.empty((1, 0), int))[0])[:2]
    second = heads.head_logits(text, first[:, None]).argmax(axis=-1)
    assert draft.tokens.tolist() == [*first, *second]


def test_more_ranks_were_counted_than_there_are_tokens():
    heads = heads_of([0.3, 0.2, 0.15, 0.1], HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
    draft = HeadsDrafter(heads, 5).propose([0, 1, 0], 2, None)
    assert len(draft.tokens) == 5 and set(draft.tokens.tolist()) == {0, 1}


def test_nothing_is_drafted_after_one_token_and_the_text_is_the_targets():
    heads = heads_of()
    assert len(HeadsDrafter(heads).propose([5], 3, None).tokens) == 0
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads), verifier=exact_match, K=3, sampling=Sampling(0))
    own = AutoregressiveSampler(random_gpt2(SHAPE), sampling=Sampling(0)).generate([5], 10).tokens
    assert sampler.generate([5], 10).tokens.tolist() == own.tolist()


def test_a_shape_in_any_order_is_cut_at_K():
    heads = heads_of()
    draft = HeadsDrafter(heads, ([-1, 0, -1], [0, 0, 1])).propose([1, 2, 3], 1, None)
    assert draft.parents.tolist() == [-1, -1]
    assert draft.tokens.tolist() == HeadsDrafter(heads, ([-1, -1], [0, 1])).propose([1, 2, 3], 1, None).tokens.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeadsDrafter(heads_of(), ([-1, 5], [0, 0])), r"expected a tree as \(parents, ranks\), two lists of"),
        (lambda: HeadsDrafter(heads_of(), ([-1], [17])), "expected ranks below 17, the number of tokens, got 17"),
        (lambda: HeadsDrafter(heads_of(), 0), "expected a tree of 1 node or more, got 0"),
        (lambda: HeadsDrafter(TableModel.random(3)), r"expected a target with heads, such as gpt2np.Heads\(model"),
        (lambda: Heads(EarlyExit(random_gpt2(SHAPE), 1), random_heads(SHAPE)), "expected a GPT2, got an EarlyExit, wh"),
    ],
)
def test_what_has_no_heads_or_no_tree_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
