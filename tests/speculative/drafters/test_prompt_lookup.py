"""Prompt lookup: which copy is taken, by its definition."""

import itertools

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from speculative import PromptLookupDrafter

texts = st.lists(st.integers(0, 2), max_size=30) | st.builds(
    lambda some, n, end: (some * n)[:end], st.lists(st.integers(0, 2), max_size=5), st.integers(2, 5), st.integers(1)
)  # also some that repeat themselves


@given(texts, st.integers(1, 4), st.integers(1, 4), st.integers(0, 5), st.just([]) | texts)
@example([0, 1, 5, 0, 1, 6, 0, 1], 3, 1, 4, [])  # after the nearer of two matches there are only 3 tokens
@example([9, 1, 5, 7, 1, 6, 9, 1], 3, 1, 4, [])  # the longer match 9 1, though 1 was seen later
@example([4, 4, 4], 3, 1, 4, [])  # not the suffix itself, but it may overlap
@example([1, 2, 3, 4, 8, 2, 3, 4, 9, 1, 2, 3, 4], 3, 2, 4, [])  # longer matches count as n_max
@example([1, 2, 5, 1, 2], 3, 2, 1, [7, 1, 2, 6])  # as long a match in the text, which is nearer
@example([1, 2, 5, 7, 1, 2], 3, 2, 1, [7, 1, 2, 6])  # the longer one is in the corpus
@settings(deadline=None, derandomize=True)
def test_the_copy_by_its_definition(tokens, n_max, n_min, K, corpus):
    """The longest match of n_min tokens or more; of these, the most tokens after it, up to K; the nearest."""
    n_text = len(tokens)
    found = [(0, 0, 1, n_text)]
    for is_text, source in ((1, tokens), (0, corpus)):
        n_ends = n_text if is_text else len(corpus) + 1
        for n, end in itertools.product(range(min(n_min, n_max), min(n_max, n_text) + 1), range(1, n_ends)):
            if end >= n and source[end - n : end] == tokens[n_text - n :]:
                found.append((n, min(K, len(source) - end), is_text, end))
    _, _, is_text, end = max(found)
    draft = PromptLookupDrafter(10, n_max, n_min, corpus=corpus).propose(tokens, K, None)
    source = tokens if is_text else corpus
    assert draft.tokens.tolist() == source[end : end + K] and draft.tokens.dtype == np.int64


def test_several_copies_are_a_tree():
    """After 1 came 2 3 (near), 2 4 and 5; after 0 1, the longer match, 2 4."""
    text = [0, 1, 2, 4, 1, 5, 6, 1, 2, 3, 0, 1]
    one, three = (PromptLookupDrafter(7, 2, 1, n_copies=n).propose(text, 2, None) for n in (1, 3))
    assert one.tokens.tolist() == [2, 4]
    assert three.tokens.tolist() == [2, 5, 4, 3, 6] and three.parents.tolist() == [-1, -1, 0, 0, 1]
