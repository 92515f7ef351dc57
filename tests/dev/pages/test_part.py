"""Sections of explore.html in a page of the site: only these, at their full height."""

import json
from pathlib import Path

import pytest
from browser import chromium, pages
from helpers import ROOT, script

make_site = script("dev/pages/make_site.py")
CELL = {"cell_type": "markdown", "metadata": {}, "source": ["To play with:\n", "\n", "<!-- explore two break -->"]}


def test_a_comment_in_a_notebook_becomes_a_frame():
    text = make_site.on_site(json.dumps({"cells": [CELL]}), Path("notebooks/05_x.ipynb"))
    [cell] = json.loads(text)["cells"]
    assert 'src="../explore.html?sections=two+break"' in cell["source"] and "<!--" not in cell["source"]


@pytest.mark.parametrize(("n_drawing", "has_figure", "hidden"), [(4, True, True), (3, True, False), (4, False, False)])
def test_the_code_of_a_cell_that_only_draws_is_hidden(n_drawing, has_figure, hidden):
    source = ["v = [2]\n", "def squared():\n", "    return v[0] ** 2\n", "w = 1\n", *n_drawing * ["ax.plot(v)\n"]]
    outputs = [{"data": {"image/png": ""}}] * has_figure
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": outputs}
    [cell] = json.loads(make_site.on_site(json.dumps({"cells": [cell]}), Path("notebooks/05_x.ipynb")))["cells"]
    assert (cell["metadata"].get("tags") == ["hide-input"]) == hidden


@pytest.mark.browser
@pytest.mark.parametrize("screen", ["wide", "phone"])
def test_only_these_sections_are_shown_and_none_is_cut(tmp_path, screen):
    page = (ROOT / "speculative" / "pages" / "explore.html").read_text(encoding="utf-8")
    (tmp_path / "explore.html").write_text(page, encoding="utf-8")
    frame = make_site.FRAME.format(up="", sections="two+break").replace(' loading="lazy"', "")
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{frame}", encoding="utf-8")
    with chromium() as browser, pages(browser) as show:
        view = show(tmp_path / "page.html", screen)
        inner = view.frames[1]
        inner.wait_for_selector("#tv")
        shown = inner.evaluate("[...document.querySelectorAll('section')].filter(s => s.offsetHeight).map(s => s.id)")
        assert shown == ["two", "break"] and not inner.locator("header").is_visible()
        view.wait_for_function("document.querySelector('iframe').offsetHeight !== 640")
        heights = inner.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert heights[0] <= heights[1]
