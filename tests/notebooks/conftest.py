"""The checks of the notebooks' exercises, and their solutions."""

import importlib

import pytest
from helpers import ROOT

FOLDER = ROOT / "notebooks"


@pytest.fixture
def check(monkeypatch):
    """check(number, name): the function `name` of the module with the checks of a notebook."""
    monkeypatch.syspath_prepend(FOLDER)

    def loaded(number, name):
        [path] = FOLDER.glob(f"{number}_*.ipynb")
        return getattr(importlib.import_module(f"checks.{path.stem.partition('_')[2]}"), name)

    return loaded


@pytest.fixture
def solution():
    def loaded(number, name):
        [path], names = (FOLDER / "solutions").glob(f"{number}_*.py"), {}
        exec(path.read_text(encoding="utf-8"), names)
        return names[name]

    return loaded
