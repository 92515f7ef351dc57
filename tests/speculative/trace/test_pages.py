"""The pages of the experiments and the suggested K, from numbers that are given."""

import numpy as np
import pytest

from command_line import tables
from command_line.best_k import suggestion
from command_line.method_table import half_widths, method_table
from command_line.tree_table import row_cells, tree_table, verdict
from command_line.verdicts import does_it_pay
from command_line.views import compared
from speculative.interfaces import Generation, Round


def test_the_page_of_a_calibration_by_hand():
    row = {
        "K": 1,
        "expected_tokens_per_call": 1.5,
        "tokens_per_call": 1.4,
        "speedup_from_alpha": 1.2,
        "expected_speedup": 1.1,
        "speedup": 1.0,
        "low": 0.9,
        "high": 1.2,
    }
    page = tables.calibrate({
        "target": {"name": "a"}, "draft": {"name": "b"}, "machine": "any", "alpha": 0.5, "alpha_low": 0.4444,
        "alpha_high": 0.6, "n_prompts_expected": 7, "n_prompts_timed": 3, "n_tokens": 9, "best_K": 1,
        "costs": {"step": 0.002, "c": 0.1, "v": [1, 1.5], "spread": 0.1}, "rows": [row],
    })  # fmt: skip
    assert "alpha   0.500, 95 % interval 0.444 to 0.600\n" in page
    assert "interval  95 %, Student's t over the 3 prompts; of alpha over the 7 texts\n" in page


def test_where_no_K_should_pay_it_takes_an_interval_above_1_to_doubt_it():
    row = {"K": 1, "expected_speedup": 0.9, "speedup": 1.1, "low": 0.8, "high": 1.4}
    assert does_it_pay({"best_K": 0, "rows": [row]}).startswith("No: every K")


def test_the_page_of_the_drafters_by_hand():
    row = {
        "drafter": "a",
        "alpha": 0.5,
        "alpha_low": 0.25,
        "alpha_high": 0.75,
        "c": 0.1,
        "K": 4,
        "tokens_per_call": 2.0,
        "speedup": 1.5,
        "low": 1.25,
        "high": 1.75,
        "exactness": "exact",
    }
    report = {
        "target": {"name": "t"}, "temperature": 1, "machine": "any", "settings": {"n_prompts": 4},
        "kinds": {"tales": "some"}, "rows": {"tales": [row]},
    }  # fmt: skip
    cells = next(line for line in tables.drafters(report).splitlines() if line.startswith("  a ")).split()
    assert " ".join(cells) == "a 0.500 0.25 to 0.75 0.100 4 2.00 1.50 1.25 to 1.75 exact"


def test_tokens_per_second_of_all_prompts_count_the_tokens_of_all():
    total = {
        "native_seconds": 2.0,
        "seconds": 1.0,
        "speedup": 2.0,
        "tokens_per_call": 3.0,
        "same_texts": 2,
        "low": 1.5,
        "high": 2.5,
    }
    row = {**total, "native_seconds": 1.0, "seconds": 0.5, "beginning": "Once", "same_text": True}
    page = tables.prompts({
        "target": {"name": "t"}, "draft": {"name": "d"}, "machine": "any", "all": total, "rows": [row, row],
        "n_tokens": 10, "K": 3, "temperature": 0, "verifier": "rejection", "exactness": "exact", "tree": "",
        "costs": None,
    })  # fmt: skip
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert lines.count("Once 1.00 10 0.50 20 2.00 3.00 yes") == 2 and "all 2 2.00 10 1.00 20 2.00 3.00 2 of 2" in lines


def test_the_page_of_the_gamma_table_by_hand():
    row = {
        "K": 2,
        "speedup": 1.5,
        "low": 1.25,
        "high": 1.75,
        "tokens_per_call": 2.0,
        "calls_low": 1.9,
        "calls_high": 2.1,
        "alpha": 0.7,
        "c": 0.2,
        "theory_speedup": 1.2,
        "theory_tokens_per_call": 2.2,
    }
    found = {"alpha": 0.6, "c": 0.2, "c_draft": 0.05, "repetition": 0.25, "rows": [row]}
    page = tables.gamma_table({
        "target": {"name": "t"}, "draft": {"name": "d"}, "machine": "any", "n_prompts": 4, "n_tokens": 9,
        "temperatures": {"temperature 1": found},
    })  # fmt: skip
    assert "2 1.50 1.25 to 1.75 2.00 1.90 to 2.10 0.700 0.200 1.20 2.20" in [
        " ".join(line.split()) for line in page.splitlines()
    ]
    assert "c = 0.200, of which drafting is 0.050" in page and "differ by at most 20.0%." in page


def test_drafts_of_the_alpha_table_are_the_places_with_a_draft():
    assert tables.alpha_cells({"alpha": 0.5, "low": 0.4, "high": 0.6, "guessed": 0.2}) == [
        "0.500",
        "0.40 to 0.60",
        "20%",
        "",
    ]


TREE = {
    "drafter": "model", "kind": "tree", "nodes": 4, "levels": 2, "expected": 2.5, "tokens_per_call": 2.4,
    "calls_low": 2.3, "calls_high": 2.6, "speedup": 1.2, "low": 1.1, "high": 1.3, "over_chain": 1.5, "over_low": 1.4,
    "over_high": 1.6, "same_texts": 2, "n_texts": 3,
}  # fmt: skip
CHAIN = {**TREE, "kind": "chain", "nodes": 2, "over_chain": None, "over_low": None, "over_high": None}


def test_the_page_of_the_tree_table_by_hand():
    report = {
        "target": {"name": "t"}, "machine": "any", "n_prompts": 3, "n_tokens": 9, "temperature": 1,
        "rows": [CHAIN, TREE], "acceptance": {"model": [0.5, 0.2, 0.1, 0.05, 0, 0.04, 0, 0.01]},
    }  # fmt: skip
    page = tree_table(report)
    assert "model 0.500 0.700 0.800 0.850 0.890 0.900" in [" ".join(line.split()) for line in page.splitlines()]
    assert page.endswith("All rows are exact.\n")
    assert tree_table({**report, "temperature": 0}).endswith("every text should be the same as the target's own.\n")
    assert row_cells(TREE) == [
        "tree", "4", "2", "2.40", "2.30 to 2.60", "2.50", "1.20", "1.10 to 1.30", "   1.50, 1.40 to 1.60", "2 of 3"
    ]  # fmt: skip


def test_a_tree_pays_only_if_it_is_faster_than_the_target_alone():
    slow = {**CHAIN, "speedup": 0.5, "low": 0.4, "high": 0.6}
    assert "Here a tree pays" not in verdict([slow, {**TREE, "speedup": 0.9, "low": 0.8, "high": 1.1}])
    assert "Here a tree does not pay" in verdict([slow, {**TREE, "speedup": 0.9, "low": 0.8, "high": 0.95}])


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


def test_the_page_of_the_method_table_by_hand():
    rows = [
        {
            "drafter": "model",
            "verifier": rule,
            "exactness": exactness,
            "kinds": {"tales": cell(2, 1), "all": cell(3, 1)},
        }
        for rule, exactness in (("rejection", "exact"), ("typical", "LOSSY"))
    ]
    report = {
        "target": {"name": "t"},
        "machine": "any",
        "n_prompts": 3,
        "n_tokens": 9,
        "temperature": 0,
        "K": 2,
        "rows": rows,
    }
    lines = [" ".join(line.split()) for line in method_table(report).splitlines()]
    assert "model rejection 3.00 2.90 to 3.10 1.00 0.90 to 1.10 exact, same text 2 of 3" in lines
    assert "model typical 3.00 2.90 to 3.10 1.00 0.90 to 1.10 exact for greedy, same text 2 of 3" in lines
    assert not any(line.startswith("block") for line in lines)


def a_round(n_drafted, draft, target, verify=0.0, accepted=1):
    tokens = np.zeros(n_drafted, np.int64)
    return Round(tokens, tokens, accepted, {"draft": draft, "target": target, "verify": verify}, None, None)


def test_the_suggested_K_goes_by_the_usual_draft_length_and_the_whole_check():
    nothing = np.zeros(0, np.int64)
    plain = [a_round(0, 0, 1.5, 0.5, 0)] * 6
    some = [a_round(2, 0.4, 9)] + [a_round(2, 0.4, 2, 1)] * 3 + [a_round(5, 1, 8)] * 2 + [a_round(1, 0.2, 7)] * 2
    found = suggestion(Generation(nothing, nothing, plain), Generation(nothing, nothing, some))["best_K_from"]
    assert (found["v"], found["most_K"]) == ({"3": 1.5}, 4) and found["c"] == pytest.approx(0.1)


def test_a_v_below_one_is_noise_in_a_suggestion():
    nothing = np.zeros(0, np.int64)
    plain, some = [a_round(0, 0, 2, accepted=0)] * 6, [a_round(2, 1.2, 1, accepted=1)] * 6
    found = suggestion(Generation(nothing, nothing, plain), Generation(nothing, nothing, some))
    assert found["best_K_from"]["v"] == {"3": 0.5} and found["best_K"] == 1


def alphas(n_texts, n_tokens):
    found = {"target": {"name": "t"}, "n_prompts": n_texts, "n_tokens": n_tokens, "temperatures": {}}
    return tables.alpha_table({"machine": "any", "targets": {"t": found}})


def test_one_is_not_a_plural():
    assert compared([5], [5]) == "yes, the one token" and compared([5, 6], [5, 6]) == "yes, all 2 tokens"
    report = {"target": {"name": "t"}, "machine": "any", "n_prompts": 1, "n_tokens": 9, "temperature": 1}
    assert "; 1 prompt, 9 tokens each" in tree_table({**report, "rows": [CHAIN, TREE], "acceptance": {}})
    assert "; 1 text of 1 token\n" in alphas(1, 1) and "; 3 texts of 9 tokens\n" in alphas(3, 9)


def test_the_interval_of_alpha_is_that_of_the_texts_with_a_draft():
    assert "interval    none: there is one text\n" in alphas(1, 9) and "Wilson" not in alphas(1, 9)
    assert "Student's t over those of the 3 texts in which it drafts, and none over a single one;" in alphas(3, 9)
