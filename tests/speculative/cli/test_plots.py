"""What is in the files of --plot."""

import json
import os
from pathlib import Path

import pytest
from command import run_here

from speculative.cli.commands import compare

SMALL = ("--n_tokens_to_generate=4", "--target_model_size=tiny-draft", "--n_prompts=2")
COMPARE = ("compare", *SMALL, "--drafter=ngram,prompt_lookup", "--K=1,2,5")


@pytest.mark.parametrize(
    ("size", "names"), [([], ["speedup", "tokens_per_call"]), (["--plot_size=3.3x2.5"], ["speedup"])]
)
def test_every_number_of_the_table_is_in_the_plot(size, names, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    monkeypatch.setattr(compare, "page_of", lambda rows, *_, **__: json.dumps(rows))
    rows = json.loads(run_here(*COMPARE, *size, "--plot=a.png").stdout)
    axes = figures[0].axes
    drawn = {round(float(x), 9) for panel in axes for line in panel.lines for x in line.get_xydata().ravel()}
    assert {1, 2, 5, *(round(row[name], 9) for row in rows for name in names)} <= drawn and len(axes) == len(names)
    assert not figures[0].get_suptitle() and not any(panel.get_title(at) for panel in axes for at in ("left", "center"))
    height, width = plt.imread("a.png").shape[:2]
    assert (height, width) == (500, 660) if size else height > 500


def test_a_plot_for_print_has_its_fonts_in_it_and_says_that_the_machine_was_busy(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0, 0), raising=False)
    for name in ("a.svg", "a.pdf"):
        assert "; BUSY: load average 1000.0 at the start" in run_here(*COMPARE[:-1], "--plot", name).stdout
    assert "BUSY: load average 1000.0" in Path("a.svg").read_text("utf-8")
    data = Path("a.pdf").read_bytes()
    assert b"/FontFile2" in data and b"/Type3" not in data and b"Type 3" not in data
