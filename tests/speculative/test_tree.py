"""The arithmetic of token trees agrees with the paths, and drafts and rounds use it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Draft
from speculative.tree import chain, children, depth_of, depths, is_chain, n_common, path, texts_of_rows, visible

PARENTS = st.lists(st.integers(0, 100), max_size=12).map(
    lambda numbers: [number % (i + 1) - 1 for i, number in enumerate(numbers)]
)


@given(PARENTS)
@settings(deadline=None, derandomize=True)
def test_all_of_it_follows_from_the_paths(parents):
    n, paths = len(parents), [path(parents, node) for node in range(len(parents))]
    draft = Draft(np.zeros(n, int), np.ones((n, 1)), np.array(parents, np.int64))
    assert depths(parents) == [len(nodes) - 1 for nodes in paths]
    assert depth_of(parents) == draft.depth == max(map(len, paths), default=0)
    assert [np.flatnonzero(row).tolist() for row in visible(parents)] == paths
    for node in range(-1, n):
        below = [child for child, nodes in enumerate(paths) if ([-1, *nodes])[-2] == node]
        assert children(parents, node) == draft.children(node) == below
    texts = [[10, 11, *nodes] for nodes in [[], *paths]]
    tokens = (10, 11, *range(n))
    assert texts_of_rows(tokens, n + 1, parents) == texts and texts_of_rows(tokens, 1, parents) == texts[-1:]
    assert texts_of_rows(tokens, n + 1) == [[*tokens[: 2 + i]] for i in range(n + 1)]
    assert is_chain(parents) == (parents == chain(n).tolist()) and chain(n).dtype == np.int64
    assert is_chain(chain(n)) and [path(chain(n), node) for node in range(n)] == [[*range(i + 1)] for i in range(n)]


@given(*[st.lists(st.integers(0, 1), max_size=6)] * 2)
@settings(deadline=None, derandomize=True)
def test_the_common_prefix_is_the_longest(a, b):
    assert n_common(a, b) == max(n for n in range(7) if a[:n] == b[:n] and n <= min(len(a), len(b)))
