"""Handouts, and answers that come back: a table, and a text for each student; marks as the notebook showed them."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from helpers import ROOT

pytest.importorskip("IPython", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"
NAMES = "most_texts", "audit", "match_batch", "stays"
ONE, TWO, THREE, FOUR = (f"14.exercise_{i}({name})" for i, name in enumerate(NAMES, 1))
SOLUTION = next((FOLDER / "solutions").glob("14_*.py")).read_text(encoding="utf-8")
NOTEBOOK = json.loads(next(FOLDER.glob("14_*.ipynb")).read_text(encoding="utf-8"))
IMPORTS, *OTHERS = (cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code")
CELLS = [IMPORTS, *(cell for cell in OTHERS if cell["metadata"].get("tags"))]  # without its measurements, of minutes
UNTOUCHED = json.dumps({**NOTEBOOK, "cells": CELLS})
RIGHT, UNSOLVED = "right", "not solved yet"
SHORT = "10"  # seconds for a cell of slow.ipynb; the check of exercise 4 takes as long on a slow machine


def notebook(*, before="", after="", **sources):
    """Notebook 14 with the right answers, or the sources given, as cells; before and after: cells around them."""
    head, *rest = SOLUTION.split("\n\n\ndef ")
    answers = {part.split("(")[0]: "def " + part for part in rest} | sources

    def code(source):
        return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}

    cells = []
    for cell in CELLS:
        if "exercise" in cell["metadata"].get("tags", ()):
            name = next(name for name in NAMES if f"def {name}" in "".join(cell["source"]))
            cells += [code(before)] * (name == "most_texts") + [code(head), code(answers[name])]
        else:
            cells += [cell]
    return json.dumps({**NOTEBOOK, "cells": [*cells, code(after)]})


ANSWERS = {  # file: its text, what the first three checks begin with
    "ada.py": (SOLUTION, [RIGHT] * 3),
    "blank.ipynb": (UNTOUCHED, [UNSOLVED] * 3),
    "upper.IPYNB": (notebook(), [RIGHT] * 3),
    "shell.ipynb": (
        notebook(before="import os, subprocess\nos.system('echo right: hello')\nsubprocess.run(['echo', 'right'])\n"
                        "os.write(1, b'\\xff\\n')\nimport no_such_package"), [RIGHT] * 3),
    "foreign.ipynb": (notebook(before="%%bash\nexit 3", after="np.random?\nfiles = !ls\n%nothing\n!pip install x"),
                      [RIGHT] * 3),
    "broken.ipynb": (notebook(audit="def audit(serve:"), [RIGHT, "SyntaxError", RIGHT]),
    "needs.ipynb": (notebook(most_texts="import no_such_package\ndef most_texts(*given):\n    no_such_package"),
                    ["ModuleNotFoundError", RIGHT, RIGHT]),
    "later.ipynb": (notebook(after="def most_texts(F, B, b, K): return 0\nfrom checks.beyond_one_laptop import *"),
                    [RIGHT] * 3),
    "exits.ipynb": (notebook(before="raise SystemExit", audit="import os\ndef audit(serve): os._exit(3)"),
                    [RIGHT, "died", RIGHT]),
    "slow.ipynb": (notebook(before="while True: pass", audit="def audit(serve):\n    while True: pass",
                            stays="stays = 1"),
                   [RIGHT, f"slow: no result after {SHORT} seconds", RIGHT]),
    "raises.ipynb": (notebook(most_texts="def most_texts(*_): raise AssertionError('right: all good')",
                              audit="class Odd(Exception):\n    def __str__(self): raise ValueError\n"
                                    "def audit(serve): raise Odd",
                              match_batch="def match_batch(*_): raise AssertionError('=HYPERLINK(1)')"),
                     ["AssertionError: right", "Odd (its message", "AssertionError: =HYPERLINK"]),
    "=1+1.py": ("def most_texts(F, B, b, K):\n    print('right')\n    return int(b * F / (2 * B) // K)\n",
                ["a round of K draft tokens is a pass for K + 1", "NameError", "NameError"]),
    "eve.py": ("import nothing\n\n" + SOLUTION.replace("def audit", "def other") + "\n\n1 / 0\n",
               [RIGHT, "NameError", RIGHT]),
    "reset.ipynb": (notebook(before="%reset -f", after="%reset -f"), [RIGHT] * 3),
    "writes.ipynb": (notebook(before=f"%%writefile my_answers.py\n{SOLUTION}"), [RIGHT] * 3),
    "xerox.ipynb": (notebook(most_texts="from my_answers import *", audit="", match_batch=""), ["NameError"] * 2),
    "removes.ipynb": (notebook(before="import os, shutil\nshutil.rmtree(os.environ['IPYTHONDIR'])"), [RIGHT] * 3),
    "leaves.ipynb": (notebook(before="import subprocess\nfor is_own in (False, True):\n"
                                      "    subprocess.Popen(['sleep', '98765'], start_new_session=is_own)"),
                      [RIGHT] * 3),
    "changes.ipynb": (notebook(before="from checks import beyond_one_laptop as c\nc.exercise_2 = lambda *_: 'right'",
                               audit="def audit(serve): pass"),
                      ["changed the checks: checks.beyond_one_laptop.exercise_2", "", "changed the checks"]),
    "deep.ipynb": ("[" * 200_000, ["unreadable: RecursionError"] * 3),
    "deep.py": (f"x = {'-' * 200_000}1\n", ["unreadable"] * 3),
    f"{'long' * 62}.py": (SOLUTION, [RIGHT] * 3),
    "lab.zip": ("PK", ["nothing to grade: lab.zip"] * 3),
    "kim.py": ("def f(:", ["SyntaxError"] * 3),
    "latin.py": (b"# \xe9\n", ["unreadable: latin.py is not in UTF-8: save it with this encoding"] * 3),
    "later_latin.py": (SOLUTION.encode() + b"\n\n# \xe9\n", ["unreadable: later_latin.py is not in UTF-8"] * 3),
    "text.ipynb": ("no JSON", ["unreadable"] * 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    answers, told = tmp_path_factory.mktemp("answers"), tmp_path_factory.mktemp("told")
    slow = tmp_path_factory.mktemp("slow")
    for name, (text, _) in ANSWERS.items():
        folder = slow if name == "slow.ipynb" else answers
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (answers / "folder.py").mkdir()
    (answers / "two").mkdir()
    (answers / "link.py").symlink_to(answers / "ada.py")
    for i, (name, text) in enumerate({"solved.ipynb": notebook(), "v1.py": SOLUTION, "v2.ipynb": UNTOUCHED}.items()):
        (answers / "two" / name).write_text(text, encoding="utf-8")
        os.utime(answers / "two" / name, (i, i))
    rows = []
    for arguments in ([answers.name], [slow.name, SHORT]):
        command = [sys.executable, FOLDER / "grade.py", "14", *arguments, "--feedback", told]
        result = subprocess.run(command, cwd=answers.parent, capture_output=True, text=True, encoding="utf-8-sig")
        assert result.returncode == 0, result.stderr
        rows += csv.DictReader(result.stdout.splitlines())
    return {row["file"].removeprefix("'"): row for row in rows}, told


def test_there_is_a_line_for_every_entry(graded):
    rows, told = graded
    assert rows.keys() == {*ANSWERS, "folder.py", "two", "link.py"}
    assert rows["folder.py"][ONE] == "nothing to grade: an empty folder" and rows["folder.py"]["points"] == "0"
    assert rows["link.py"][ONE] == "nothing to grade: link.py (a link)"
    assert rows["ada.py"]["points"] == f"{sum(int(rows['ada.py'][f'14.{i}']) for i in (1, 2, 3, 4))}" != "0"
    assert len([*told.iterdir()]) == len(rows)


def test_of_several_files_the_newest_with_most_answers_is_graded(graded):
    assert graded[0]["two"]["right"] == graded[0]["ada.py"]["right"]
    said = (graded[1] / "two.txt").read_text(encoding="utf-8")
    assert re.match(r"graded for 14_.*: v1.py, 1 of 3 files\n", said)


def test_what_an_answer_leaves_behind_is_removed(graded):
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")] if Path("/proc").exists() else []
    assert b"sleep\x0098765\x00" not in commands and not (FOLDER / "my_answers.py").exists()


@pytest.mark.parametrize("name", ANSWERS)
def test_each_check_says_what_the_notebook_showed(graded, name):
    row, wanted = graded[0][name], ANSWERS[name][1]
    for call, start in zip((ONE, TWO, THREE), wanted):
        assert row[call].startswith(start), row
    assert row["right"] == str(wanted.count(RIGHT) + row[FOUR].startswith(RIGHT))


def test_each_student_gets_the_whole_messages(graded):
    said = (graded[1] / "needs.ipynb.txt").read_text(encoding="utf-8")
    assert ONE in said and "No module named 'no_such_package'" in said and "found: correction drawn from p" in said


def test_without_the_project_it_says_so_once():
    command = [sys.executable, "-S", str(FOLDER / "grade.py"), "05b", "."]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.stdout, said.returncode) == ("", 2) and "is missing" in said.stderr


def test_a_handout_of_other_numbers_is_graded_where_it_lies(tool, tmp_path):
    lab, answers = tmp_path / "lab", tmp_path / "answers"
    (tmp_path / "points.csv").write_text("exercise,points,minutes\n14.1,2.5,5\n14.3,1,10\n")
    made = tool("handout", "14", "--points", tmp_path / "points.csv", "--seed", "3", "--output", lab)
    assert made.stdout == f"{lab}: 2 exercises, 3.5 points, 15 minutes\n", made.stderr
    [handed] = lab.glob("*.ipynb")
    text = handed.read_text(encoding="utf-8")
    assert "Exercise 1: how many users? (2.5 points, 5 minutes)" in text
    assert "check.exercise_3(match_batch, seed=3)" in text and "exercise_2(" not in text and "def audit" not in text
    without_figures = {path.name for path in lab.rglob("*.py") if path.parent.name != "figures"}
    assert without_figures == {"__init__.py", "beyond_one_laptop.py"}  # no solutions
    assert {path.name for path in lab.glob("figures/*")} == {"__init__.py", "palette.py", "serving.py"}
    targets = re.findall(
        r"(?<!!)\[[^\]]+\]\((?!https?:|#)([^)#]+)", text + (lab / "README.md").read_text(encoding="utf-8")
    )
    assert all((lab / target).exists() for target in targets), targets
    answers.mkdir()
    (answers / "ada.py").write_text(SOLUTION.replace("int(bytes", "float(bytes").replace("// (K", "/ (K"))
    [row] = csv.DictReader(tool("grade", handed, answers).stdout.splitlines())
    assert (row["right"], row["points"]) == ("1", "1") and ", seed=3" in "".join(row)
    assert {"14.1", "14.3"} <= row.keys() and "14.2" not in row
    assert row["14.exercise_1(most_texts, seed=3)"].startswith("a whole number of texts, rounded down")


def test_the_autograder_has_the_marks_of_the_table(tool, graded, tmp_path):
    """For the example hand-ins, with what its setup.sh installs elsewhere: see the test below."""
    made = tool("handout", "14", "--autograder", tmp_path / "lab.zip")
    assert made.returncode == 0 and made.stdout.startswith(f"{tmp_path / 'lab.zip'}: 4 exercises, "), made.stderr
    root = tmp_path / "autograder"
    shutil.unpack_archive(tmp_path / "lab.zip", root / "source")
    [wheel] = (root / "source").glob("*.whl")
    assert {"speculative/models/__init__.py", "gpt2np/tiny/tiny-draft/config.json"} <= {*ZipFile(wheel).namelist()}
    rows = graded[0]
    for name in ("ada.py", "blank.ipynb", "broken.ipynb", "exits.ipynb", "slow.ipynb", "latin.py", "text.ipynb", "two"):
        found, row = submitted(root, graded[1].parent, name), rows[name]
        assert [test["score"] for test in found["tests"]] == [float(row[f"14.{i}"]) for i in (1, 2, 3, 4)], name
        for test, call in zip(found["tests"], (ONE, TWO, THREE, FOUR)):
            assert test["output"].split("\n")[0][:40] == row[call].removeprefix("'")[:40], (name, test, row[call])
            assert test["status"] == ("passed" if row[call].startswith(RIGHT) else "failed")
        assert found["execution_time"] > 0 and {test["number"] for test in found["tests"]} == {
            f"14.{i}" for i in range(1, 5)
        }


def submitted(root, told, name):
    """results.json for a hand-in of ANSWERS, or for its folder `two`."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    (root / "submission").mkdir()
    texts = {"solved.ipynb": notebook(), "v1.py": SOLUTION, "v2.ipynb": UNTOUCHED} if name == "two" else {
        name: ANSWERS[name][0]}  # fmt: skip
    for i, (file, text) in enumerate(texts.items()):
        path = root / "submission" / file
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (i, i))
    settings = os.environ | {"AUTOGRADER_ROOT": str(root), "PYTHON": sys.executable}
    settings |= {"SECONDS_FOR_A_CELL": SHORT} if name == "slow.ipynb" else {}
    subprocess.run(["bash", root / "source" / "run_autograder"], env=settings, check=True)
    return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))


def test_a_figure_goes_on_the_leaderboard(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    import autograde

    said = [
        (True, "right: 1.84 tokens per call, and the text is the target's own", 2),
        (False, "1.2 tokens per call", 1),
    ]
    monkeypatch.setattr(autograde.grade, "marked", lambda *_: (said, []))
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "x.py").write_text("")
    cells = [{"cell_type": "code", "source": f"check.exercise_{i}(f)"} for i in (1, 2)]
    (tmp_path / "12_x.ipynb").write_text(json.dumps({"cells": cells}))
    found = autograde.results_of(tmp_path, tmp_path)
    assert found["leaderboard"] == [{"name": "12.1, tokens per call", "value": 1.84}]
    assert [(test["score"], test["max_score"]) for test in found["tests"]] == [(2, 2), (0, 1)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["handout", "99", "--output", "lab"], "expected the number of a notebook, such as 05, or its path, got 99"),
        (["handout", "05b", "--points", "README.md", "--output", "lab"], "expected a table (CSV) with the columns"),
        (["handout", "05b", "--seed", "-1", "--output", "lab"], "--seed: expected 0 or more, got -1"),
        (["handout", "05b", "--output", ROOT / "docs"], "is not empty: name a new folder"),
        (["handout", "05b"], "expected --output FOLDER, --autograder FILE.zip, or both"),
        (["handout", "05b", "--autograder", "lab"], "expected the name of a new .zip, got lab"),
        (["handout", "5b.9", "--output", "lab"], "it has no 05b.9: name exercises it lists"),
        (["grade", "05", "."], "has no exercises: expected a notebook with exercises, such as 05b"),
        (["grade", "05b"], "the following arguments are required: folder"),
        (["grade", "05b", "nowhere"], "expected a folder with answers, got nowhere"),
        (["run", "--chek"], "unrecognized arguments: --chek"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(tool, arguments, sentence):
    said = tool(*arguments)
    assert said.returncode == 2 and sentence in said.stderr and "Traceback" not in said.stderr
