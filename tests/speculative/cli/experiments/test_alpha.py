"""The acceptance table: alpha along the target's own text, from the overlaps."""

import numpy as np
import pytest

from speculative import AutoregressiveSampler, ByPaths, ModelDrafter, PromptLookupDrafter, Sampling, Shape, TreeDrafter
from speculative.cli.experiments import alpha_table
from speculative.measuring import repetition
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
STRAIGHT = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)  # 0, 1, 2, ...: nothing comes twice


def test_alpha_is_the_overlap_where_the_drafter_drafts():
    p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    target, draft = TableModel([p] * 3, n_ctx=99), TableModel([q] * 3, n_ctx=99)
    entries = {"draft": ModelDrafter(draft), "target": ModelDrafter(target), "copy": PromptLookupDrafter(3)}
    table = alpha_table(target, entries, [[0], [0, 1]], 30, sampling=Sampling(), seed=1)
    draft_row, own, copy = table["rows"]
    for row, alpha in ((draft_row, 0.6), (own, 1.0)):  # 0.2 + 0.2 + 0.2
        np.testing.assert_allclose([row["alpha"], row["low"], row["high"]], alpha)
        assert row["drafted"] == 1
    assert 0.2 < copy["low"] <= copy["alpha"] <= copy["high"] < 0.5 and 0.5 < copy["drafted"] < 1
    assert 0 < table["repetition"] < 1


def test_alpha_is_not_certain_where_it_is_counted():
    """At temperature 0 each place counts as 0 or 1: that 48 of 48 are 1 does not show that alpha is 1."""
    greedy = Sampling(temperature=0)
    itself = {"itself": ModelDrafter(TARGET, sampling=greedy)}
    (row,) = alpha_table(TARGET, itself, [[0], [1]] * 8, 3, sampling=greedy)["rows"]
    assert row["alpha"] == row["high"] == 1 and 0.92 < row["low"] < 0.93


def test_a_drafter_that_never_drafts_has_no_alpha():
    none, greedy = {"none": PromptLookupDrafter(30)}, Sampling(temperature=0)
    table = alpha_table(STRAIGHT, none, [[0]], 9, sampling=greedy)
    assert table["rows"] == [{"drafter": "none", "alpha": None, "low": None, "high": None, "drafted": 0}]
    repeating = alpha_table(STRAIGHT, none, [[1] * 9], 9, sampling=greedy)
    assert table["repetition"] == repeating["repetition"] == 0  # the prompt is no part of it


def test_each_text_has_a_seed_of_its_own():
    parts, drafters = {}, {"draft": ModelDrafter(DRAFT)}
    keep = lambda name, measure: parts.setdefault(name, measure())  # noqa: E731
    table = alpha_table(TARGET, drafters, [[0, 1, 2]] * 2, 30, sampling=Sampling(), seed=3, keep=keep)
    texts = [AutoregressiveSampler(TARGET).generate([0, 1, 2], 30, 3 + i).tokens.tolist() for i in (0, 1)]
    assert [part["repetition"] for part in parts.values()] == [repetition(text) for text in texts]
    assert parts["text 1"]["overlap"] != parts["text 2"]["overlap"]
    assert table["repetition"] == pytest.approx(np.mean([repetition(text) for text in texts]))


def test_a_drafter_of_trees_is_refused():
    tree = TreeDrafter(ByPaths(DRAFT), Shape.widths(2))
    with pytest.raises(ValueError, match="expected drafters of chains, got a tree: use acceptance_table"):
        alpha_table(TARGET, {"tree": tree}, [[0]], 9, sampling=Sampling())
