"""N-gram counts: rows by the definition of Witten and Bell, and a table that is saved and loaded."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import AutoregressiveSampler, NGramDrafter, NGramModel, Sampling, SpeculativeSampler

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


def test_the_logits_are_those_of_the_rows():
    model = NGramModel.from_tokens([0, 1, 2, 0, 1, 0], n_vocab=3)
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


def test_a_table_is_saved_and_loaded(tmp_path):
    model = NGramModel.from_tokens(np.random.default_rng(0).integers(0, 7, 500), n_vocab=7)
    model.save(tmp_path / "table")
    again = NGramModel.load(tmp_path / "table")
    assert again.n_vocab == 7 and len(again.counts) == 3
    for context in ([], [3], [1, 2], [6, 5, 4]):
        np.testing.assert_array_equal(again.row(context), model.row(context))
