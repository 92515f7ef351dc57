"""The cell of notebook 09 that says how many texts show a mistake."""

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
    names = {"np": np, "exhibit": SimpleNamespace(name="some"), "error": 1e-9}
    names |= {"p_texts": np.array([0.5, 0.5]), "distribution": np.array([0.5 + 1e-9, 0.5 - 1e-9])}
    exec(cell, names)
    return names["n_needed"]


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.6), (0.4, 0.5), (0.2, 0.28), (0.3, 0.6)])
def test_the_sample_sizes_keep_both_promises(n_needed, a, b):
    """About one false alarm in 1,000, nine of ten mistakes found: by the binomial distribution, without sampling."""
    n = math.ceil(n_needed(np.array([a, 1 - a]), np.array([b, 1 - b])))
    alarm = math.floor(n * a + 3.09 * math.sqrt(n * a * (1 - a))) + 1
    false, found = (sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(alarm, n + 1)) for x in (a, b))
    assert 0.88 < found < 0.93 and 0.0003 < false < 0.0025


def test_an_exhibit_that_needs_many_texts_is_not_simulated(capsys, n_needed):
    assert re.search(r"^some: [\d,]{18,} texts$", capsys.readouterr().out)
