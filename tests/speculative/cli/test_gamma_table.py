"""`gamma_table`: the speedup by draft length, and the alpha and c that fit."""

import re

from command import PAIR, run_here, words

from speculative.cli.commands.gamma_table import table


def test_the_page(small):
    report, page, _ = small("gamma_table")
    for name, found in report["temperatures"].items():
        assert f"{name}: alpha = {found['alpha']:.3f}, c = {found['c']:.3f}" in page
        assert [row["K"] for row in found["rows"]] == [1, 2, 3]
    assert list(report["temperatures"]) == ["temperature 0", "temperature 1"]
    assert len(re.findall(r"^ +\d( +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d){2}( +-?\d+\.\d+){4}$", page, re.M)) == 6


def test_the_page_by_hand():
    row = {
        "K": 2, "speedup": 1.5, "low": 1.25, "high": 1.75, "tokens_per_call": 2.0, "calls_low": 1.9, "calls_high": 2.1,
        "alpha": 0.7, "c": 0.2, "theory_speedup": 1.2, "theory_tokens_per_call": 2.2,
    }  # fmt: skip
    found = {"alpha": 0.6, "c": 0.2, "c_draft": 0.05, "repetition": 0.25, "rows": [row]}
    page = table({
        "target": {"name": "t"}, "draft": {"name": "d"}, "machine": "any", "n_prompts": 4, "n_tokens": 9,
        "temperatures": {"temperature 1": found},
    })  # fmt: skip
    assert "2 1.50 1.25 to 1.75 2.00 1.90 to 2.10 0.700 0.200 1.20 2.20" in words(page)
    assert "c = 0.200, of which drafting is 0.050" in page and "differ by at most 20.0%." in page


def test_one_token_is_not_drafted():
    few = ("--n_tokens_to_generate=1", "--n_prompts=3", "--max_K=2", *PAIR)
    assert "nothing was drafted in these texts" in run_here("gamma_table", *few).stderr
