"""`compare_sizes`: targets of several sizes, natively and with each drafter."""

import re

import pytest
from command import refusal, report_of

from speculative.cli.commands.compare_sizes import table
from speculative.cli.registry import DRAFTERS

FEW = ("--n_prompts=3", "--n_tokens_to_generate=4")


def test_the_page(small):
    report, page, _ = small("compare_sizes")
    alone = {**report, "targets": {"alone": {**report["targets"]["tiny-draft"], "drafters": {}}}}
    assert re.search(r"^alone +0\.7 M +\d+\.\d\d s   -$", table(alone), re.M)
    drafters = {name: list(found["drafters"]) for name, found in report["targets"].items()}
    assert drafters == {"tiny-draft": ["ngram"], "tiny-target": ["model", "ngram"]}
    row = r" (tiny-draft|ngram) +\d+\.\d\d s +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d +\d\.\d\d$"
    assert len(re.findall(row, page, re.M)) == 3


def test_all_drafters_are_those_that_suit_each_target(quick):
    words = (
        "compare_sizes",
        FEW[0],
        "--n_tokens_to_generate=2",
        "--drafters",
        ",".join(DRAFTERS),
        "--target_sizes=tiny-target,tiny-draft",
    )
    found = report_of(*words)["targets"]
    assert list(found["tiny-target"]["drafters"]) == [kind for kind in DRAFTERS if kind != "forced"]
    assert {*DRAFTERS} - {*found["tiny-draft"]["drafters"]} == {"model", "early_exit", "heads", "eagle", "forced"}


@pytest.mark.parametrize(
    ("drafters", "message"),
    [
        ("ngram,heads", "--drafters: heads needs heads, which tiny-draft does not have: leave one of the two out"),
        ("early_exit", "--drafters: early_exit needs layers after those of --exit_layer, which tiny-draft does not"),
    ],
)
def test_a_target_that_lacks_what_a_drafter_needs(drafters, message):
    assert refusal("compare_sizes", "--drafters", drafters, *FEW).startswith(message)
