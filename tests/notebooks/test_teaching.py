"""What a lecturer is given agrees with the notebooks: the table of exercises, and the lab."""

import csv
import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT

import speculative

FOLDER = ROOT / "notebooks"
TEACHING = FOLDER / "teaching"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
LAB = "python notebooks/handout.py 05b.1 05b.2 05b.3 06.1 06.2 --output lab"


@pytest.fixture
def script(monkeypatch):
    """script(name): the module of a script, which may import those beside it."""
    monkeypatch.syspath_prepend(TEACHING)
    return importlib.import_module


def rows():
    with open(FOLDER / "points.csv", encoding="utf-8", newline="") as file:
        return {row["exercise"]: row for row in csv.DictReader(file)}


def test_the_table_has_every_exercise_and_the_page_is_made_from_it(script):
    checked = [
        f"{path.stem.partition('_')[0]}.{i}"
        for path in sorted(FOLDER.glob("[0-9]*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "check" in cell["metadata"].get("tags", ())
        for i in re.findall(r"check\.exercise_(\d+)\(", "".join(cell["source"]))
    ]
    assert sorted(checked) == sorted(rows())
    assert {row["difficulty"] for row in rows().values()} == {"easy", "medium", "hard"}
    page = script("exercises").page(FOLDER / "points.csv", FOLDER.glob("[0-9]*.ipynb"))
    assert (TEACHING / "exercises.md").read_text(encoding="utf-8") == page, "run notebooks/teaching/exercises.py"


def test_the_timetable_of_the_lab_has_the_five_exercises_and_their_minutes():
    lab = README.partition("## A lab of two hours")[2].partition("\n## ")[0]
    assert LAB in lab
    numbers = LAB.split()[2:-2]
    for notebook in ("05b", "06"):
        of_it = [name for name in numbers if name.startswith(notebook)]
        [(start, end)] = re.findall(rf"(?m)^\| (\d+)–(\d+) \| {notebook}, exercises 1 (?:to|and) {len(of_it)}", lab)
        assert int(end) - int(start) >= sum(int(rows()[name]["minutes"]) for name in of_it)


@pytest.mark.notebooks
def test_the_lab_is_handed_out_handed_in_and_graded(tool, tmp_path):
    pytest.importorskip("IPython", reason="pip install -e '.[notebooks]'")
    lab, answers = tmp_path / "lab", tmp_path / "answers"
    made = tool("handout", *LAB.split()[2:-1], lab)
    assert made.stdout == f"{lab}: 5 exercises, 7 points, 65 minutes\n", made.stderr
    beside = {path.relative_to(lab).as_posix() for path in lab.rglob("*")}
    assert {"figures/exactness.py", "figures.mplstyle", "checks/speculative_sampling.txt"} <= beside
    first, second = (next(FOLDER.glob(f"solutions/{number}_*")).read_text(encoding="utf-8") for number in ("05b", "06"))
    (answers / "ada").mkdir(parents=True)  # a folder with two files
    (answers / "ada" / "a.py").write_text(second, encoding="utf-8")
    (answers / "ada" / "b.py").write_text(first, encoding="utf-8")
    wrong = (
        first.replace("return missing / missing.sum()", "return p"),
        second.replace("range(len(v))", "range(1, len(v))"),
    )
    (answers / "ben.py").write_text("".join(wrong), encoding="utf-8")
    (answers / "cem.py").write_text(first.partition("def my_residual")[0], encoding="utf-8")
    (answers / ".ipynb_checkpoints").mkdir()
    (answers / ".ipynb_checkpoints" / "cem.py").write_text(first, encoding="utf-8")
    marks = [*csv.DictReader(tool("grade", lab, answers, "--feedback", tmp_path / "told").stdout.splitlines())]
    assert [(row["file"], row["points"]) for row in marks] == [("ada", "7"), ("ben.py", "5"), ("cem.py", "1")]
    assert marks[1]["05b.exercise_2(my_residual)"].startswith("that is p itself")
    assert marks[2]["06.exercise_1(my_expected_tokens)"].startswith("not handed in: no file has an answer to 06_")
    told = (tmp_path / "told" / "ben.py.txt").read_text(encoding="utf-8")
    assert "06.exercise_2(my_best_K)\na draft with alpha < c does not pay" in told
    assert "06.exercise_3" not in told and "06.3" not in marks[0]


@pytest.mark.parametrize("seed", range(40))
def test_the_answers_of_an_exam_are_those_of_arithmetic(script, seed):
    exam = script("exam")
    numbers = exam.numbers_of(seed)
    p, q, alpha, K, c, v = (numbers[name] for name in ("p", "q", "alpha", "K", "c", "v"))
    too_often, best = int((q - p).argmax()), int((p - q).argmax())
    missing, per_call = np.maximum(0, p - q), (1 - alpha ** (K + 1)) / (1 - alpha)
    accepted = np.minimum(p, q)
    tested = [n + (n < 4) for _, n in numbers["log"]]
    letter, *found = exam.questions(numbers)[-1][1]
    by_hand = [
        [p[too_often]],
        [accepted.sum()],
        missing / missing.sum(),
        [(q - p)[too_often] * missing[best] / missing.sum()],
        [q[best] * p[too_often]],
        [accepted.sum() * (1 - accepted.sum())],
        [per_call],
        [per_call / (K * c + v)],
        [sum(n for _, n in numbers["log"]) / sum(tested)],
    ]
    for (question, answer), expected in zip(exam.questions(numbers), by_hand):
        np.testing.assert_allclose(answer, expected, rtol=1e-12, atol=1e-12, err_msg=question)
    for name, change in zip("abcd", numbers["changes"]):
        result = exam.one_token(p, q, change)
        expected = found if name == letter else p
        np.testing.assert_allclose([result.get(x, 0) for x in range(3)], expected, atol=1e-12)
    assert abs(np.array(found) - p).max() > 0.01


def test_two_seeds_are_two_exams_and_one_seed_is_one(script, tmp_path):
    exam = script("exam")
    assert exam.written(1) == exam.written(1) != exam.written(2)
    command = [sys.executable, TEACHING / "exam.py", "--seed", "1", "--output", tmp_path]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    written = (tmp_path / "exam_1.md").read_text(encoding="utf-8")
    assert written.startswith(exam.written(1)[0]) and "Answers" not in written
    assert (tmp_path / "answers_1.md").read_text(encoding="utf-8").startswith(exam.written(1)[1])
    subprocess.run(command, check=True, capture_output=True)  # again
    (tmp_path / "exam_1.md").write_text(edited := written.replace("king", "queen"), encoding="utf-8")
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 2 and "exam_1.md was edited, or is a different file" in said.stderr
    assert (tmp_path / "exam_1.md").read_text(encoding="utf-8") == edited


SLIDES = (TEACHING / "slides.md").read_text(encoding="utf-8")
MEASURED = "\n".join(
    path.read_text(encoding="utf-8")
    for path in [ROOT / "docs" / "measurements.md", *(ROOT / "docs" / "raw").glob("*.md")]
)


def test_the_numbers_on_the_slides_are_measured():
    found = re.findall(r"\d\.\d\d \(\d\.\d\d to \d\.\d\d\)", SLIDES)
    assert len(found) > 15
    [token, again, ratio] = re.findall(r"\d+\.\d ms|(?<=costs )\d\.\d\d(?= times)", SLIDES)
    assert token == again
    for number in [*found, token, f"ms; {ratio},"]:  # the ratio of five tokens
        assert number in MEASURED, f"{number}: measured again? change the slide"
    for row in re.findall(r"(?m)^\| .*", SLIDES):  # two numbers of one rule, in one line of the page
        numbers = re.findall(r"\d\.\d\d \(\d\.\d\d to \d\.\d\d\)", row)
        assert any(all(number in line for number in numbers) for line in MEASURED.splitlines()), row


def test_the_code_and_the_arithmetic_on_the_slides_are_the_projects():
    first, second, third = re.findall(r"(?ms)^```python\n(.*?)^```", SLIDES)
    library = (ROOT / "speculative" / "reference.py").read_text(encoding="utf-8")
    assert re.sub(r'\n    """.*?"""', "", library, flags=re.DOTALL).count(first) == 1
    page = json.loads(next(FOLDER.glob("05_*.ipynb")).read_text(encoding="utf-8"))
    assert any(second in "".join(cell["source"]) for cell in page["cells"])
    exec(third, {"my_verifier": speculative.rejection})
    p, q = (
        [float(x) for x in re.search(rf"{name} \|([\d. |]+)\|", SLIDES)[1].split("|")]
        for name in ("target, p", "draft model, q")
    )
    p, q = np.array(p), np.array(q)
    np.testing.assert_allclose(np.minimum(1, p / q), [1, 1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(np.maximum(0, p - q) / np.maximum(0, p - q).sum(), [3 / 4, 1 / 4, 0, 0], atol=1e-15)
    page = json.loads(next(FOLDER.glob("14_*.ipynb")).read_text(encoding="utf-8"))
    texts = ["".join(output.get("text", "")) for cell in page["cells"] for output in cell.get("outputs", ())]
    (row,) = re.findall(r"context 100, alpha = 0.7: .*?\nH100 SXM +([^\n]+)\n", "\n".join(texts), re.DOTALL)
    best = re.findall(r"\((\d)\)", row)  # K for 1, 16, 64, 128, 256, 512 texts
    assert best == ["3", "3", "3", "1", "1", "0"]  # docs/serving.md says so as well


def test_each_slide_has_notes_and_the_page_needs_nothing_else(script):
    slides = SLIDES.split("\n---\n")
    assert 18 <= len(slides) <= 22 and all(slide.count("\n> ") == 1 for slide in slides)
    page = script("slides").page(SLIDES, TEACHING)
    assert page.count("<section") == page.count("<aside>") == len(slides)
    assert not re.search(r'(src|href)="(?!data:|https://arxiv)', page) and "```" not in page and "**" not in page
    assert "<th></th><th>king</th>" in page and "\n\ncheck_verifier(my_verifier)" in page


@pytest.mark.browser
def test_each_slide_fits_its_page_and_its_notes_fit_below(script, tmp_path):
    from browser import chromium

    (tmp_path / "slides.html").write_text(script("slides").page(SLIDES, TEACHING), encoding="utf-8")
    with chromium() as browser:
        view = browser.new_page(viewport={"width": 1280, "height": 720})
        view.goto((tmp_path / "slides.html").as_uri())
        room = """[...document.querySelectorAll("section")].map(slide => slide.getBoundingClientRect().bottom
            - Math.max(...[...slide.children].map(child => child.getBoundingClientRect().bottom)))"""
        assert min(view.evaluate(room)) > 30
        heights = view.evaluate('[...document.querySelectorAll("img")].map(img => img.getBoundingClientRect().height)')
        assert min(heights) > 300
        wide = '[...document.querySelectorAll("section, pre")].map(each => each.scrollWidth - each.clientWidth)'
        assert max(view.evaluate(wide)) <= 0
        for notes in 1, 2:
            pdf = view.pdf(prefer_css_page_size=True, print_background=True)
            assert len(re.findall(rb"/Type /Page\b", pdf)) == notes * len(SLIDES.split("\n---\n"))
            view.keyboard.press("n")
        for key in "ArrowRight", "ArrowRight", "n":
            view.keyboard.press(key)
        assert abs(view.locator("section").nth(2).bounding_box()["y"]) < 1
        shown = view.locator("aside").nth(2).bounding_box()
        assert shown["height"] > 50 and shown["y"] + shown["height"] <= 721
