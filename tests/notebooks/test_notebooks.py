"""The notebooks as documents: they run, their exercises can be solved, and they are committed with what they show."""

import os
import re
import subprocess
import sys

import pytest
from helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9]*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if not path.stem.startswith("05_")]  # 05 is a page without exercises


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
