"""The table of trees and the acceptance behind it; the size of a tree."""

import numpy as np
import pytest

from speculative import ByPaths, Sampling, TreeDrafter
from speculative.measuring import acceptance_table, tree_table
from speculative.measuring.tree_size import best_shape
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
MAKERS = {"draft": lambda shape: (ByPaths(TARGET), TreeDrafter(ByPaths(DRAFT), shape))}


def test_acceptance_is_the_mean_over_texts_with_seeds_of_their_own():
    parts = {}
    keep = lambda name, measure: parts.setdefault(name, measure())  # noqa: E731
    found = acceptance_table(MAKERS, [[0], [0], [0]], 12, sampling=Sampling(), seed=3, keep=keep)["draft"]
    rows = [parts[f"acceptance, text {i}"][0] for i in (1, 2, 3)]
    np.testing.assert_allclose(np.cumsum(found), np.mean(rows, axis=0))
    single = [acceptance_table(MAKERS, [[0]], 12, sampling=Sampling(), seed=seed)["draft"] for seed in (3, 4, 5)]
    np.testing.assert_allclose(rows, np.cumsum(single, axis=1))
    assert rows[0] != rows[1] != rows[2]


def test_trees_are_shaped_and_expected_by_acceptance_that_falls_with_the_rank():
    acceptance = {"draft": [0.5, 0.1, 0.4, 0, 0, 0, 0, 0]}
    options = {"sampling": Sampling(), "sizes": [3], "max_depth": 1}
    rows = tree_table(ByPaths(TARGET), MAKERS, acceptance, [[0], [1]], 8, **options)
    assert [row["expected"] for row in rows] == pytest.approx([1.5, 1 + 0.5 + 0.1 + 0.1])
    assert [(row["kind"], row["nodes"], row["levels"], row["n_texts"]) for row in rows] == [
        ("chain", 1, 1, 2),
        ("tree", 3, 1, 2),
    ]
    chain, tree = rows
    assert chain["over_chain"] is None
    assert tree["over_chain"] == pytest.approx(tree["tokens_per_call"] / chain["tokens_per_call"])


def test_a_chain_of_the_table_is_drafted_to_its_last_level():
    maker = {"draft": lambda shape: (ByPaths(TARGET), TreeDrafter(ByPaths(TARGET), shape, sampling=Sampling(0)))}
    options = {"sampling": Sampling(temperature=0), "sizes": [], "max_depth": 6}
    rows = tree_table(ByPaths(TARGET), maker, {"draft": [1.0] + [0.0] * 7}, [[0]], 21, **options)
    assert rows[-1]["levels"] == 6 and rows[-1]["tokens_per_call"] == 7


def test_the_best_shape_by_hand():
    assert best_shape([0.9], 0.01, [1.0] * 4)[0][0] == [-1, 0, 1]  # as long as the costs allow
    assert best_shape([0.5, 0.1, 0.3], 0.0, [1.0] * 4, max_depth=1)[1] == pytest.approx(1.9)  # w as it was measured
