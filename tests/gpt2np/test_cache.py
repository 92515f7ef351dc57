"""The cache: what it holds, and which of its slots the next call can use."""

import tracemalloc

import numpy as np
import pytest
from helpers import random_gpt2
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2np import HParams, forward
from gpt2np.cache import KVCache, TokenTree, kept_slots

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)
TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=4)
NODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=6)  # token, and a number for its parent


def tree(text, nodes):
    return TokenTree([*text, *(token for token, _ in nodes)], [n % (i + 1) - 1 for i, (_, n) in enumerate(nodes)])


def path(tokens, slot):
    """The tokens up to the one in this slot."""
    return [*path(tokens, tokens.parent_slot(slot)), tokens.tokens[slot]] if slot >= 0 else []


@settings(max_examples=300, deadline=None)
@given(TEXTS, NODES, TEXTS, NODES, st.integers(0, 10), st.integers(0, 10))
def test_what_is_kept_was_computed_for_the_same_path(text, nodes, more, more_nodes, branch, n_missing):
    """And the next token, if there is one, was not: of texts that continue along a branch of what is cached."""
    cached = tree(text, nodes)
    wanted = tree([*path(cached, branch % len(cached.tokens)), *more], more_nodes)
    n_valid = max(0, len(cached.tokens) - n_missing)
    n, slots = kept_slots(cached, n_valid, wanted)
    found, paths = [*range(n), *slots], [path(cached, slot) for slot in range(n_valid)]
    assert [paths[slot] for slot in found] == [path(wanted, slot) for slot in range(len(found))]
    if len(found) < len(wanted.tokens) and all(paths.count(some) == 1 for some in paths):
        assert path(wanted, len(found)) not in paths


def test_a_branch_moves_next_to_the_text():
    """The text 5, 6 and after it 7, or 8 and then 9; it continues with 8, 9, 4."""
    cache, rows = KVCache(1, 1, 8, 1), np.arange(8)
    cache.reuse(TokenTree([5, 6, 7, 8, 9], [-1, -1, 1]), 5, rows)
    assert cache.length == 0
    slots = np.arange(5, dtype=np.float32)[None, :, None]
    cache.layers[0].append(slots, slots)
    cache.length = 5
    for n_most, kept in ((4, [0, 1, 3, 4]), (3, [0, 1, 3]), (1, [0]), (9, [0])):
        cache.reuse(TokenTree([5, 6, 8, 9, 4]), n_most, rows)
        n = cache.length
        assert rows[:n].tolist() == kept
        assert cache.layers[0].keys[0, 0, :n].tolist() == cache.layers[0].values[0, :n, 0].tolist() == kept


def test_positions_and_mask_of_a_tree():
    tokens = TokenTree([5, 6, 7, 8, 9], parents=[-1, -1, 1])
    positions, mask = tokens.positions_and_mask(1)
    assert positions.tolist() == [1, 2, 2, 3]
    seen = [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1]]
    np.testing.assert_array_equal(mask, np.where(seen, 0, -np.inf))
    assert mask.dtype == np.float32
    assert TokenTree([5, 6, 7]).positions_and_mask(1) == (slice(1, 3), None)


def test_the_cache_as_an_explicit_argument():
    params, tokens = random_gpt2(SHAPE).params, [3, 1, 4, 1, 5, 9, 2]
    cache = KVCache(SHAPE.n_layer, SHAPE.n_head, SHAPE.n_ctx, SHAPE.d_head)
    rows = [forward(part, params, SHAPE.n_head, cache=cache) for part in (tokens[:3], tokens[3:4], tokens[4:])]
    assert cache.length == 7
    np.testing.assert_allclose(np.concatenate(rows), forward(tokens, params, SHAPE.n_head), rtol=1e-4, atol=1e-4)
    cache.truncate(9)  # forgets nothing
    assert cache.length == 7
    cache.truncate(np.int64(2))
    again = forward(tokens[2:], params, SHAPE.n_head, n_last=2, cache=cache)
    np.testing.assert_allclose(again, forward(tokens, params, SHAPE.n_head, n_last=2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_past", [0, 44])
def test_no_token_lies_beyond_the_context(n_past):
    """Also where the cache is padded to more columns, and one position would be taken for several tokens."""
    model = random_gpt2(HParams(n_vocab=53, n_ctx=45, n_embd=32, n_head=2, n_layer=1))
    cache = KVCache(1, 2, 45, 16)
    if n_past:
        forward([1] * n_past, model.params, 2, 1, cache)
    for n_new in (46, 49 - n_past):
        with pytest.raises(ValueError, match=f"expected at most n_ctx = 45 tokens, got {n_past + n_new}"):
            forward([1] * n_new, model.params, 2, 1, cache)


def test_a_long_context_takes_memory_only_when_it_is_used():
    model = random_gpt2(HParams(n_vocab=17, n_ctx=20_000, n_embd=8, n_head=2, n_layer=1))
    tracemalloc.start()
    model([1, 2, 3])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24
