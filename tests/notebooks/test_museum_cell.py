"""The cell of notebook 09 that says how many texts show a mistake."""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks


@pytest.fixture
def n_needed():
    """Of the names after the cell ran for one exhibit, whose distributions differ by 1e-9."""
    notebook = nbformat.read(ROOT / "notebooks" / "09_the_museum.ipynb", as_version=4)
    [cell] = [cell.source for cell in notebook.cells if "def n_needed(" in cell.source]
    names = {"np": np, "math": math, "itertools": itertools, "exhibit": SimpleNamespace(name="some"), "error": 1e-9}
    names |= {"p_texts": np.array([0.5, 0.5]), "distribution": np.array([0.5 + 1e-9, 0.5 - 1e-9])}
    exec(cell, names)
    return names["n_needed"]


def at_least(n, k, share):
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))


def found(n, a, b):
    k = next((k for k in range(n + 1) if at_least(n, k, a) <= 1 / 1000), n + 1)
    return at_least(n, k, b)


def test_small_sample_sizes_keep_both_promises(n_needed):
    """One false alarm in 1,000, nine of ten mistakes found, with as few texts as possible."""
    for a, b in (0.5, 0.97), (0.3, 0.6), (0.1, 0.5), (0.4, 1.0):
        n = n_needed(np.array([a, 1 - a]), np.array([b, 1 - b]))
        assert found(n, a, b) >= 0.9 and max(found(m, a, b) for m in range(1, n)) < 0.9


def test_an_exhibit_that_needs_many_texts_is_not_simulated(capsys, n_needed):
    assert re.search(r"^some: [\d,]{18,} texts$", capsys.readouterr().out)
