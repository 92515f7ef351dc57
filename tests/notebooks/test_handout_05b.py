"""A lab of notebook 05b: its number has a letter, its figures come along, and kept answers keep their verdicts."""

import csv
import subprocess
import sys

import pytest
from helpers import ROOT

pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"


def tool(name, *arguments):
    command = [sys.executable, FOLDER / f"{name}.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8-sig", check=False)


def test_it_is_made_and_graded(tmp_path):
    lab, answers = tmp_path / "lab", tmp_path / "answers"
    made = tool("handout", "5b", "--output", lab)
    assert made.stdout == f"{lab}: 4 exercises, 9 points, 85 minutes\n", made.stderr
    checks = {"checks/speculative_sampling.py", "checks/speculative_sampling.txt"}
    assert {"figures/palette.py", "figures/exactness.py", "figures.mplstyle", *checks} <= {
        path.relative_to(lab).as_posix() for path in lab.rglob("*")
    }
    answers.mkdir()
    solution = (FOLDER / "solutions" / "05b_speculative_sampling.py").read_text(encoding="utf-8")
    (answers / "ada.py").write_text(solution.replace("return missing / missing.sum()", "return p"), encoding="utf-8")
    [row] = csv.DictReader(tool("grade", lab / "05b_speculative_sampling.ipynb", answers).stdout.splitlines())
    assert (row["right"], row["points"]) == ("3", "8")
    assert row["05b.exercise_2(my_residual)"].startswith("that is p itself")


def test_the_page_05_has_nothing_to_grade(tmp_path):
    said = tool("grade", "05", tmp_path)
    assert said.returncode == 2 and "has no exercises: expected a notebook with exercises, such as 05b" in said.stderr
