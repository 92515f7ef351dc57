"""Drafts worked out by hand, at the ends of contexts, ranks, floors and pools, where drafters go wrong unseen."""

import copy
import math

import numpy as np
import pytest
from helpers import Clearing, random_gpt2, random_heads

from gpt2np import EarlyExit, Heads, HParams
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    EarlyExitDrafter,
    Gumbel,
    HeadsDrafter,
    ModelDrafter,
    NGramModel,
    NoisyDrafter,
    PromptLookupDrafter,
    Recycling,
    RecyclingDrafter,
    Sampling,
    SpeculativeSampler,
    SuffixDrafter,
    TreeDrafter,
    exact_match,
    widths,
)
from speculative.drafters.jacobi import JacobiDrafter, LastRows
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.ranked import grown_tree, largest
from speculative.drafters.suffix import SuffixAutomaton
from speculative.testing import TableModel
from speculative.tree import path

T3, D3 = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
TARGET = TableModel.random(5, seed=1)
SHAPE = HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2)


def wrapped(accepted=None, shape=SHAPE):
    heads = random_heads(shape)
    for head in heads:
        head["accepted"] = np.array(accepted if accepted is not None else head["accepted"], np.float32)
    return Heads(random_gpt2(shape), heads)


def test_a_penalty_on_the_draft_looks_at_draft_tokens():
    model, sampling = TableModel.random(40, seed=1), Sampling(repetition_penalty=3.0)
    for seed in range(5):
        sampler = SpeculativeSampler(model, ModelDrafter(model, sampling=sampling), K=4, sampling=sampling)
        assert sampler.generate([0], 20, seed).stats.rejected == 0


def test_a_tree_that_grows_ends_with_the_models_context():
    """A tree that grows asks its model for no more tokens than n_ctx."""
    drafter = TreeDrafter(random_gpt2(HParams(n_vocab=17, n_ctx=12, n_embd=8, n_head=2, n_layer=1)), 5, siblings="top")
    for n, levels in ((13, 0), (12, 1), (9, 1), (8, 1), (7, 2), (4, 2)):
        assert drafter.propose([1] * n, 3, None).depth <= levels and bool(levels) == bool(
            len(drafter.propose([1] * n, 3, None).tokens)
        )


def test_a_chain_of_a_tree_drafter_ends_where_that_of_a_model_does():
    """A chain ends where that of ModelDrafter does."""
    model = TableModel.random(3, seed=2, n_ctx=6)
    for n in range(3, 9):
        chains = [
            drafter.propose([0] * n, 4, np.random.default_rng(n)).tokens.tolist()
            for drafter in (ModelDrafter(model), TreeDrafter(model, widths(1, 1, 1, 1)))
        ]
        assert chains[0] == chains[1] and len(chains[0]) == min(4, max(0, 7 - n))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(repetition_penalty=3.0)], ids=["mt3", "mt6"])
def test_with_shared_noise_first_children_are_the_targets_own_draws(sampling):
    """The target as its own draft: with common random numbers the first children are its own draws, at every level."""
    target = ByPaths(TableModel.random(5, seed=1))
    sampler = SpeculativeSampler(
        target, TreeDrafter(target, widths(2, 2, 1), sampling=sampling), verifier=exact_match, K=3, sampling=sampling
    )
    for seed in range(5):
        stats = sampler.generate([0, 1], 20, Gumbel(seed)).stats
        assert stats.target_calls == 5 and stats.accepted == 15


def test_the_rows_of_a_tree_are_those_after_its_paths():
    """The rows of a tree are those of its own sampling after each path."""
    sampling, text = Sampling(repetition_penalty=3.0), [0, 1]
    model = TableModel.random(20, seed=1)
    draft = TreeDrafter(ByPaths(model), widths(2, 2), sampling=sampling).propose(text, 2, np.random.default_rng(0))
    for node in (-1, 0, 1):
        after = [*text, *draft.tokens[path(draft.parents, node)].tolist()]
        np.testing.assert_array_equal(draft.probs[draft.children(node)[0]], sampling(model(after), after)[0])


def test_how_a_tree_grows_does_not_depend_on_the_sampling():
    """.6 .4 at temperature 0.3 are .79 .21: the chain of three, and no sibling; whatever the drafter's sampling is."""
    model = ByPaths(TableModel([[0.6, 0.4]] * 2))
    for sampling in (Sampling(), Sampling(0), Sampling(9.0)):
        draft = TreeDrafter(model, 4, siblings="top", sampling=sampling).propose([0], 4, None)
        assert draft.tokens.tolist() == [0] * 4 and draft.parents.tolist() == [-1, 0, 1, 2]


def test_what_a_draft_model_does_to_its_list_does_not_reach_the_sampling():
    penalty = Sampling(repetition_penalty=2.0)
    drafts = [
        TreeDrafter(model, widths(1, 1), sampling=penalty).propose([0, 1], 2, np.random.default_rng(0))
        for model in (D3, Clearing(D3.probs))
    ]
    np.testing.assert_array_equal(drafts[0].probs, drafts[1].probs)


def test_a_share_equal_to_the_floor_is_kept():
    """After 0 came 1 and 2, each once: a share equal to the floor is kept."""
    draft = SuffixDrafter(3, n_nodes=2, floor=0.5).propose([0, 1, 0, 2, 0], 1, None)
    assert draft.tokens.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PromptLookupDrafter(3, 0), "a longest match n_max of 1 token or more, got 0"),
        (lambda: PromptLookupDrafter(3, n_copies=0), "n_copies of 1 or more, got 0"),
        (lambda: SuffixDrafter(3, floor=1.5), "a floor from 0 to 1, got 1.5"),
        (lambda: SuffixDrafter(3, floor=math.nan), "a floor from 0 to 1, got nan"),
        (lambda: PromptLookupDrafter(3).propose([-1, 0, -1, 0], 1, None), "copied token -1, and its n_vocab is 3"),
    ],
    ids=["pl6", "pl5", "su5", "su5nan", "pl4"],
)
def test_bounds_of_drafters_that_copy(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_younger_sibling_grows_without_its_elder():
    def certain(paths, n):
        return np.tile(np.arange(n), (len(paths), 1)), np.tile(np.eye(1, n), (len(paths), 1))

    draft = grown_tree(40, 5, certain, 40)
    assert len(draft.tokens) == 40 and draft.tokens[[0]] == 0
    tokens_by_parent = [[int(draft.tokens[c]) for c in draft.children(node)] for node in range(-1, 40)]
    assert all(
        tokens == list(range(len(tokens))) for tokens in tokens_by_parent
    )  # no younger sibling without its elder


def test_of_equal_values_the_first_are_the_largest():
    values = np.tile([0.0, 1.0], (5, 40))
    assert largest(values, 60) == [(i, j) for i in range(2) for j in range(1, 80, 2)][:60]


def test_more_ranks_of_heads_than_tokens():
    """More ranks were counted than there are tokens."""
    heads = wrapped([0.3, 0.2, 0.15, 0.1], HParams(n_vocab=2, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
    draft = HeadsDrafter(heads, 5).propose([0, 1, 0], 2, None)
    assert len(draft.tokens) == 5 and set(draft.tokens.tolist()) == {0, 1}


def test_heads_draft_nothing_after_one_token():
    heads = wrapped()
    assert len(HeadsDrafter(heads).propose([5], 3, None).tokens) == 0
    sampler = SpeculativeSampler(heads, HeadsDrafter(heads), verifier=exact_match, K=3, sampling=Sampling(0))
    own = AutoregressiveSampler(random_gpt2(SHAPE), sampling=Sampling(0)).generate([5], 10).tokens
    assert sampler.generate([5], 10).tokens.tolist() == own.tolist()


def test_heads_check_their_shape():
    with pytest.raises(ValueError, match=r"expected a tree as \(parents, ranks\), two lists of one length"):
        HeadsDrafter(wrapped(), ([-1, 5], [0, 0]))


def test_ngrams_fit_64_bits():
    with pytest.raises(ValueError, match="so that n-grams fit 64 bits"):
        NGramModel.from_tokens([0, 1, 2, 3], 2**21, 3)


def test_ngrams_of_nothing():
    with pytest.raises(ValueError, match="expected at least 1 tokens from 0 to 2, got 0 tokens"):
        NGramModel.from_tokens([], 3, 1)


def test_what_follows_a_node_left_out_is_left_out():
    """What follows a node that was left out is left out, too."""
    target = Recycling(ByPaths(T3), n_followers=2)
    drafter = RecyclingDrafter(target, ([-1, -1, 0, 1, 3], [0, 1, 0, 0, 0]), keep=True)
    target.followers[:] = [[1, 2], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1, 2, 0, 1] and draft.parents.tolist() == [-1, -1, 1, 2]
    target.followers[:] = [[1, -1], [-1, -1], [0, 1]]
    draft = drafter.propose([0], 3, None)
    assert draft.tokens.tolist() == [1] and draft.parents.tolist() == [-1]


def test_another_longer_text_has_no_guesses_of_jacobi():
    target = LastRows(ByPaths(T3))
    target([0, 1, 1, 1], n_last=3)
    assert JacobiDrafter(target).propose([2, 1, 2], 2, None).tokens.tolist() == [2, 2]


def test_the_pool_of_lookahead_keeps_the_latest():
    """What followed 3 most recently comes first; G are kept, each once; another text starts with none."""
    target = LastRows(ByPaths(TableModel.random(9)))
    drafter = LookaheadDrafter(target, W=1, N=2, G=2)
    for answer, pool in ((4, [[4]]), (5, [[4], [5]]), (4, [[5], [4]]), (6, [[4], [6]])):
        drafter.levels = [[3]]
        drafter.learn([answer])
        assert drafter.pool == {3: pool}
    drafter.tokens = [0]
    assert drafter.propose([0, 3], 1, None).tokens.tolist()[:2] == [6, 4]
    drafter.propose([5, 3], 1, None)
    assert drafter.pool == {}


def test_the_pool_of_lookahead_keeps_each_once():
    drafter = LookaheadDrafter(LastRows(ByPaths(TableModel.random(9))), W=1, N=2, G=3)
    for answer in (4, 5, 4):
        drafter.levels = [[3]]
        drafter.learn([answer])
    assert drafter.pool == {3: [[5], [4]]}


def test_a_lookahead_drafter_that_was_interrupted_starts_again(monkeypatch):
    """Else the answers would be learned twice, and the levels, then one too many, never dropped again."""
    target = LastRows(ByPaths(TableModel.random(9)))
    drafter, texts = LookaheadDrafter(target, W=1, N=2, G=2), ([1, 2, 3], [1, 2, 3, 4])
    drafter.propose(texts[0], 4, None)
    target([*texts[0], 5], n_last=2)

    def interrupted(self, answers):
        self.levels.append(answers)
        raise KeyboardInterrupt  # before the oldest level is dropped

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LookaheadDrafter, "learn", interrupted)
        drafter.propose(texts[1], 4, None)
    drafts = [some.propose(texts[1], 4, None) for some in (drafter, LookaheadDrafter(target, W=1, N=2, G=2))]
    assert drafts[0].tokens.tolist() == drafts[1].tokens.tolist() and len(drafter.levels) == 1


def test_the_comb_needs_as_many_levels_as_it_has():
    drafter = LookaheadDrafter(LastRows(ByPaths(T3)), W=2, N=3)
    assert drafter.propose([0, 1], 2, None).tokens.tolist() == [1, 0]
    assert drafter.propose([2, 1], 1, None).tokens.tolist() == []


def test_a_comb_cut_off_by_the_context_has_no_answers():
    """A comb that the end of the context cut off has no answers."""
    for seed in range(5):
        target = LastRows(ByPaths(TableModel.random(3, seed=seed, n_ctx=16)))
        drafter = LookaheadDrafter(target, W=4, N=3, G=2)
        sampler = SpeculativeSampler(target, drafter, K=8)
        assert len(sampler.generate([0, 1], 14, seed).tokens) == 14


def test_a_noisy_drafter_drafts_as_many_as_it_is_asked_for():
    drafter = NoisyDrafter(TableModel.random(40, seed=1), 1.0)
    assert all(len(drafter.propose([0], 6, np.random.default_rng(seed)).tokens) == 6 for seed in range(5))


def test_the_row_of_a_noisy_drafter():
    sampling = Sampling(repetition_penalty=2.0)
    row = NoisyDrafter(TARGET, 0.25, sampling=sampling).propose([0, 1], 1, np.random.default_rng(0)).probs[0]
    np.testing.assert_allclose(row, 0.75 * sampling(TARGET([0, 1]), [0, 1])[0] + 0.05)


def test_an_early_exit_has_a_threshold():
    from gpt2np import EarlyExit

    whole = EarlyExit(random_gpt2(SHAPE), 1)
    for threshold, n in ((0.0, 4), (1.0, 1)):
        draft = EarlyExitDrafter(whole, threshold=threshold).propose([1, 2, 3], 4, np.random.default_rng(0))
        assert len(draft.tokens) == n
    with pytest.raises(ValueError, match="expected a threshold from 0 to 1, got 2"):
        EarlyExitDrafter(whole, threshold=2)


def test_a_suffix_drafter_that_was_interrupted_drafts_what_a_fresh_one_drafts(monkeypatch):
    text, drafter, append = [0, 1, 2, 0, 1, 2, 0], SuffixDrafter(3), SuffixAutomaton.append
    drafter.propose(text, 4, None)

    def interrupted(self, token):
        append(self, token)
        raise KeyboardInterrupt  # before the new token is counted

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SuffixAutomaton, "append", interrupted)
        drafter.propose([*text, 1], 4, None)
    for tokens in ([*text, 1], text):
        assert (
            drafter.propose(tokens, 4, None).tokens.tolist()
            == SuffixDrafter(3).propose(tokens, 4, None).tokens.tolist()
        )


def test_a_copy_of_a_suffix_drafter_and_the_original_extend_texts_of_their_own():
    text, drafter = [0, 1, 2, 0, 1, 2, 0], SuffixDrafter(3)
    drafter.propose(text, 4, None)
    copied = copy.copy(drafter)
    for some in (drafter, copied, drafter, copied):
        text = [*text, 1] if some is drafter else text
        assert some.propose(text, 4, None).tokens.tolist() == SuffixDrafter(3).propose(text, 4, None).tokens.tolist()
        assert some.known[0].count == SuffixAutomaton(text).count


def test_a_shape_in_any_order_is_cut_at_K():
    heads = wrapped()
    draft = HeadsDrafter(heads, ([-1, 0, -1], [0, 0, 1])).propose([1, 2, 3], 1, None)
    assert draft.parents.tolist() == [-1, -1]
    assert draft.tokens.tolist() == HeadsDrafter(heads, ([-1, -1], [0, 1])).propose([1, 2, 3], 1, None).tokens.tolist()
    with pytest.raises(ValueError, match="expected ranks below 17, the number of tokens, got 17"):
        HeadsDrafter(heads, ([-1], [17]))


def test_heads_are_those_of_a_whole_model():
    with pytest.raises(
        ValueError, match="expected a GPT2, got an EarlyExit, which keeps the hidden states of its first"
    ):
        Heads(EarlyExit(random_gpt2(SHAPE), 1), random_heads(SHAPE))


@pytest.mark.parametrize(
    "make",
    [AutoregressiveSampler, lambda model, sampling: SpeculativeSampler(TARGET, ModelDrafter(model, sampling=sampling))],
    ids=["alone", "draft"],
)
def test_a_sampling_that_writes_to_its_tokens_changes_nothing_else(make):
    def writing(logits, tokens):
        probs = Sampling()(logits, tokens)
        tokens.append(0)
        return probs

    texts = [
        make(TableModel.random(5, seed=2), sampling=sampling).generate([0, 1], 20, 0).tokens.tolist()
        for sampling in (Sampling(), writing)
    ]
    assert texts[0] == texts[1]
