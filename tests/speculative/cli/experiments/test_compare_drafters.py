"""The table of drafters, each at its fastest draft length."""

import math

import numpy as np
import pytest

from speculative import ModelDrafter, PromptLookupDrafter, Sampling, SpeculativeSampler
from speculative.cli.experiments import compare_drafters, methods
from speculative.testing import TableModel
from speculative.theory import estimate_alpha

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)


def test_a_row_for_each_drafter():
    entries = {
        "model": (TARGET, ModelDrafter(DRAFT)),
        "the target": (TARGET, ModelDrafter(TARGET)),
        "copy": (TARGET, PromptLookupDrafter(5, n_max=1)),
    }
    prompts = [[0], [1]]
    rows = compare_drafters(TARGET, entries, prompts, 10, sampling=Sampling(), lengths=(1, 3), seed=2)
    assert [row["drafter"] for row in rows] == list(entries) and {row["exactness"] for row in rows} == {"exact"}
    for row, (_, drafter) in zip(rows, entries.values()):
        samplers = {K: SpeculativeSampler(TARGET, drafter, K=K) for K in (1, 3)}
        stats = {K: [s.generate(p, 10, 2 + i).stats for i, p in enumerate(prompts)] for K, s in samplers.items()}
        everything = [*stats[1], *stats[3]]
        accepted, rejected = sum(s.accepted for s in everything), sum(s.rejected for s in everything)
        assert math.isclose(row["alpha"], accepted / (accepted + rejected))
        assert math.isclose(row["tokens_per_call"], 20 / sum(s.target_calls for s in stats[row["K"]]))
        assert row["alpha_low"] < row["alpha"] < row["alpha_high"] + 1e-12
        assert row["low"] <= row["speedup"] <= row["high"]
    assert rows[1]["alpha"] == 1


def test_the_same_tests_with_several_draft_lengths_count_once():
    """The target drafts for itself, one token a text: two different tokens are tested, each with four lengths."""
    greedy = Sampling(temperature=0)
    entries = {"itself": (TARGET, ModelDrafter(TARGET, sampling=greedy))}
    (row,) = compare_drafters(TARGET, entries, [[0], [1]], 2, sampling=greedy, lengths=(1, 2, 4, 8))
    assert (row["alpha"], row["alpha_high"]) == (1, 1) and row["alpha_low"] == pytest.approx(estimate_alpha(2, 0)[1])


def test_a_drafter_that_never_drafts_has_no_cost_per_draft_token():
    straight = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)  # 0, 1, 2, ...: nothing comes twice
    entries = {"none": (straight, PromptLookupDrafter(30))}
    (row,) = compare_drafters(straight, entries, [[0]], 9, sampling=Sampling(temperature=0))
    assert row["c"] is None and row["alpha"] is None and row["tokens_per_call"] == pytest.approx(1)


def test_a_drafter_is_tried_with_no_more_tokens_than_it_has_levels(monkeypatch):
    tried, drafter = [], ModelDrafter(DRAFT)
    drafter.most_levels = 3
    drafters = {"a": (TARGET, drafter), "b": (TARGET, ModelDrafter(DRAFT))}
    monkeypatch.setattr(
        methods, "against_alone", lambda target, samplers, *_, **options: tried.extend(samplers) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        compare_drafters(TARGET, drafters, [], 1, sampling=Sampling())
    assert tried == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 4), ("b", 8)]
