"""What every adapter starts with: how much of its cache serves the next call."""

import numpy as np
import pytest

from speculative.models.prefix import checked_n_vocab, split


def test_what_is_kept_of_a_cache():
    assert split([5, 6, 7, 8], [5, 6, 9], 1, 9) == (2, [5, 6, 9])
    assert split([5, 6, 7], np.array([5, 6, 7]), 1, 9) == (2, [5, 6, 7])  # the last row is always computed
    assert split([5, 6, 7], [5, 6, 7, 8], 3, 9)[0] == 1
    assert split([], [1], 1, 1) == (0, [1])
    assert split(list(range(300)), range(300), np.uint8(2), 300)[0] == 298
    assert [checked_n_vocab(n, 5) for n in (None, 1, 5)] == [5, 1, 5]


@pytest.mark.parametrize(("tokens", "n_last"), [([1.5], 1), (["3"], 1), ([1], 1.0)])
def test_fractions_and_texts_are_no_tokens(tokens, n_last):
    with pytest.raises(TypeError):
        split([], tokens, n_last, 9)


@pytest.mark.parametrize("n", [0, 6])
def test_too_few_and_too_many_are_refused(n):
    for call, message in (
        (lambda: split([], [1] * n, 1, 4), f"expected 1 to n_ctx = 4 tokens, got {n}"),
        (lambda: split([], [1, 2], n, 4), f"expected n_last from 1 to the number of tokens, 2, got {n}"),
        (lambda: checked_n_vocab(n, 5), f"expected n_vocab from 1 to the model's 5 tokens, got {n}"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
