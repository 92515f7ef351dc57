"""The drafters, one by one; that each keeps the contract of `Draft` is in test_testing.py."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from helpers import random_gpt2, random_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np.early_exit
from gpt2np import EarlyExit, HParams
from gpt2np.files.params import build_params
from speculative import (
    AutoregressiveSampler,
    EarlyExitDrafter,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    NoisyDrafter,
    OracleDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    SuffixDrafter,
    exact_distribution,
    rejection,
)
from speculative.drafters.suffix import SuffixAutomaton
from speculative.testing import TableModel, check_language_model
from speculative.theory import overlap

GREEDY, RNG = Sampling(temperature=0), np.random.default_rng(0)
texts = st.lists(st.integers(0, 2), max_size=30)


def guesses(drafter, tokens, K=4):
    return drafter.propose(tokens, K, np.random.default_rng(0)).tokens.tolist()


# ------------------------------------------------------------------------------------------------ confidence


def test_a_draft_ends_after_the_first_unsure_token():
    model = TableModel([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.4, 0.3, 0.3]])  # 0 -> 1 -> 2 -> unsure
    for sampling in (GREEDY, Sampling()):
        drafts = [ModelDrafter(model, sampling=sampling, threshold=t) for t in (0, 0.25, 0.41, 0.9)]
        assert [len(guesses(drafter, [0], 2)) for drafter in drafts] == [2, 2, 2, 2]
        assert [len(guesses(drafter, [2], 3)) for drafter in drafts[:2]] == [3, 3]
        assert [len(guesses(drafter, [2], 3)) for drafter in drafts[2:]] == [1, 1]
        assert len(guesses(drafts[2], [1], 3)) == 2  # 2 is sure, what follows it is not, and stays
    with pytest.raises(ValueError, match="expected a threshold from 0 to 1, got 2"):
        ModelDrafter(model, threshold=2)


# ------------------------------------------------------------------------------------------------ n-grams


def witten_bell(tokens, n_vocab, context, n):
    """The row by the definition: counts looked up in the text itself, order by order."""
    row = np.full(n_vocab, 1 / n_vocab)
    for length in range(min(n, len(context) + 1)):
        end = context[len(context) - length :]
        after = [tokens[i + length] for i in range(len(tokens) - length) if tokens[i : i + length] == end]
        if after:
            counts, t = np.bincount(after, minlength=n_vocab), len(set(after))
            row = (counts + t * row) / (len(after) + t)
    return row


@given(st.lists(st.integers(0, 3), min_size=4, max_size=40), st.lists(st.integers(0, 3), max_size=4), st.integers(1, 4))
@settings(deadline=None, derandomize=True)
def test_rows_are_those_of_witten_and_bell(tokens, context, n):
    model = NGramModel.from_tokens(tokens, n_vocab=5, n=n)
    row = model.row(context)
    np.testing.assert_allclose(row, witten_bell(tokens, 5, context, n), rtol=1e-12)
    assert abs(row.sum() - 1) < 1e-12 and (row > 0).all()


def test_a_trigram_row_by_hand():
    """The text 0 1 2 0 1 0: of 6 tokens 3 are 0 and 2 are 1; after 1 came 2 and 0; after 0 1 the same."""
    unigrams = (np.array([3, 2, 1]) + 3 * np.full(3, 1 / 3)) / 9
    bigrams = (np.array([1, 0, 1]) + 2 * unigrams) / 4
    trigrams = (np.array([1, 0, 1]) + 2 * bigrams) / 4
    model = NGramModel.from_tokens([0, 1, 2, 0, 1, 0], n_vocab=3, n=3)
    for context, row in (([], unigrams), ([1], bigrams), ([1, 1], bigrams), ([2, 0, 1], trigrams)):
        np.testing.assert_allclose(model.row(context), row, rtol=1e-14)


def test_the_counts_make_a_language_model():
    model = NGramModel.from_tokens([0, 1, 2, 0, 1, 0], n_vocab=3)
    check_language_model(model)
    rows = Sampling()(model([2, 0, 1], n_last=2))
    np.testing.assert_allclose(rows, [model.row([2, 0]), model.row([2, 0, 1])], rtol=1e-6)


def test_a_table_is_saved_and_loaded(tmp_path):
    model = NGramModel.from_tokens(np.random.default_rng(0).integers(0, 7, 500), n_vocab=7)
    model.save(tmp_path / "table")
    again = NGramModel.load(tmp_path / "table")
    assert again.n_vocab == 7 and len(again.counts) == 3
    for context in ([], [3], [1, 2], [6, 5, 4]):
        np.testing.assert_array_equal(again.row(context), model.row(context))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("n_vocab", np.array(0)),
        ("n_vocab", np.array(-7)),
        ("n_vocab", np.array(10**12)),
        ("n_vocab", np.array(7.0)),
        ("n_vocab", np.array([7, 7])),
        ("codes1", np.array([0, 1, 7])),
        ("codes1", np.array([-1, 1, 2])),
        ("codes1", np.array([1, 0, 2])),
        ("codes1", np.array([1, 1, 2])),
        ("codes1", np.array([0, 1, 2], np.int32)),
        ("codes1", np.array([[0, 1, 2]])),
        ("codes1", np.array([0, 1])),
        ("counts1", np.array([1, 0, 1])),
        ("counts1", np.array([1, -5, 1])),
        ("counts1", np.array([2**62, 2**62, 2**62])),
        ("counts1", np.array([1.0, 1.0, 1.0])),
        ("codes2", np.zeros(10_000_000, np.int8)),  # compressed to nothing
        ("counts1", np.array([None, 1, 1])),
    ],
)
def test_a_table_with_other_arrays_is_refused(tmp_path, name, array):
    model = NGramModel.from_tokens([0, 1, 2, 0], n_vocab=7, n=1)
    arrays = {"n_vocab": np.array(7), "codes1": model.counts[0][0], "counts1": model.counts[0][1]}
    with open(tmp_path / "table", "wb") as file:
        (np.savez_compressed if name == "codes2" else np.savez)(file, **arrays | {name: array})
    with pytest.raises(ValueError, match="table is not a table of n-grams"):
        NGramModel.load(tmp_path / "table")


@pytest.mark.parametrize("tokens", [[0.5, 1.5, 1.0], [[0, 1], [1, 0]], ["0", "1", "2"]])
def test_only_whole_numbers_in_a_row_are_counted(tokens):
    with pytest.raises(ValueError, match="expected token ids in one list, got"):
        NGramModel.from_tokens(tokens, n_vocab=3, n=1)


@pytest.mark.parametrize("content", [b"", b"no table", b"PK\x03\x04 broken", None])
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    path = tmp_path / "table"
    if content is None:
        with open(path, "wb") as file:
            np.savez(file, codes1=np.arange(3), n_vocab=np.array(3))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"not a table of n-grams: expected a file written by NGramModel\.save"):
        NGramModel.load(path)


@pytest.mark.parametrize(
    ("tokens", "n_vocab", "n", "message"),
    [
        ([0, 1], 3, 3, "expected at least 3 tokens from 0 to 2, got 2"),
        ([0, 1, 3], 3, 3, "expected at least 3 tokens from 0 to 2"),
        ([0, 1, -1], 3, 3, "expected at least 3 tokens from 0 to 2"),
        ([0] * 9, 50257, 5, "expected n from 1 to 4 for 50257 tokens, so that n-grams fit 64 bits, got 5"),
        ([0] * 9, 3, 0, "got 0"),
    ],
)
def test_what_cannot_be_counted_is_refused(tokens, n_vocab, n, message):
    with pytest.raises(ValueError, match=message):
        NGramModel.from_tokens(tokens, n_vocab, n)


def test_a_table_from_a_text_or_from_the_targets_own_output(tiny_pair):
    """A table counted from the target's own greedy text predicts that text better than a table of another text."""
    target, _, tokenizer = tiny_pair
    prompt = tokenizer.encode("Once upon a time")
    own = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 60).tokens
    other = tokenizer.encode("Of all the things that are told of the sea and the ships, this is not one. " * 3)
    accepted = []
    for tokens in (own, other):
        model = NGramModel.from_tokens(tokens, target.n_vocab)
        sampler = SpeculativeSampler(target, NGramDrafter(model, sampling=GREEDY), sampling=GREEDY)
        generation = sampler.generate(prompt, 60)
        np.testing.assert_array_equal(generation.tokens, own)
        accepted.append(generation.stats.accepted)
    assert accepted[0] > 20 > accepted[1]


# ------------------------------------------------------------------------------------------------ copying


@pytest.mark.parametrize(
    ("tokens", "n_max", "wanted", "of_two"),
    [
        ([0, 1, 2, 3, 0, 1], 3, [2, 3, 0, 1], [2, 3]),  # the match 0 1
        ([0, 1, 5, 0, 1, 6, 0, 1], 3, [5, 0, 1, 6], [6, 0]),  # after the nearer of two matches there are only 3 tokens
        ([0, 1, 5, 0, 1, 6, 7, 0, 1], 3, [6, 7, 0, 1], [6, 7]),
        ([0, 1, 0, 1, 0, 1], 2, [0, 1, 0, 1], [0, 1]),  # for a period of 2, too, a draft of 4 tokens
        ([9, 1, 5, 7, 1, 6, 9, 1], 3, [5, 7, 1, 6], [5, 7]),  # the longer match 9 1, though 1 was seen later
        ([9, 1, 5, 7, 1, 6, 9, 1], 1, [5, 7, 1, 6], [6, 9]),
        ([4, 4, 4], 3, [4], [4]),  # not the suffix itself, but it may overlap
        ([4] * 9, 3, [4] * 4, [4] * 2),
        ([0, 1, 2], 3, [], []),
        ([5], 3, [], []),
        ([1, 2, 3, 4, 8, 2, 3, 4, 9, 1, 2, 3, 4], 3, [9, 1, 2, 3], [9, 1]),  # longer matches count as n_max
    ],
)
def test_prompt_lookup_by_hand(tokens, n_max, wanted, of_two):
    drafter = PromptLookupDrafter(10, n_max)
    draft = drafter.propose(tokens, 4, None)
    assert draft.tokens.tolist() == wanted and draft.tokens.dtype == np.int64
    np.testing.assert_array_equal(draft.probs, np.eye(10)[wanted].reshape(-1, 10))
    assert guesses(drafter, tokens, 2) == of_two and guesses(drafter, tokens, 0) == []


@given(texts, st.integers(1, 4), st.integers(0, 5))
@settings(deadline=None, derandomize=True)
def test_prompt_lookup_by_its_definition(tokens, n_max, K):
    """The longest match; of these, one with K tokens after it, or as many as there are; of these, the nearest."""
    n_text = len(tokens)
    found = [(0, 0, n_text)]
    for n, end in itertools.product(range(1, min(n_max, n_text) + 1), range(1, n_text)):
        if end >= n and tokens[end - n : end] == tokens[n_text - n :]:
            found.append((n, min(K, n_text - end), end))
    end = max(found)[2]
    assert guesses(PromptLookupDrafter(3, n_max), tokens, K) == tokens[end : end + K]


def places(tokens, part):
    """How often `part` occurs in `tokens`."""
    return sum(tokens[i : i + len(part)] == part for i in range(len(tokens) - len(part) + 1))


@given(texts, st.integers(0, 30))
@settings(deadline=None, derandomize=True)
def test_the_automaton_knows_every_substring_and_how_often_it_occurs(tokens, n_at_once):
    automaton = SuffixAutomaton(tokens[:n_at_once])
    for n, token in enumerate(tokens, 1):
        if n > n_at_once:
            automaton.extend(token)
        elif n < min(n_at_once, len(tokens)):
            continue
        if n not in (1, 2, 5, len(tokens)):
            continue
        text, substrings = tokens[:n], {tuple(tokens[i:j]) for i in range(n) for j in range(i + 1, n + 1)}
        found, pending = {}, [((), 0)]
        while pending:  # every path from the start is a substring, and no substring is missing
            part, state = pending.pop()
            found[part] = automaton.count[state]
            pending += [((*part, token), after) for token, after in automaton.following[state].items()]
        assert found.keys() - {()} == substrings
        assert all(found[part] == places(text, list(part)) for part in substrings)
        assert len(automaton.link) <= 2 * n


@given(texts, texts)
@settings(deadline=None, derandomize=True)
def test_the_longest_suffix_that_occurs_in_a_text(corpus, tokens):
    _, length = SuffixAutomaton(corpus).match(tokens)
    wanted = max(n for n in range(len(tokens) + 1) if n == 0 or places(corpus, tokens[len(tokens) - n :]))
    assert length == wanted


def by_definition(corpus, tokens, K, floor, factor):
    """The suffix drafter's tokens, with counts looked up in the texts themselves."""
    found = [(n, tokens) for n in range(1, len(tokens)) if places(tokens, tokens[-n:]) > 1]
    found += [(n, corpus) for n in range(1, len(tokens) + 1) if places(corpus, tokens[-n:])]
    n, text = max(found, key=lambda match: (match[0], match[1] is tokens), default=(0, tokens))
    part, drafted, probability = tokens[len(tokens) - n :], [], 1.0
    while len(drafted) < min(K, int(factor * n)):
        counts = [places(text, [*part, *drafted, token]) for token in range(3)]
        if not sum(counts) or (probability := probability * max(counts) / sum(counts)) < floor:
            break
        drafted.append(counts.index(max(counts)))
    return drafted


@given(texts, texts.filter(bool), st.integers(0, 6), st.sampled_from([0, 0.3, 0.5, 1]), st.sampled_from([0.5, 1, 4]))
@settings(deadline=None, derandomize=True)
def test_the_suffix_drafter_by_its_definition(corpus, tokens, K, floor, factor):
    drafter = SuffixDrafter(3, corpus, floor=floor, factor=factor)
    wanted = by_definition(corpus, tokens, K, floor, factor)
    guesses(drafter, tokens[: len(tokens) // 2], K)  # the text grows ...
    assert guesses(drafter, tokens, K) == wanted
    guesses(drafter, [2, 2, *tokens], K)  # ... or is another one
    assert guesses(drafter, tokens, K) == wanted


def test_a_draft_grows_with_its_match_and_ends_where_it_is_unsure():
    drafter = SuffixDrafter(10, factor=2, floor=0.6)
    assert guesses(drafter, [1, 2, 3, 4, 5, 6, 7, 1], 9) == [2, 3]  # a match of one token: two draft tokens
    assert guesses(drafter, [1, 2, 3, 4, 5, 6, 7, 1, 2], 9) == [3, 4, 5, 6]
    assert guesses(drafter, [1, 2, 3, 9, 1, 2, 4, 8, 1], 9) == [2]  # after 1 2 came 3 and 4, each once: 0.5 < 0.6
    # after 1 came 2 three times of four, after 1 2 came 3 twice of three: 3/4 and then 1/2 for both
    assert guesses(drafter, [1, 2, 3, 8, 1, 2, 3, 7, 1, 2, 4, 6, 1, 5, 0, 1], 9) == [2]
    assert guesses(drafter, [1, 2, 3], 9) == []
    assert guesses(SuffixDrafter(10, [1, 2, 3, 4]), [7, 1, 2], 9) == [3, 4]  # from the corpus


@pytest.mark.parametrize("drafter", [PromptLookupDrafter(2048), SuffixDrafter(2048)], ids=["lookup", "suffix"])
def test_copying_pays_where_the_text_repeats(drafter):
    """A target whose text repeats every 20 tokens: after the first period nearly all draft tokens are right."""

    class Circle:
        n_vocab, n_ctx = 2048, 512

        def __call__(self, tokens, n_last=1):
            rows = np.full((n_last, 2048), -np.inf, np.float32)
            rows[np.arange(n_last), [(token + 1) % 20 for token in tokens[-n_last:]]] = 0
            return rows

    stats = SpeculativeSampler(Circle(), drafter, K=4, sampling=GREEDY).generate([0], 200).stats
    assert stats.target_calls <= 20 + 180 / 5 + 4 and stats.rejected == 0


# ------------------------------------------------------------------------------------------------ early exit

SHAPE = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=5)


@pytest.fixture
def blocks_run(monkeypatch):
    """A list of [number of tokens] for each block that the early exit runs."""
    run = []

    def counted(x, *arguments):
        run.append(len(x))
        return gpt2np.layers.block(x, *arguments)

    monkeypatch.setattr(gpt2np.model, "block", counted)
    return run


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_the_whole_has_the_logits_of_the_model_whatever_was_asked_before(n_layers):
    model, whole = random_gpt2(SHAPE), EarlyExit(random_gpt2(SHAPE), n_layers)
    check_language_model(whole)
    check_language_model(whole.early_exit)
    rng, tokens = np.random.default_rng(0), [3]
    for _ in range(60):  # both in turn, on texts that grow, branch and shrink
        tokens = tokens[: int(rng.integers(1, len(tokens) + 1))] + rng.integers(0, 17, int(rng.integers(0, 5))).tolist()
        n_last = int(rng.integers(1, len(tokens) + 1))
        asked = whole.early_exit if rng.random() < 0.5 else whole
        logits = asked(tokens, n_last)
        if asked is whole:
            np.testing.assert_allclose(logits, model(tokens, n_last), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("K", range(1, 9))
def test_its_logits_are_the_models_own_to_the_bit(K):
    """In blocks of K draft tokens, some of which are rolled back, compared with one token at a time."""
    model, whole, rng = random_gpt2(SHAPE), EarlyExit(random_gpt2(SHAPE), 2), np.random.default_rng(K)
    text = rng.integers(0, 17, 50).tolist()
    wanted = [model(text[:n])[0] for n in range(1, 51)]
    n = 1
    while n + K <= 50:
        whole.early_exit([*text[:n], *rng.integers(0, 17, K - 1).tolist()])  # a draft, mostly wrong
        np.testing.assert_array_equal(whole(text[: n + K], n_last=K + 1), wanted[n - 1 : n + K])
        n += int(rng.integers(1, K + 2))


def test_the_exit_is_the_first_layers_with_the_whole_models_head():
    params = build_params(random_tensors(SHAPE), SHAPE, "random")
    cut = gpt2np.GPT2({**params, "blocks": params["blocks"][:2]}, HParams(17, 64, 15, 3, 2))
    exit_after_2 = EarlyExit(random_gpt2(SHAPE), 2).early_exit
    for tokens in ([1, 2, 3], [1, 2, 3, 4], [5]):
        np.testing.assert_allclose(exit_after_2(tokens), cut(tokens), rtol=1e-4, atol=1e-5)


def test_nothing_is_computed_twice(blocks_run):
    """For 6 prompt tokens and 3 draft tokens, the first 2 layers run each token once, and so do the last 3."""
    whole = EarlyExit(random_gpt2(SHAPE), 2)
    drafter = EarlyExitDrafter(whole, sampling=GREEDY)
    draft = drafter.propose([1, 2, 3, 4, 5, 6], 3, RNG)
    assert blocks_run == [6, 6, 1, 1, 1, 1]  # the prompt, then two draft tokens; the third is not run
    blocks_run.clear()
    whole([1, 2, 3, 4, 5, 6, *draft.tokens.tolist()], n_last=4)
    assert blocks_run == [1, 1, 9, 9, 9]  # the third draft token in the first layers; all nine in the rest
    blocks_run.clear()
    whole([1, 2, 3, 4, 5, 6, draft.tokens[0], 16], n_last=1)  # a correction: the rest of the draft is kept
    assert blocks_run == [1, 1, 1, 1, 1]


def test_a_whole_generation_costs_each_committed_token_once_in_the_first_layers(blocks_run):
    whole = EarlyExit(random_gpt2(SHAPE), 2)
    sampler = SpeculativeSampler(whole, EarlyExitDrafter(whole, sampling=GREEDY), K=3, sampling=GREEDY)
    generation = sampler.generate([1, 2, 3], 40)
    dropped = generation.stats.drafted - generation.stats.accepted  # draft tokens that were computed in vain
    n_rows = 3 + 40 - 1 + dropped  # the last token is never run
    assert sum(blocks_run) == 5 * n_rows
    np.testing.assert_array_equal(
        generation.tokens, AutoregressiveSampler(random_gpt2(SHAPE), sampling=GREEDY).generate([1, 2, 3], 40).tokens
    )


@pytest.mark.parametrize("n_layers", [0, 5])
def test_an_exit_outside_the_model_is_refused(n_layers):
    with pytest.raises(ValueError, match=f"expected an exit after 1 to 4 of the 5 layers, got {n_layers}"):
        EarlyExit(random_gpt2(SHAPE), n_layers)


# ------------------------------------------------------------------------------------------------ dials


def test_the_dials_set_alpha():
    """The overlap is 1 - epsilon TV(p, uniform), and that is how often a first draft token is accepted."""
    target = TableModel.random(4, seed=3)
    p = Sampling()(target([0, 1]))[0]
    for epsilon in (0, 0.25, 1):
        drafter = NoisyDrafter(target, epsilon)
        row = drafter.propose([0, 1], 1, RNG).probs[0]
        np.testing.assert_allclose(row, (1 - epsilon) * p + epsilon / 4, rtol=1e-12)
        alpha = 1 - epsilon * np.maximum(p - 1 / 4, 0).sum()
        assert math.isclose(overlap(p, row), alpha)
        sampler = SpeculativeSampler(target, drafter, verifier=rejection, K=1)
        distribution = exact_distribution(lambda rng, sampler=sampler: next(sampler.rounds([0, 1], 2, rng)).n_accepted)
        assert math.isclose(distribution[1], alpha, abs_tol=1e-12)
    assert SpeculativeSampler(target, OracleDrafter(target), K=4).generate([0], 30, 0).stats.rejected == 0
    with pytest.raises(ValueError, match=r"expected an epsilon from 0 to 1, got 1\.5"):
        NoisyDrafter(target, 1.5)


@pytest.mark.parametrize("drafter", [PromptLookupDrafter(3), SuffixDrafter(3), SuffixDrafter(3, corpus=[1, 5] * 9)])
def test_a_copy_from_another_vocabulary_is_refused(drafter):
    with pytest.raises(ValueError, match="share one vocabulary"):
        SpeculativeSampler(TableModel.random(6), drafter).generate([4, 1, 4, 1, 4, 1], 3, 0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))])
def test_an_early_exit_can_be_copied_without_its_whole_model(copied):
    """A copy that begins with the drafter, or with the exit, meets the whole model before the exit is complete."""
    whole = EarlyExit(random_gpt2(SHAPE), 1)
    drafter = EarlyExitDrafter(whole)
    expected, ours = whole.early_exit([1, 2, 3]), drafter.propose([1, 2, 3], 3, np.random.default_rng(0))
    first, theirs = copied(whole.early_exit), copied(drafter)
    assert np.array_equal(first([1, 2, 3]), expected) and first.whole.early_exit is first
    assert theirs.propose([1, 2, 3], 3, np.random.default_rng(0)).tokens.tolist() == ours.tokens.tolist()
    target, of_both = copied((whole, drafter))
    assert of_both.model is target.early_exit and whole.early_exit.whole is whole


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda drafter: pickle.loads(pickle.dumps(drafter))])
def test_a_noisy_drafter_can_be_copied(copied):
    drafter = NoisyDrafter(TableModel.random(4), 0.2)
    ours, theirs = (some.propose([1], 3, np.random.default_rng(0)) for some in (drafter, copied(drafter)))
    assert np.array_equal(ours.tokens, theirs.tokens) and np.array_equal(ours.probs, theirs.probs)
