"""`tree_table`: trees against chains, and whether a tree pays."""

import pytest
from command import refusal, report_of, words

from speculative.cli.commands.tree_table import table, verdict

FEW = ("--n_prompts=3", "--n_tokens_to_generate=4")
TREE = {
    "drafter": "model", "kind": "tree", "nodes": 4, "levels": 2, "expected": 2.5, "tokens_per_call": 2.4,
    "calls_low": 2.3, "calls_high": 2.6, "speedup": 1.2, "low": 1.1, "high": 1.3, "over_chain": 1.5, "over_low": 1.4,
    "over_high": 1.6, "same_texts": 2, "n_texts": 3,
}  # fmt: skip
CHAIN = {**TREE, "kind": "chain", "nodes": 2, "over_chain": None, "over_low": None, "over_high": None}


def test_the_page_by_hand():
    report = {
        "target": {"name": "t"}, "machine": "any", "n_prompts": 3, "n_tokens": 9, "temperature": 1,
        "rows": [CHAIN, TREE], "acceptance": {"model": [0.5, 0.2, 0.1, 0.05, 0, 0.04, 0, 0.01]},
    }  # fmt: skip
    page = table(report)
    assert "model 0.500 0.700 0.800 0.850 0.890 0.900" in words(page) and page.endswith("All rows are exact.\n")
    assert table({**report, "temperature": 0}).endswith("every text should be the same as the target's own.\n")
    assert "; 1 prompt, 9 tokens each" in table({**report, "n_prompts": 1})
    assert "tree 4 2 2.40 2.30 to 2.60 2.50 1.20 1.10 to 1.30 1.50, 1.40 to 1.60 2 of 3" in words(page)


@pytest.mark.parametrize(
    ("tree", "chain", "sentence"),
    [
        ((1.5, 1.4, 1.6), (1.2, 1.1, 1.3), "Here a tree pays."),
        ((0.8, 0.7, 0.9), (1.2, 1.1, 1.3), "Here a tree does not pay, though it has more tokens per call: its nodes"),
        ((1.2, 1.0, 1.4), (1.2, 1.1, 1.3), "These prompts do not tell the two apart."),
        ((1.2, None, None), (1.2, None, None), "One prompt tells nothing about the difference."),
        ((0.9, 0.8, 1.1), (0.5, 0.4, 0.6), "These prompts do not tell the two apart."),  # than the target alone
        ((0.9, 0.8, 0.95), (0.5, 0.4, 0.6), "Here a tree does not pay"),
    ],
)
def test_whether_a_tree_pays(tree, chain, sentence):
    found = [
        {"kind": kind, "nodes": n, "tokens_per_call": 2.0 + n / 4, **dict(zip(("speedup", "low", "high"), times))}
        for kind, n, times in (("tree", 8, tree), ("chain", 2, chain))
    ]
    assert sentence in verdict(found) and "The fastest tree has 8 nodes" in verdict(found)
    for row in found:
        row["tokens_per_call"] = 2.0
    assert sentence.replace(", though it has more tokens per call", "") in verdict(found)


def test_no_more_levels_than_there_are_heads(quick):
    rows = report_of("tree_table", *FEW, "--tree_drafters=heads", "--tree_sizes=5", "--max_depth=5")["rows"]
    assert [(row["kind"], row["levels"]) for row in rows] == [("chain", 1), ("chain", 2), ("chain", 3), ("tree", 3)]


def test_a_target_without_heads():
    message = "--tree_drafters: heads has no drafter for tiny-draft, which has no heads: add another drafter, or choose"
    assert refusal("tree_table", "--tree_drafters=heads", "--target_model_size=tiny-draft", *FEW).startswith(message)
