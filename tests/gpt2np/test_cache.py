"""The cache: what it holds, and which of its slots the next call can use."""

import tracemalloc

import numpy as np
from helpers import random_gpt2
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2np import HParams
from gpt2np.cache import KVCache, TokenTree, kept_slots

TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=4)
NODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=6)  # token, and a number for its parent


def tree(text, nodes):
    return TokenTree([*text, *(token for token, _ in nodes)], [n % (i + 1) - 1 for i, (_, n) in enumerate(nodes)])


def path(tokens, slot):
    """The tokens up to the one in this slot."""
    return [*path(tokens, tokens.parent_slot(slot)), tokens.tokens[slot]] if slot >= 0 else []


@settings(max_examples=150, deadline=None, derandomize=True)
@given(TEXTS, NODES, TEXTS, NODES, st.integers(0, 10), st.integers(0, 10), st.integers(0, 14))
def test_what_is_kept_was_computed_for_the_same_path(text, nodes, more, more_nodes, branch, n_missing, n_most):
    """And the next token, if there is one, was not: of texts that continue along a branch of what is cached."""
    cached = tree(text, nodes)
    wanted = tree([*path(cached, branch % len(cached.tokens)), *more], more_nodes)
    n_valid = max(0, len(cached.tokens) - n_missing)
    n, slots = kept_slots(cached, n_valid, wanted)
    found, paths = [*range(n), *slots], [path(cached, slot) for slot in range(n_valid)]
    assert [paths[slot] for slot in found] == [path(wanted, slot) for slot in range(len(found))]
    if len(found) < len(wanted.tokens) and all(paths.count(some) == 1 for some in paths):
        assert path(wanted, len(found)) not in paths
    # a cache of these tokens, each with its slot in place of keys and values: the kept ones move next to each other
    cache, rows = KVCache(1, 1, 16, 1), np.arange(16)
    cache.reuse(cached, 16, rows)
    assert cache.length == 0
    numbers = np.arange(n_valid, dtype=np.float32)[None, :, None]
    cache.layers[0].append(numbers, numbers)
    cache.length = n_valid
    cache.reuse(wanted, n_most, rows)
    layer, n = cache.layers[0], cache.length
    assert n == min(n_most, len(found)) and rows[:n].tolist() == found[:n]
    assert layer.keys[0, 0, :n].tolist() == layer.values[0, :n, 0].tolist() == found[:n]


def test_a_long_context_takes_memory_only_when_it_is_used():
    model = random_gpt2(HParams(n_vocab=17, n_ctx=20_000, n_embd=8, n_head=2, n_layer=1))
    tracemalloc.start()
    model([1, 2, 3])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24
