"""N-gram counts: rows by the definition of Witten and Bell, a table that is saved and loaded, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import AutoregressiveSampler, NGramDrafter, NGramModel, Sampling, SpeculativeSampler
from speculative.testing import check_language_model

GREEDY = Sampling(temperature=0)


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
@settings(deadline=None, derandomize=True, max_examples=60)
def test_rows_are_those_of_witten_and_bell(tokens, context, n):
    row = NGramModel.from_tokens(tokens, n_vocab=5, n=n).row(context)
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


def test_a_table_of_the_targets_own_output_predicts_it_better_than_that_of_another_text(tiny_pair):
    target, _, tokenizer = tiny_pair
    prompt = tokenizer.encode("Once upon a time")
    own = AutoregressiveSampler(target, sampling=GREEDY).generate(prompt, 40).tokens
    other = tokenizer.encode("Of all the things that are told of the sea and the ships, this is not one. " * 3)
    accepted = []
    for tokens in (own, other):
        drafter = NGramDrafter(NGramModel.from_tokens(tokens, target.n_vocab), sampling=GREEDY)
        generation = SpeculativeSampler(target, drafter, sampling=GREEDY).generate(prompt, 40)
        np.testing.assert_array_equal(generation.tokens, own)
        accepted.append(generation.stats.accepted)
    assert accepted[0] > 15 > accepted[1]


@pytest.mark.parametrize(
    ("tokens", "n_vocab", "n", "message"),
    [
        ([0.5, 1.5, 1.0], 3, 1, "expected token ids in one list, got float64 in 1 dimensions"),
        ([[0, 1], [1, 0]], 3, 1, "expected token ids in one list, got int64 in 2 dimensions"),
        ([0, 1], 3, 3, "expected at least 3 tokens from 0 to 2, got 2 tokens: take a longer text, encoded with the"),
        ([0, 1, 3], 3, 3, "expected at least 3 tokens from 0 to 2"),
        ([0, 1, -1], 3, 3, "expected at least 3 tokens from 0 to 2"),
        ([], 3, 1, "expected at least 1 tokens from 0 to 2, got 0 tokens"),
        ([0] * 9, 50257, 5, "expected n from 1 to 4 for 50257 tokens, so that n-grams fit 64 bits, got 5"),
        ([0, 1, 2, 3], 2**21, 3, "so that n-grams fit 64 bits"),
        ([0] * 9, 3, 0, "got 0"),
    ],
)
def test_what_cannot_be_counted_is_refused(tokens, n_vocab, n, message):
    with pytest.raises(ValueError, match=message):
        NGramModel.from_tokens(tokens, n_vocab, n)


# ------------------------------------------------------------------------------------------------ files


def test_a_table_is_saved_and_loaded(tmp_path):
    model = NGramModel.from_tokens(np.random.default_rng(0).integers(0, 7, 500), n_vocab=7)
    model.save(tmp_path / "table")
    again = NGramModel.load(tmp_path / "table")
    assert again.n_vocab == 7 and len(again.counts) == 3
    for context in ([], [3], [1, 2], [6, 5, 4]):
        np.testing.assert_array_equal(again.row(context), model.row(context))


WRONG = [
    *(("n_vocab", array) for array in (np.array(0), np.array(10**12), np.array(7.0), np.array([7, 7]))),
    *(("codes1", np.array(codes)) for codes in ([0, 1, 7], [-1, 1, 2], [1, 0, 2], [[0, 1, 2]], [0, 1])),
    *(("counts1", np.array(counts)) for counts in ([1, 0, 1], [2**62] * 3, [1.0, 1.0, 1.0], [None, 1, 1])),
    ("codes2", np.zeros(10_000_000, np.int8)),  # compressed to nothing
]


@pytest.mark.parametrize(("name", "array"), WRONG)
def test_a_table_with_other_arrays_is_refused(tmp_path, name, array):
    model = NGramModel.from_tokens([0, 1, 2, 0], n_vocab=7, n=1)
    arrays = {"n_vocab": np.array(7), "codes1": model.counts[0][0], "counts1": model.counts[0][1]}
    with open(tmp_path / "table", "wb") as file:
        (np.savez_compressed if name == "codes2" else np.savez)(file, **arrays | {name: array})
    with pytest.raises(ValueError, match="table is not a table of n-grams"):
        NGramModel.load(tmp_path / "table")


@pytest.mark.parametrize("content", [b"", b"no table", b"PK\x03\x04 broken"])
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        NGramModel.load(path)
    assert str(error.value) == (
        f"{path} is not a table of n-grams: expected a file written by NGramModel.save; count again, and save under a "
        "new name"
    )
