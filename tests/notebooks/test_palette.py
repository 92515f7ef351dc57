"""The looks of p, q, accepted, corrected and bonus: told apart by every eye, and also without colour."""

import itertools
import re

import numpy as np
import pytest
from helpers import ROOT

from speculative.trace import colours

plt = pytest.importorskip("matplotlib.pyplot", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
NAMES = "P", "Q", "ACCEPTED", "CORRECTED", "BONUS"
# Colours of linear RGB as they are seen without one kind of cone: Machado, Oliveira and Fernandes (2009), severity 1.
EYES = {
    "all cones": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


@pytest.fixture
def looks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "notebooks")
    from figures import palette

    return {name: getattr(palette, name) for name in NAMES}


def linear(colour):
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB, in which a distance of 2.3 is just noticeable side by side."""
    xyz = TO_XYZ @ rgb.clip(0, 1) / (TO_XYZ @ np.ones(3))
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_any_two_can_be_told_apart(eye, ground):
    for a, b in itertools.combinations(NAMES, 2):
        seen = [lab(np.array(EYES[eye]) @ linear(getattr(getattr(colours, name), ground))) for name in (a, b)]
        assert np.linalg.norm(seen[0] - seen[1]) > 20, (a, b)


@pytest.mark.parametrize("page", ["explore", "live", "trace"])
def test_a_page_has_these_colours(page):
    text = (ROOT / "speculative" / "pages" / f"{page}.html").read_text(encoding="utf-8")
    for ground, style in zip(("light", "dark"), text.split("prefers-color-scheme: dark")):
        for name in NAMES:
            assert re.findall(rf"--{name.lower()}: (#\w+)", style) == [getattr(getattr(colours, name), ground)]


def test_figures_and_the_picture_of_the_method_have_these_colours(looks):
    expected = [getattr(colours, name).light for name in NAMES]
    assert [look.colour for look in looks.values()] == expected
    style = (ROOT / "notebooks" / "figures.mplstyle").read_text(encoding="utf-8")
    assert re.findall(r'"(\w{6})"', style)[:5] == [colour[1:] for colour in expected]
    pixels = np.round(255 * plt.imread(ROOT / "docs" / "method.png")[..., :3]).astype(int).reshape(-1, 3)
    of_picture = {f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.unique(pixels, axis=0)}
    assert {colours.Q.light, colours.ACCEPTED.light, colours.CORRECTED.light} <= of_picture


def test_the_parts_of_one_bar_also_differ_without_colour(looks):
    for a, b in ("ACCEPTED", "Q"), ("ACCEPTED", "CORRECTED"), ("Q", "CORRECTED"), ("BONUS", "ACCEPTED"), ("BONUS", "Q"):
        assert looks[a].hatch != looks[b].hatch


def test_a_text_on_it_can_be_read(looks):
    """A contrast of 4.5, as WCAG 2 asks for."""
    for look in looks.values():
        luminances = [
            TO_XYZ[1] @ linear(colour) + 0.05
            for colour in (look.colour, {"white": "#ffffff", "black": "#000000"}[look.ink])
        ]
        assert max(luminances) / min(luminances) > 4.5
