"""The checks of the notebooks' exercises, and their solutions."""

import importlib
import re

import pytest
from helpers import ROOT

FOLDER = ROOT / "notebooks"


def notebook_cells(number):
    """The source of each code cell."""
    [path] = FOLDER.glob(f"{number}_*.ipynb")
    nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [cell.source for cell in cells if "colab" not in cell.metadata.get("tags", ())]


@pytest.fixture
def check(monkeypatch):
    """check(number, name, *others): the function `name` of a notebook, after the cells that contain one of `others`."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("MPLBACKEND", "Agg")

    monkeypatch.syspath_prepend(FOLDER)

    def loaded(number, name, *others):
        if name.startswith("exercise"):
            [path] = FOLDER.glob(f"{number}_*.ipynb")
            return getattr(importlib.import_module(f"checks.{path.stem[3:]}"), name)
        cells, names = notebook_cells(number), {}
        for source in cells:
            if source is cells[0] or any(other in source for other in others):
                exec(source, names)
            if f"def {name}(" in source:
                exec(re.sub(rf"\n{name}\(\w+\)$", "", source), names)
        return names[name]

    return loaded


@pytest.fixture
def solution():
    def loaded(number, name):
        [path], names = (FOLDER / "solutions").glob(f"{number}_*.py"), {}
        exec(path.read_text(encoding="utf-8"), names)
        return names[name]

    return loaded


@pytest.fixture
def cells_of():
    return notebook_cells
