"""What is in the files of --plot."""

import json
import os

import pytest
from command import run_here

from speculative.cli.commands import compare

SMALL = ("--n_tokens_to_generate=4", "--target_model_size=tiny-draft")
COMPARE = ("compare", *SMALL, "--n_prompts=2", "--drafter=ngram,prompt_lookup", "--K=1,2,5")


def numbers(report, *names):
    return [row[name] for row in report["rows"] for name in names]


@pytest.mark.parametrize(
    ("words", "wanted", "n_panels"),
    [
        (COMPARE, lambda report: [1, 2, 5, *numbers(report, "speedup", "tokens_per_call")], 2),
        ((*COMPARE, "--plot_size=3.3x2.5"), lambda report: [1, 2, 5, *numbers(report, "speedup")], 1),  # narrow
    ],
    ids=["compare", "narrow"],
)  # fmt: skip
def test_every_number_of_the_table_is_in_the_plot(words, wanted, n_panels, monkeypatch, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    monkeypatch.setattr(compare, "page_of", lambda rows, *_, **__: json.dumps(rows))
    result = run_here(*words, "--plot", tmp_path / "a.png")
    axes = figures[0].axes
    drawn = {round(float(x), 9) for panel in axes for line in panel.lines for x in line.get_xydata().ravel()}
    assert {round(x, 9) for x in wanted({"rows": json.loads(result.stdout)})} <= drawn and len(axes) == n_panels
    assert not figures[0].get_suptitle() and not any(panel.get_title(at) for panel in axes for at in ("left", "center"))
    height, width = plt.imread(tmp_path / "a.png").shape[:2]
    assert (height, width) == (500, 660) if "--plot_size=3.3x2.5" in words else height > 500


def test_a_plot_for_print_has_its_fonts_in_it_and_says_that_the_machine_was_busy(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0, 0), raising=False)
    for name in ("a.svg", "a.pdf"):
        result = run_here(*COMPARE[:-1], "--plot", tmp_path / name)
        assert "; BUSY: load average 1000.0 at the start" in result.stdout
    assert "BUSY: load average 1000.0" in (tmp_path / "a.svg").read_text("utf-8")
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in data and b"/Type3" not in data and b"Type 3" not in data
