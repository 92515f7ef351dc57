"""The notebooks as documents: they run, their exercises can be solved, and they are committed with what they show.

Notebook 05 is a page that is read without running it: no quotation and no number of it can go stale.
"""

import ast
import json
import math
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9]*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if not path.stem.startswith("05_")]
[PAGE] = {*NOTEBOOKS} - {*LESSONS}  # without exercises


def cells(path, tag=None):
    found = nbformat.read(path, as_version=4).cells
    return [cell for cell in found if tag is None or tag in cell.metadata.get("tags", ())]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_its_exercises_can_be_solved(path):
    command = [sys.executable, FOLDER / "run.py", "--check", path]
    short = {**os.environ, "TRAIN_BUDGET": "--tokens 3000"}  # seconds, where a reader trains for minutes
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=short)
    if result.stdout.startswith("left out"):
        pytest.skip(result.stdout)
    assert result.returncode == 0, result.stderr


def test_what_a_notebook_needs_is_known_before_the_first_one_runs(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("if True:\n    import not_installed, json")])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    command = [sys.executable, FOLDER / "run.py", "--check", tmp_path / "n.ipynb"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, "nothing was run\n")
    install = "python -m pip install -e '.[notebooks,train]'"
    assert result.stdout == f"left out: n.ipynb needs not_installed: {install}\n"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_it_is_built_as_all_are(path):
    everything = cells(path)
    title = everything[0].source
    assert title.startswith("# ") and "After this you can" in title and "second" in title  # how long it runs
    checks = cells(path, "check")
    assert len(cells(path, "model_size")) == 1 and 2 <= len(checks) <= 4
    assert all(set(cell.metadata.tags) == {"check", "raises-exception"} for cell in checks)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_with_its_outputs_and_figures(path):
    code = [cell for cell in cells(path) if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "(A busy machine" not in "".join(output.get("text", "") for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)
    for cell in code:
        if "check" in cell.metadata.get("tags", ()):
            said = "".join(output.text for output in cell.outputs)  # of code to be repaired, its mistake
            assert said and not said.startswith("right")
            assert re.fullmatch(r"check\.exercise_\d\(.+\)", cell.source)


def test_a_notebook_of_ones_own_has_any_name_and_no_edit_is_lost(tmp_path):
    (tmp_path / "checks").mkdir()
    code = (
        "from pathlib import Path\npath = Path('mine.ipynb')\nif path.exists(): path.write_text(path.read_text() + ' ')"
    )
    for name, source, code_of_exit in (("own.ipynb", "1 + 1", 0), ("mine.ipynb", code, 1)):
        cells = [nbformat.v4.new_markdown_cell("# Mine"), nbformat.v4.new_code_cell(source)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / name)
        command = [sys.executable, FOLDER / "run.py", tmp_path / name]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == code_of_exit, result.stderr
    assert "it was edited while it ran, nothing was written" in result.stderr
    assert (tmp_path / "mine.ipynb").read_text().endswith(" ")


def shown_code():
    """The code cells of notebook 05 that a reader sees."""
    code = [cell for cell in cells(PAGE) if cell.cell_type == "code"]
    return [cell for cell in code if "hide-input" not in cell.metadata.get("tags", ())]


def test_each_cell_of_the_page_asserts_what_is_said_before_it_and_describes_its_figure():
    for cell in shown_code():
        assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source))), cell.source
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert len(cell.metadata.mystnb.image.alt) > 40


def test_what_the_page_quotes_is_what_it_compares_with_its_output_and_what_packages_were_searched_for(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from figures import tales

    quoted = re.findall(r"(?m)^> \*\*[AB]\.\*\* (.*(?:\n> .*)*)", cells(PAGE)[0].source)
    assert [text.replace("\n> ", " ") for text in quoted] == [tales.A, tales.B]
    assert any("== (tales.A, tales.B), tales.OTHERS" in cell.source for cell in shown_code())
    packages = json.loads((FOLDER / "figures" / "transformers.json").read_text(encoding="utf-8"))
    prose = "".join(cell.source for cell in cells(PAGE) if cell.cell_type == "markdown")
    assert len(packages["quoted"]) == 2 and all(line in prose for line in packages["quoted"])


@pytest.fixture
def n_needed():
    """As the cell of notebook 09 defines it that ran for one exhibit, whose distributions differ by 1e-9."""
    [cell] = [cell.source for cell in cells(FOLDER / "09_the_museum.ipynb") if "def n_needed(" in cell.source]
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
