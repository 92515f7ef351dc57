"""`calibrate`: predicted and measured, and whether it pays."""

import re

import pytest

from speculative.cli.commands.calibrate import does_it_pay, table


def test_it_predicts_and_measures(small):
    data, page, _ = small("calibrate")
    assert [row["K"] for row in data["rows"]] == list(range(1, 9))
    assert data["costs"]["v"][0] == 1 and 0 < data["alpha"] < 1
    assert (data["n_prompts_expected"], data["n_prompts_timed"], data["n_tokens"]) == (4, 2, 4)
    for row in data["rows"]:
        assert 1 <= row["expected_tokens_per_call"] <= row["K"] + 1 and 1 <= row["tokens_per_call"] <= row["K"] + 1
        assert row["low"] <= row["speedup"] <= row["high"]
    gains = [1, *(row["expected_speedup"] for row in data["rows"])]
    assert data["best_K"] == gains.index(max(gains))
    assert list(data["parts"]) == ["text 1", "text 2", "text 3", "text 4", "costs", "prompt 1", "prompt 2"]
    assert len(re.findall(r"^  \d( +\d\.\d\d){5}  \d\.\d\d to \d+\.\d\d$", page, re.M)) == 8
    assert re.search(r"at most \d+\.\d% apart, at K = \d\.$", page, re.M)


ROWS = [
    {
        "K": K, "expected_tokens_per_call": 1.5, "tokens_per_call": 1.4, "speedup_from_alpha": 1.2,
        "expected_speedup": 1.1, "speedup": K, "low": K - 0.5, "high": 2.5,
    }
    for K in (1, 2)
]  # fmt: skip
REPORT = {
    "target": {"name": "some model"}, "draft": {"name": "some model"}, "machine": "any", "alpha": 0.5,
    "alpha_low": 0.4444, "alpha_high": 0.6, "n_prompts_expected": 7, "n_prompts_timed": 3, "n_tokens": 9, "best_K": 2,
    "costs": {"step": 0.002, "c": 0.1, "v": [1, 1.5, 2], "spread": 0.1}, "rows": ROWS,
}  # fmt: skip


def test_the_page_by_hand():
    page = table(REPORT)
    assert "alpha   0.500, 95 % interval 0.444 to 0.600\n" in page and "WARNING" not in page
    assert "interval  95 %, Student's t over the 3 prompts; of alpha over the 7 texts\n" in page
    assert "an autoregressive step 2.00 ms, c = 0.100, v(1..3) = 1.00 1.50 2.00" in page
    assert "  2      1.50      1.40           1.20      1.10      2.00  1.50 to 2.50" in page
    assert "at most 45.0% apart, at K = 2" in page  # 1.1 / 2 - 1
    assert "and at least Wilson's over their tokens\n" in table({**REPORT, "temperature": 0})


@pytest.mark.parametrize(
    ("best_K", "interval", "verdict"),
    [
        (2, (1.5, 2.5), "Yes: K = 2 is expected to be the fastest, 1.10 times as fast as the target alone, and was "),
        (2, (0.5, 2.5), "Unclear: K = 2 is"),
        (2, (0.5, 0.9), "No: K = 2 is"),
        (2, (None, None), "Unclear: K = 2 is"),
        (0, (0.5, 2.5), "No: every K is expected to be slower than the target alone."),
        (0, (1.5, 2.5), "Unclear: every K is expected to be slower than the target alone, but K = 2 was measured at 2"),
        (0, (None, None), "No: every K is"),
    ],
)
def test_whether_it_pays(best_K, interval, verdict):
    first, second = ROWS
    rows = [first, {**second, "low": interval[0], "high": interval[1]}]
    assert does_it_pay({"best_K": best_K, "rows": rows}).startswith(verdict)


@pytest.mark.parametrize(
    ("v", "spread", "why"),
    [
        ([1, 0.7, 1.02], 0, "v(2) = 0.70 is below 1"),
        ([1, 1.5, 1.2], 0, "v falls from 1.50 at 2 tokens to 1.20 at 3"),
        ([1, 1.1, 1.05], 0.42, "the quartiles of an autoregressive step are 42% of it apart"),
    ],
)
def test_a_warning_of_times_that_contradict_themselves(v, spread, why):
    page = table({**REPORT, "costs": {**REPORT["costs"], "v": v, "spread": spread}})
    assert f"\nWARNING: do not rely on these times ({why}): measure again on a quiet machine.\n" in page
    assert table({**REPORT, "load_average": 1e4}).count("BUSY: load average") == 1
