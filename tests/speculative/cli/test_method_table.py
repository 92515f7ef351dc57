"""`method_table`: drafters and verifiers on texts of several kinds."""

import itertools
import re

import pytest
from command import words

from speculative.cli.commands.method_table import best_of, half_widths, table


def test_the_page(small):
    report, page, _ = small("method_table")
    rows = re.findall(r"^(model|suffix) +(\w+) +(?:\d+\.\d\d +\d+\.\d\d to \d+\.\d\d +){2}(\w+)$", page, re.M)
    output = {"rejection": "exact", "gumbel": "exact", "typical": "LOSSY"}
    methods = list(itertools.product(("model", "suffix"), output))
    assert rows == [(drafter, rule, output[rule]) for drafter, rule in methods]
    assert re.findall(r"^(model|suffix) +(\w+)(?: +\d+\.\d\d +\d+\.\d\d){4}$", page, re.M) == methods
    assert re.search(r"^interval, ± +median row( +\d+%){8}$", page, re.M)
    assert list(report["rows"][0]["kinds"]) == ["tales", "dialogue", "repeating", "known", "all"]
    assert report["rows"][0]["kinds"]["all"]["n_texts"] == 12


def cell(calls, speedup, half=0.1, known=True):
    low_high = lambda x: (x - half, x + half) if known else (None, None)  # noqa: E731
    (calls_low, calls_high), (low, high) = low_high(calls), low_high(speedup)
    return {
        "tokens_per_call": calls, "calls_low": calls_low, "calls_high": calls_high, "speedup": speedup, "low": low,
        "high": high, "same_texts": 2, "n_texts": 3,
    }  # fmt: skip


def test_half_widths_of_a_column_are_the_medians_of_its_rows():
    assert list(half_widths([cell(2, 1), cell(1, 2), cell(4, 4), cell(1, 1, known=False)])) == ["5%", "5%"]
    assert list(half_widths([cell(1, 1, known=False)])) == ["-", "-"]


def test_the_page_by_hand():
    kinds = {"tales": cell(2, 1), "all": cell(3, 1)}
    rules = (("rejection", "exact"), ("typical", "LOSSY"))
    rows = [{"drafter": "model", "verifier": rule, "exactness": exact, "kinds": kinds} for rule, exact in rules]
    about = {"target": {"name": "t"}, "machine": "any", "n_prompts": 3, "n_tokens": 9, "temperature": 0, "K": 2}
    lines = words(table({**about, "rows": rows}))
    assert "model rejection 3.00 2.90 to 3.10 1.00 0.90 to 1.10 exact, same text 2 of 3" in lines
    assert "model typical 3.00 2.90 to 3.10 1.00 0.90 to 1.10 exact for greedy, same text 2 of 3" in lines
    assert not any(line.startswith("block") for line in lines)


@pytest.mark.parametrize(
    ("low", "sentence"),
    [
        (2.6, "Its interval is above all others."),
        (2.5, "These prompts do not tell it apart from 1 of the 2 others: the intervals overlap."),
        (1.0, "These prompts do not tell it apart from any of the 2 others: the intervals overlap."),
        (None, "These prompts do not tell it apart from any of the 2 others: the intervals overlap."),
    ],
)
def test_a_method_is_called_the_best_only_where_the_intervals_part(low, sentence):
    rows = [
        {"drafter": "a", "verifier": rule, "exactness": exactness, "kinds": {"all": {"x": x, "low": lo, "high": hi}}}
        for rule, exactness, x, lo, hi in (
            ("rejection", "exact", 2.0, 1.5, 2.5), ("block", "exact", 3.0, low, 3.5),
            ("gumbel", "exact", 1.0, 0.9, 1.1), ("typical", "LOSSY", 9.0, 8.0, 10.0),
        )
    ]  # fmt: skip
    assert best_of(rows, "x", "low", "high", "Most") == f"Most of the exact methods: a with block, 3.00. {sentence}\n"
    two = best_of(rows[:2], "x", "low", "high", "Most")
    assert ("do not tell it apart from the other: the" in two) == ("overlap" in sentence)
