"""`prompts`: native against assisted, prompt by prompt."""

import json
import re

import pytest
from command import PAIR, report_of, run_here, words

from speculative import Costs
from speculative.cli.commands.prompts import about_texts, table
from speculative.cli.inputs import KNOWN
from speculative.cli.report import Saved
from speculative.cli.tables import tree_line


def test_the_page(small):
    report, page, _ = small("prompts")
    assert [row["prompt"] for row in report["rows"]] == list(KNOWN) and len(KNOWN) == 7
    rows = re.findall(r"^(.{40}) +(\d+\.\d\d) +\d+ +(\d+\.\d\d) +\d+ +\d+\.\d\d +\d\.\d\d  (yes|7 of 7)$", page, re.M)
    assert [row[0].rstrip() for row in rows] == [*(row["beginning"] for row in report["rows"]), "all 7"]
    assert report["all"]["seconds"] == pytest.approx(sum(row["seconds"] for row in report["rows"]))


def test_tokens_per_second_of_all_prompts_count_the_tokens_of_all():
    total = {
        "native_seconds": 2.0, "seconds": 1.0, "speedup": 2.0, "tokens_per_call": 3.0, "same_texts": 2, "low": 1.5,
        "high": 2.5,
    }  # fmt: skip
    row = {**total, "native_seconds": 1.0, "seconds": 0.5, "beginning": "Once", "same_text": True}
    page = words(table({
        "target": {"name": "t"}, "draft": {"name": "d"}, "machine": "any", "all": total, "rows": [row, row],
        "n_tokens": 10, "K": 3, "temperature": 0, "verifier": "rejection", "exactness": "exact", "tree": "",
        "costs": None, "measured_tree": None,
    }))  # fmt: skip
    assert page.count("Once 1.00 10 0.50 20 2.00 3.00 yes") == 2 and "all 2 2.00 10 1.00 20 2.00 3.00 2 of 2" in page


def test_both_texts_of_every_prompt_in_the_log(tmp_path):
    (tmp_path / "prompts").write_text("Once upon a time\nThere was\n", encoding="utf-8")
    small = ("--temperature=1", "--n_tokens_to_generate=9", *PAIR, "--json")
    result = run_here("prompts", "--prompt_file", tmp_path / "prompts", "--log", tmp_path / "a.txt", *small)
    report, log = json.loads(result.stdout), (tmp_path / "a.txt").read_text(encoding="utf-8")
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        assert f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n" in log
        assert f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n" in log
    assert "parts" not in report and report["command"] == "prompts"


@pytest.mark.parametrize(
    ("temperature", "rule", "exactness", "sentence"),
    [
        (0, "rejection", "exact", "both texts should be the same"),
        (1, "gumbel", "exact", "both texts should be the same"),
        (1, "rejection", "exact", "both texts have one distribution but may differ"),
        (1, "typical", "LOSSY", "LOSSY: the texts do not even have the same distribution"),
    ],
)
def test_what_to_expect_of_the_texts(temperature, rule, exactness, sentence):
    assert sentence in about_texts({"temperature": temperature, "verifier": rule, "exactness": exactness})


@pytest.mark.parametrize("option", ["tree", "K"])
def test_a_run_that_resumes_goes_on_with_the_tree_and_the_costs_that_it_found(option, tmp_path, monkeypatch, quick):
    found = iter([Costs(0.001, 0.05, tuple(1 + 0.01 * k for k in range(17))), Costs(0.001, 0.2, (1.0,) + (1.5,) * 16)])
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: next(found))
    keep, path = Saved.keep, tmp_path / "a.json"
    words = ("prompts", "--prompts=tales", "--n_prompts=3", "--n_tokens_to_generate=4", f"--{option}=auto")

    def interrupted(saved, name, measure):
        if saved.parts:
            raise KeyboardInterrupt
        return keep(saved, name, measure)

    with monkeypatch.context() as patch:
        patch.setattr(Saved, "keep", interrupted)
        assert run_here(*words, "--json", path).returncode == 130
    notes = json.loads(path.read_text("utf-8"))["notes"]
    page, report = run_here(*words, "--json", path).stdout, json.loads(path.read_text("utf-8"))
    assert len(notes) == 1 and report["notes"] == notes
    if option == "tree":
        assert report["measured_tree"] == notes["tree"] and report["tree_nodes"] == notes["tree"]["nodes"]
        assert f"\n{tree_line(report)}\n" in page and " nodes, depth " in page
    else:
        assert (
            report["costs"] == notes["costs"]
            and "\ncosts   an autoregressive step 1.00 ms, c = 0.050, v(1..17)" in page
        )


def test_as_many_of_the_known_prompts_as_are_asked_for():
    report = report_of("prompts", *PAIR, "--n_prompts=3", "--n_tokens_to_generate=2")
    assert [row["beginning"][:4] for row in report["rows"]] == ["Name", "Give", "Gene"]
