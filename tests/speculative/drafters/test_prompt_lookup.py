"""Prompt lookup: which copy is taken, by hand and by its definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import PromptLookupDrafter


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
def test_by_hand(tokens, n_max, wanted, of_two):
    drafter = PromptLookupDrafter(10, n_max)
    for K, drafted in ((4, wanted), (2, of_two), (0, [])):
        draft = drafter.propose(tokens, K, None)
        assert draft.tokens.tolist() == drafted and draft.tokens.dtype == np.int64
        np.testing.assert_array_equal(draft.probs, np.eye(10)[drafted].reshape(-1, 10))


@given(st.lists(st.integers(0, 2), max_size=30), st.integers(1, 4), st.integers(0, 5))
@settings(deadline=None, derandomize=True)
def test_by_its_definition(tokens, n_max, K):
    """The longest match; of these, one with K tokens after it, or as many as there are; of these, the nearest."""
    n_text = len(tokens)
    found = [(0, 0, n_text)]
    for n, end in itertools.product(range(1, min(n_max, n_text) + 1), range(1, n_text)):
        if end >= n and tokens[end - n : end] == tokens[n_text - n :]:
            found.append((n, min(K, n_text - end), end))
    end = max(found)[2]
    assert PromptLookupDrafter(3, n_max).propose(tokens, K, None).tokens.tolist() == tokens[end : end + K]


def test_several_copies_are_a_tree():
    """After 1 came 2 3 (near), 2 4 and 5; after 0 1, the longer match, 2 4."""
    text = [0, 1, 2, 4, 1, 5, 6, 1, 2, 3, 0, 1]
    one, three = (PromptLookupDrafter(7, 2, n_copies=n).propose(text, 2, None) for n in (1, 3))
    assert one.tokens.tolist() == [2, 4]
    assert three.tokens.tolist() == [2, 5, 4, 3, 6] and three.parents.tolist() == [-1, -1, 0, 0, 1]


def test_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="expected a longest match n_max of 1 token or more, got 0"):
        PromptLookupDrafter(3, 0)
    with pytest.raises(ValueError, match="expected n_copies of 1 or more, got 0"):
        PromptLookupDrafter(3, n_copies=0)
