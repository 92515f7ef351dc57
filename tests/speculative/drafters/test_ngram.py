"""N-gram counts: rows by the definition of Witten and Bell."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import NGramModel, Sampling


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
    """And sum to 1, as those of the definition do; the logits are theirs."""
    model, context = NGramModel.from_tokens(tokens, n_vocab=5, n=n), [*context, 1]
    rows = [witten_bell(tokens, 5, some, n) for some in (context[:-1], context)]
    np.testing.assert_allclose([model.row(context[:-1]), model.row(context)], rows, rtol=1e-12)
    n_last = min(2, len(context))
    np.testing.assert_allclose(Sampling()(model(context, n_last=n_last)), rows[-n_last:], rtol=1e-6)
