"""What several plots share."""

import pytest

from speculative.cli.plots import COLOURS, ORANGE, arrows, draw, one_panel, points, sample
from speculative.cli.registry import DRAFTERS

plt = pytest.importorskip("matplotlib.pyplot")
ROWS = [{"speedup": 1.0, "low": 0.5, "high": 1.5}, {"speedup": 2.0, "low": 1.0, "high": 9.0}]


def test_there_is_a_colour_for_each_drafter():
    assert len({*COLOURS}) == len(COLOURS) >= len(DRAFTERS)


@pytest.mark.parametrize(("sideways", "at"), [(False, (7.0, 4.0)), (True, (4.0, 7.0))])
def test_an_arrow_stands_where_an_interval_leaves_the_axes(sideways, at):
    figure, axes = one_panel("")
    points(axes, [6, 7], ROWS, end=4.0, sideways=sideways, color=ORANGE)
    arrows(axes, [1], [3.0], 4.0, ORANGE)  # none
    found = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() in ("^", ">")]
    plt.close(figure)
    assert found == [[[*at]]]


@pytest.mark.parametrize("load", [0.0, 1e9])
def test_a_figure_says_that_the_machine_was_busy(load, tmp_path):
    figure, _ = one_panel("")
    draw(lambda report: figure, {"load_average": load}, str(tmp_path / "a.svg"))
    texts = [text.get_text() for text in figure.texts]
    assert texts == (["BUSY: load average 1000000000.0 at the start: do not rely on times"] if load else [])


def test_one_prompt_has_no_interval():
    assert (sample(1), sample(3, "text")) == ("1 prompt, no interval", "3 texts, 95 % interval")
