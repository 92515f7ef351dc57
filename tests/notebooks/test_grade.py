"""A folder of submitted answers becomes a table."""

import csv
import json
import subprocess
import sys

import pytest
from helpers import ROOT

pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"


def table_of(folder, *arguments):
    command = [sys.executable, FOLDER / "grade.py", "14", folder, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    return {row["file"]: row for row in csv.DictReader(result.stdout.splitlines())}


def test_each_file_gets_the_first_line_of_each_check(tmp_path):
    """Answers that print, exit or never end, a helper in a cell of its own, and a file that is no Python."""
    solution = (FOLDER / "solutions" / "14_beyond_one_laptop.py").read_text(encoding="utf-8")
    notebook = json.loads((FOLDER / "14_beyond_one_laptop.ipynb").read_text(encoding="utf-8"))
    [cell] = [cell for cell in notebook["cells"] if "def most_texts" in "".join(cell["source"])]
    [slow] = [cell for cell in notebook["cells"] if "accepted / drafted" in "".join(cell["source"])]
    own = {
        "cell_type": "code",
        "metadata": {},
        "source": ["%time\n", "def free(F, B, b):\n", "    return b * F / B / 2"],
    }
    cell["source"] = ["def most_texts(F, B, b, K):\n", "    return int(free(F, B, b) // (K + 1))"]
    slow["source"] = ["raise SystemExit('this cell is not needed')"]
    notebook["cells"].insert(notebook["cells"].index(cell), own)
    (tmp_path / "ada.py").write_text(solution, encoding="utf-8")
    (tmp_path / "bob.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tmp_path / "eve.py").write_text(
        "def most_texts(F, B, b, K):\n    print('right: 1')\n    return int(b * F / (2 * B) // K)\n\n"
        "def audit(verify):\n    raise SystemExit(0)\n\ndef match_batch(*given):\n    while True:\n        pass\n"
    )
    (tmp_path / "kim.py").write_text("def f(:")
    (tmp_path / "notes.txt").write_text("not graded")
    table = table_of(tmp_path, "20")
    one, two, three = "exercise_1(most_texts)", "exercise_2(audit)", "exercise_3(match_batch)"
    assert {name: row["right"] for name, row in table.items()} == {
        "ada.py": "3", "bob.ipynb": "1", "eve.py": "0", "kim.py": "0"
    }  # fmt: skip
    assert table["bob.ipynb"][one].startswith("right: m*") and table["bob.ipynb"][two].startswith("not solved yet")
    assert table["eve.py"][one].startswith("a round of K draft tokens is a pass for K + 1 tokens")
    assert table["eve.py"][two] == "SystemExit: 0"
    assert table["eve.py"][three] == "no result after 20 seconds"
    assert all(table["kim.py"][each].startswith("SyntaxError") for each in (one, two, three))


def test_without_the_project_it_says_so_once():
    command = [sys.executable, "-I", "-S", str(ROOT / "notebooks" / "grade.py"), "05", "."]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.stdout, said.returncode) == ("", 1) and "the project is not installed" in said.stderr
