"""Make a handout for a class: some notebooks without solutions, their checks, and what they need besides the library.

    python notebooks/handout.py 04 05b --output lab
    python notebooks/handout.py 05b.1 05b.2 06.1 --output lab                these exercises only
    python notebooks/handout.py 04 05b --points mine.csv --seed 3 --output lab
    python notebooks/handout.py 04 05b --wheel --output lab                  with the library, without solutions
    python notebooks/handout.py 05b.1 05b.2 07.1 --autograder lab.zip        for Gradescope or GitHub Classroom

Each exercise states its points and minutes. They come from a table with the columns exercise (such as 06.1), points and
minutes, by default points.csv beside the notebook; without a table each exercise has one point. With --seed the checks
use different numbers. README.md tells students how to install, write and hand in. The handout runs wherever the library
is installed; --wheel puts it into the folder. `python notebooks/grade.py lab answers` grades what comes back. The zip
of --autograder is uploaded as it is: it installs itself, and grades a submission with grade.py's own code.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TITLE = re.compile(r"^(#+ |\*\*)(Exercise (\d+).*?)(\*\*|$)", re.MULTILINE)
OUTSIDE = re.compile(r'(?<=")\.\./(?!models)([\w./]+)(?=")')  # a file of the project outside of this folder
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)")  # to a file
STUDENTS = """# {title}

1. Install, with Python 3.10 or later: {install}.
2. Write: `jupyter lab` opens the notebooks. Replace each `raise NotImplementedError` by your answer and run the cell
   after it, which says "right: ..." or what is wrong.
3. Hand in: save the notebook under your name, such as `ada_lovelace.ipynb`; several notebooks in a folder of that name.
"""


SETUP = """#!/usr/bin/env bash
# installs the library from the wheel, and the notebooks' packages from the package index
set -e
cd "${{AUTOGRADER_ROOT:-/autograder}}/source"
"${{PYTHON:-python3}}" -m pip install --quiet "./{wheel}[notebooks]"
"""
RUN = """#!/usr/bin/env bash
cd "${AUTOGRADER_ROOT:-/autograder}/source" && "${PYTHON:-python3}" autograde.py
"""
CLASSROOM = """# for GitHub Classroom: unzip the autograder into .autograder/ of the repository, and move this file to
# .github/workflows/classroom.yml
name: grade
on: push
jobs:
  grade:
    runs-on: ubuntu-latest
    env: {AUTOGRADER_ROOT: /tmp/autograder, PYTHON: python}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: |
          mkdir -p $AUTOGRADER_ROOT && cp -r .autograder $AUTOGRADER_ROOT/source && cp -r . $AUTOGRADER_ROOT/submission
          rm -rf $AUTOGRADER_ROOT/submission/.autograder
          bash $AUTOGRADER_ROOT/source/setup.sh && bash $AUTOGRADER_ROOT/source/run_autograder
          cat $AUTOGRADER_ROOT/results/results.json
          python -c "import json; found = json.load(open('$AUTOGRADER_ROOT/results/results.json'));
          assert all(test['status'] == 'passed' for test in found['tests'])"
"""


def notebook_of(name):
    """The path of a notebook, from its number or its path; ValueError if there is no such notebook."""
    number = re.fullmatch(r"(\d+)([a-z]?)", name)
    numbered = FOLDER.glob(f"{number[1].zfill(2)}{number[2]}_*.ipynb") if number else ()
    path = next(iter(numbered), Path(name)).resolve()
    if not path.is_file() or path.suffix != ".ipynb":
        raise ValueError(f"expected the number of a notebook, such as 05, or its path, got {name}")
    return path


def chosen(names):
    """dict path of a notebook -> the exercises that were chosen, such as {"exercise_1"}; an empty set means all."""
    found = {}
    for name in names:
        of, _, i = name.partition(".") if re.fullmatch(r"\d+[a-z]?\.\d+", name) else (name, "", "")
        found.setdefault(notebook_of(of), set()).update({f"exercise_{i}"} if i else ())
    return found


def number_of(notebook):
    """The number of a notebook as in its name, such as 06 or 05b."""
    return notebook.stem.partition("_")[0]


def points_of(path, number):
    """dict "exercise_1" -> (points, minutes) of a notebook, from a table; ValueError if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [
                (row["exercise"].partition("."), float(row["points"]), float(row["minutes"]))
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError, TypeError) as error:
        expected = "a table (CSV) with the columns exercise (such as 06.1), points and minutes"
        raise ValueError(f"{path}: expected {expected}, got {type(error).__name__}: {error}") from error
    return {f"exercise_{i}": numbers for (of, _, i), *numbers in rows if of.lstrip("0") == number.lstrip("0")}


def only(notebook, points):
    """The cells of a notebook without the exercises that have no points: from the title of one to its check."""
    kept, dropped = [], None
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (title := TITLE.search(source)):
            dropped = None if f"exercise_{title[3]}" in points else f"check.exercise_{title[3]}("
        kept += [cell] if dropped is None else []
        if dropped and dropped in source and cell["cell_type"] == "code":
            dropped = None
    return kept


def handed_out(notebook, points, seed, names):
    """The notebook (a dict) with points in its exercises, checks of this seed, and links to these files only."""
    notebook["cells"] = only(notebook, points) if points else notebook["cells"]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = TITLE.sub(lambda found: with_points(found, points.get(f"exercise_{found[3]}")), source)
            source = LINK.sub(lambda found: found[0] if found[2] in names else found[1], source)
        elif seed and "check" in cell["metadata"].get("tags", ()):
            source = re.sub(r"(check\.exercise_\d+\(.+)\)", rf"\1, seed={seed})", source)
        cell["source"] = OUTSIDE.sub(r"files/\1", source).splitlines(keepends=True)
    return notebook


def with_points(found, numbers):
    if numbers is None:
        return found[0]
    points, minutes = numbers
    return f"{found[1]}{found[2]} ({points:g} point{'s' * (points != 1)}, {minutes:g} minutes){found[4]}"


def code_of(notebook):
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")


def outside(code, folder):
    """(file, its path in the project) of the files outside of the folder that the code names in quotes."""
    for name in OUTSIDE.findall(code):
        whole = folder.parent / name  # a file, a folder, or what the names of several files begin with
        files = whole.rglob("*") if whole.is_dir() else whole.parent.glob(f"{whole.name}*")
        yield from ((file, file.relative_to(folder.parent)) for file in files if file.is_file())


def figures(code, folder):
    """The names of the files in figures/ that the code needs: modules, and what these import and read."""
    waiting, found = re.findall(r"(?m)^ *(?:from|import) figures[. ](?:import )?(.+)", code), set()
    while waiting:
        for word in re.findall(r"\w+", waiting.pop()):
            if (folder / f"figures/{word}.py").is_file() and f"{word}.py" not in found:
                source = (folder / f"figures/{word}.py").read_text(encoding="utf-8")
                found |= {f"{word}.py", *re.findall(r'"([\w.]+\.json)"', source)}
                waiting += re.findall(r"(?m)^ *(?:from|import) (?:figures)?[. ]+(?:import )?(.+)", source)
    return sorted(found)


def needed(notebook, folder):
    """(file, its path in the handout) of the checks, the figures, and the files that the code names in quotes."""
    code = code_of(notebook)
    checks = [f"checks/{name}" for name in re.findall("from checks import (\\w+)", code)]
    names = ["checks/__init__.py", *(f"{check}.py" for check in checks)]
    names += [f"{check}.txt" for check in checks if (folder / f"{check}.txt").is_file()]
    if used := figures(code, folder):
        names += ["figures/__init__.py", *(f"figures/{name}" for name in used), "figures.mplstyle"]
    names += [name for name in re.findall(r'"([\w./-]+)"', code) if (folder / name).is_file()]
    yield from ((folder / name, name) for name in dict.fromkeys(names))
    yield from ((file, Path("files", name)) for file, name in outside(code, folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", help="their numbers, such as 04, or paths, or exercises, such as 05b.1")
    parser.add_argument("--points", type=Path, help="a table of points and minutes (points.csv)")
    parser.add_argument("--seed", type=int, default=0, help="different numbers in the checks")
    parser.add_argument("--output", type=Path, help="the folder to make")
    parser.add_argument("--autograder", type=Path, help="the zip to make, for Gradescope or GitHub Classroom")
    parser.add_argument("--wheel", action="store_true", help="with the library as a wheel, which pip installs")
    request = parser.parse_args()
    try:
        if request.seed < 0:
            raise ValueError(f"--seed: expected 0 or more, got {request.seed}")
        if not request.output and not request.autograder:
            raise ValueError("expected --output FOLDER, --autograder FILE.zip, or both")
        if request.autograder:
            return print(autograder(request))
        if request.output.exists() and (not request.output.is_dir() or any(request.output.iterdir())):
            raise ValueError(f"--output {request.output} exists and is not empty: name a new folder")
        paths, points = chosen(request.notebooks), []
        for path, named in paths.items():
            table = request.points or path.parent / "points.csv"
            of_this = points_of(table, number_of(path)) if request.points or table.exists() or named else {}
            if missing := named - of_this.keys():
                raise ValueError(f"{table}: it has no {number_of(path)}.{min(missing)[9:]}: name exercises it lists")
            points.append({name: numbers for name, numbers in of_this.items() if not named or name in named})
        output = request.output.resolve()
        made = output.with_name(f".{output.name}.unfinished")
        shutil.rmtree(made, ignore_errors=True)  # of a run that was interrupted
        made.mkdir(parents=True)
        rows = [row for path, of_this in zip(paths, points) for row in put(path, of_this, request.seed, made, paths)]
        if rows:
            with open(made / "points.csv", "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("exercise", "points", "minutes"), *rows])
        name = wheel(made) if request.wheel else ""
        install = f'`python -m pip install "./{name}[notebooks]"` in this folder' if name else "as your teacher says"
        title = ", ".join(path.stem for path in paths)
        (made / "README.md").write_text(STUDENTS.format(title=title, install=install), encoding="utf-8")
        if output.exists():
            output.rmdir()  # it is empty
        made.rename(output)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    total = [sum(float(row[i]) for row in rows) for i in (1, 2)]
    print(f"{request.output}: {len(rows)} exercises, {total[0]:g} points, {total[1]:g} minutes")


def autograder(request):
    """Write the zip; returns a line about it."""
    if request.autograder.suffix != ".zip" or request.autograder.exists():
        raise ValueError(f"--autograder: expected the name of a new .zip, got {request.autograder}")
    with tempfile.TemporaryDirectory() as folder:
        source, options = Path(folder, "source"), ["--seed", str(request.seed), "--output", str(Path(folder, "lab"))]
        options += ["--points", str(request.points)] if request.points else []
        made = subprocess.run(
            [sys.executable, __file__, *request.notebooks, *options], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise ValueError(made.stderr.strip().rpartition("error: ")[2])
        source.mkdir()
        shutil.move(Path(folder, "lab"), source / "lab")
        for name in ("autograde.py", "grade.py", "handout.py"):
            shutil.copy(FOLDER / name, source)
        (source / "setup.sh").write_text(SETUP.format(wheel=wheel(source)), encoding="utf-8")
        (source / "run_autograder").write_text(RUN, encoding="utf-8")
        (source / "classroom.yml").write_text(CLASSROOM, encoding="utf-8")
        for name in ("setup.sh", "run_autograder"):
            (source / name).chmod(0o755)
        shutil.make_archive(str(request.autograder.with_suffix("")), "zip", source)
        if request.output:
            shutil.copytree(source / "lab", request.output)
    return made.stdout.strip().replace(str(Path(folder, "lab")), str(request.autograder))


def put(path, points, seed, output, paths):
    """Write a notebook, and the files that it needs, to the folder; the rows of its exercises in points.csv."""
    notebook, names = json.loads(path.read_text(encoding="utf-8")), {other.name for other in paths}
    for file, name in needed(notebook, path.parent):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, output / name)
        names.add(str(name))
    text = json.dumps(handed_out(notebook, points, seed, names), indent=1, ensure_ascii=False)
    (output / path.name).write_text(text + "\n", encoding="utf-8")
    return [(f"{number_of(path)}.{name[9:]}", *map("{:g}".format, numbers)) for name, numbers in points.items()]


def wheel(output):
    """The name of the library's wheel, which is built in this folder; ValueError if that fails."""
    with tempfile.TemporaryDirectory() as copy:  # a build leaves files in its source
        project = Path(copy, "project")
        project.mkdir()
        for name in ("gpt2np", "speculative"):
            shutil.copytree(FOLDER.parent / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("main.py", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
            shutil.copy(FOLDER.parent / name, project)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", output.resolve(), "."]
        built = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if built.returncode:
        raise ValueError(f"--wheel: pip cannot build it: {(built.stderr.strip().splitlines() or ['no message'])[-1]}")
    return next(output.glob("*.whl")).name


if __name__ == "__main__":
    main()
