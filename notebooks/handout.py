"""Make a handout for a class: some notebooks without solutions, their checks, and what they need besides the library.

    python notebooks/handout.py 04 05b --output lab
    python notebooks/handout.py 05b.1 05b.2 06.1 --output lab                points for these exercises only
    python notebooks/handout.py 04 05b --points mine.csv --seed 3 --output lab

Each exercise states its points and minutes. They come from a table with the columns exercise (such as 06.1), points and
minutes, by default points.csv in this folder. With --seed the checks use different numbers. The handout runs wherever
the library is installed; `python notebooks/grade.py lab answers` grades what comes back.
"""

import argparse
import csv
import json
import re
import shutil
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TITLE = re.compile(r"^(#+ |\*\*)(Exercise (\d+).*?)(\*\*|$)", re.MULTILINE)
OUTSIDE = re.compile(r'(?<=")\.\./(?!models)([\w./]+)(?=")')  # a file of the project outside of this folder


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


def handed_out(notebook, points, seed):
    """The notebook (a dict) with points in its exercises, checks of this seed, and the files of `needed` beside it."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = TITLE.sub(lambda found: with_points(found, points.get(f"exercise_{found[3]}")), source)
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
    parser.add_argument("--output", type=Path, required=True, help="the folder to make")
    request = parser.parse_args()
    try:
        if request.output.exists() and (not request.output.is_dir() or any(request.output.iterdir())):
            raise ValueError(f"--output {request.output} exists and is not empty: name a new folder")
        paths, points = chosen(request.notebooks), []
        for path, named in paths.items():
            table = request.points or path.parent / "points.csv"
            of_this = points_of(table, number_of(path))
            if missing := named - of_this.keys():
                raise ValueError(f"{table}: it has no {number_of(path)}.{min(missing)[9:]}: name exercises it lists")
            points.append({name: numbers for name, numbers in of_this.items() if not named or name in named})
    except ValueError as error:
        parser.error(str(error))
    rows = []
    for path, of_this in zip(paths, points):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for file, name in needed(notebook, path.parent):
            (request.output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, request.output / name)
        text = json.dumps(handed_out(notebook, of_this, request.seed), indent=1, ensure_ascii=False)
        (request.output / path.name).write_text(text + "\n", encoding="utf-8")
        rows += [(f"{number_of(path)}.{name[9:]}", *map("{:g}".format, numbers)) for name, numbers in of_this.items()]
    with open(request.output / "points.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("exercise", "points", "minutes"), *rows])
    total = [sum(float(row[i]) for row in rows) for i in (1, 2)]
    print(f"{request.output}: {len(rows)} exercises, {total[0]:g} points, {total[1]:g} minutes")


if __name__ == "__main__":
    main()
