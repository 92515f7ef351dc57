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
    for tokens, n_last in (([1.5], 1), (["3"], 1), ([1], 1.0)):
        with pytest.raises(TypeError):
            split([], tokens, n_last, 9)
    for tokens, n_last, message in (
        ([], 1, "expected 1 to n_ctx = 4 tokens, got 0"),
        ([1] * 5, 1, "expected 1 to n_ctx = 4 tokens, got 5"),
        ([1, 2], 3, "expected n_last from 1 to the number of tokens, 2, got 3"),
        ([1, 2], 0, "expected n_last from 1 to the number of tokens, 2, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            split([], tokens, n_last, 4)


def test_as_many_tokens_as_the_model_has_may_be_used():
    assert [checked_n_vocab(n, 5) for n in (None, 1, 5)] == [5, 1, 5]
    for n in (0, 6, -1):
        with pytest.raises(ValueError, match=f"expected n_vocab from 1 to the model's 5 tokens, got {n}"):
            checked_n_vocab(n, 5)
