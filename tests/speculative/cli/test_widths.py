"""The command widths, on the bundled pair, whose rows are bitwise identical."""

import json

from command import run_here


def test_the_bundled_pair_is_bitwise_identical():
    report = json.loads(run_here("widths", "--n_tokens_to_generate=34", "--n_prompts=1", "--json").stdout)
    assert [row["m"] for row in report["widths"]] == list(range(2, 10))
    assert all(row["largest"] == row["units"] == row["flips"] == 0 for row in report["widths"])
    assert report["differences"] == [] and report["verdict"].startswith("bitwise identical")
