"""Notebook 05, the page that is read without running it: no figure, quotation or number can go stale."""

import ast
import json
import re
import sys

import pytest
from helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytest.importorskip("IPython", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"
HIDDEN = {"hide-input"}


@pytest.fixture(scope="module")
def cells():
    [path] = FOLDER.glob("05_*.ipynb")
    return nbformat.read(path, as_version=4).cells


@pytest.fixture
def tales(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from figures import tales

    yield tales
    for name in [name for name in sys.modules if name.partition(".")[0] == "figures"]:
        del sys.modules[name]


def visible(cells):
    return [cell for cell in cells if cell.cell_type == "code" and not HIDDEN & {*cell.metadata.get("tags", ())}]


def test_every_cell_asserts_what_is_said_before_it(cells):
    for cell in visible(cells):
        assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source))), cell.source


def test_the_quoted_tales_are_those_that_the_page_compares_with_its_output(cells, tales):
    quoted = re.findall(r"(?m)^> \*\*[AB]\.\*\* (.*(?:\n> .*)*)", cells[0].source)
    assert [text.replace("\n> ", " ") for text in quoted] == [tales.A, tales.B]
    assert any("== (tales.A, tales.B), tales.OTHERS" in cell.source for cell in visible(cells))


def test_its_figures_have_a_description(cells):
    for cell in visible(cells):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert len(cell.metadata.mystnb.image.alt) > 40


def test_the_quoted_code_is_what_the_packages_were_searched_for(cells):
    packages = json.loads((FOLDER / "figures" / "transformers.json").read_text(encoding="utf-8"))
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert len(packages["quoted"]) == 2 and all(line in prose for line in packages["quoted"])
