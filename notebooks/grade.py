"""Grade a folder of answers to the exercises of a notebook: a table (CSV) with a line for each student.

    python notebooks/grade.py 05b answers > marks.csv
    python notebooks/grade.py 05b answers 120 > marks.csv                   at most 120 seconds for a cell, not 60
    python notebooks/grade.py 05b answers --feedback told > marks.csv       and told/NAME.txt, with whole messages
    python notebooks/grade.py lab/05b_speculative_sampling.ipynb answers   exercises and checks from a different folder
    python notebooks/grade.py lab answers                                  all notebooks of a handout

A student hands in a notebook, a .py file with the functions, or a folder of these. Each file runs in its own
process as the student ran it, cell after cell, and continues after a cell that fails. The checks are those beside the
notebook, whatever the student's file contains. Commands to the shell and to pip do nothing. It is not a sandbox.
"""

import argparse
import ast
import csv
import importlib
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tokenize
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handout import notebook_of, number_of, points_of

# ------------------------------------------------------------------------------------------------ what is to be graded


def exercises_of(notebook):
    """(name of the module with the checks, dict "exercise_1" -> the call in the notebook's own cell)."""
    module, calls = notebook.stem.partition("_")[2], {}
    for cell in cells_of(notebook):
        for node in ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*", "", cell))):
            if isinstance(node, ast.ImportFrom) and node.module == "checks":
                module = next(alias.name for alias in node.names)
            if is_check(node):
                calls[node.func.attr] = ast.unparse(node)
    return module, calls


def is_check(node):
    """Whether this node of a syntax tree is check.exercise_n(...)."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "check"
        and node.func.attr.startswith("exercise_")
    )


def cells_of(path):
    """The code cells of a notebook, or the statements of a Python file; ValueError if it is neither."""
    try:
        if path.suffix.lower() == ".py":
            with tokenize.open(path) as file:
                return statements(file.read())
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, SyntaxError, KeyError, TypeError) as error:
        if isinstance(error, SyntaxError) and error.lineno:
            raise ValueError(f"SyntaxError: {error}") from error
        raise ValueError(f"unreadable: {type(error).__name__}: {error}") from error


def files_of(entry):
    """The answers of a student: a file, or those in a folder; a folder named like a file is reported."""
    if entry.suffix.lower() in (".py", ".ipynb") and not entry.name.startswith("."):
        return [entry]
    files = [entry, *entry.rglob("*")] if entry.is_dir() else []
    hidden = [path for path in files if path.name.startswith(".")]  # such as .ipynb_checkpoints
    kept = [path for path in files if path.suffix.lower() in (".py", ".ipynb") and path.is_file()]
    return sorted(path for path in kept if not {path, *path.parents} & {*hidden})


def answering(files, calls):
    """The file of a student that defines most of what these calls check; None if none defines any of it."""
    names = "|".join({node.id for call in calls.values() for node in ast.walk(ast.parse(call)) if is_name(node)})
    texts = [path.read_text("utf-8", "ignore") if path.is_file() else "" for path in files]
    defined = [len({*re.findall(rf"(?:def|class) ({names})\b", text)}) for text in texts]
    return files[defined.index(max(defined))] if any(defined) else None


def is_name(node):
    return isinstance(node, ast.Name) and node.id != "check"


def statements(source):
    """The parts of a Python file, so that one that fails does not take the others with it."""
    tree = ast.parse(source)
    starts = [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) for node in tree.body]
    lines, starts = io.StringIO(source).readlines(), sorted({*starts})
    return ["".join(lines[a - 1 : b and b - 1]) for a, b in zip(starts, [*starts[1:], None])]


# ------------------------------------------------------------------------------------------------ one file


def run(cells, module, calls, skipped, journal):
    """Run the cells; write to the journal what is begun, and what each check says."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    def write(**event):
        with open(journal, "a", encoding="ascii") as file:
            file.write(json.dumps(event) + "\n")

    sys.path.insert(0, os.getcwd())  # the folder of the notebook
    checks, said, broken = importlib.import_module(f"checks.{module}"), {}, {}
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.system, shell.getoutput = lambda *_: None, lambda *_, **__: []
    magics, line_magic = shell.magics_manager.magics["cell"], shell.run_line_magic
    magics |= {name: lambda *_: None for name in magics.keys() & {"!", "bash", "script", "sh", "sx", "system"}}

    def forgiving(*given, **named):
        try:
            return line_magic(*given, **named)
        except Exception:
            return None

    class Checks:
        """Takes the place of `check`: the check beside the notebook, with the notebook's own keywords."""

        def __getattr__(self, name):
            keywords = {
                each.arg: ast.literal_eval(each.value) for each in ast.parse(calls[name], mode="eval").body.keywords
            }

            def graded(*answers, **_):
                write(at=name)
                try:
                    result = getattr(checks, name)(*answers, **keywords)
                    said[name] = True, str(result)
                    return result
                except BaseException as error:  # sys.exit() as well
                    said[name] = False, told(error, broken)
                    raise

            return graded if name not in skipped else lambda *_, **__: None

        def missing(self, error):
            broken[error.name] = told(error, {})

    shell.run_line_magic = forgiving
    shell.ast_transformers.append(Graded())
    shell.user_ns["__graded__"] = Checks()
    for i, cell in enumerate(cells):
        error = skipped.get(f"cell {i}")
        if not error:
            write(at=f"cell {i}")
            result = shell.run_cell(cell, silent=True)
            error = result.error_before_exec or result.error_in_exec
        if error:
            names = re.findall(r"(?m)^(?:class |def |async def )?(\w+) *(?=[(:=])", cell)
            broken |= dict.fromkeys(names, error if isinstance(error, str) else told(error, {}))
    for name in calls.keys() - said.keys() - skipped.keys():  # the student's file has no such call, or it had no answer
        error = shell.run_cell(calls[name], silent=True).error_in_exec
        if name not in said:
            said[name] = False, told(error, broken)
    write(said=said)


class Graded(ast.NodeTransformer):
    """A cell with different checks, which continues if a package to be imported is missing."""

    def visit_Module(self, tree):
        for i, node in enumerate(tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
                [tree.body[i]] = ast.parse(
                    "try: pass\nexcept ImportError as _missing: __graded__.missing(_missing)"
                ).body
                tree.body[i].body = [node]
        return ast.fix_missing_locations(self.generic_visit(tree))

    def visit_Call(self, node):
        if is_check(node):
            node.func.value.id = "__graded__"
        return self.generic_visit(node)


def told(error, broken):
    """The text of a check in place of "right"; `broken` says what became of names that have no value."""
    if isinstance(error, NameError) and error.name in broken:
        return broken[error.name]
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    if isinstance(error, AssertionError):
        return f"raised: {text}" if text.startswith("right") else text
    if isinstance(error, SyntaxError) and error.text:
        return f"{type(error).__name__}: {error.msg}\nline {error.lineno} of the cell: {error.text.strip()}"
    at = [
        f"line {line}: {source}"
        for path, line, _, source in traceback.extract_tb(error.__traceback__)
        if "ipython-input" in path or "ipykernel" in path
    ]
    return "\n".join([f"{type(error).__name__}: {text}", *at[-1:]])


def graded(path, folder, module, calls, seconds):
    """dict exercise -> (whether it is right, what its check says) of one file."""
    try:
        cells = cells_of(path)
    except ValueError as error:
        return dict.fromkeys(calls, (False, str(error)))
    skipped = {}  # what took too long, or ended the process: the others are run again without it
    with tempfile.TemporaryDirectory() as home:
        journal = Path(home, "journal")
        while True:
            journal.write_text("")
            ended = watched([cells, module, calls, skipped, str(journal)], folder, home, seconds)
            events = [json.loads(line) for line in journal.read_text(encoding="ascii").splitlines()]
            if events and "said" in events[-1]:
                return {name: (False, text) for name, text in skipped.items()} | events[-1]["said"]
            at = events[-1]["at"] if events else None
            if at is None or at in skipped:
                return dict.fromkeys(calls, (False, f"died: {ended}"))
            skipped[at] = ended + (f" in {at}, counted from 0" if at.startswith("cell") else "")


def watched(request, folder, home, seconds):
    """Run one file in its own process, until it ends or stops making progress; returns how it ended."""
    settings = os.environ | {"MPLBACKEND": "Agg", "PAGER": "cat", "TERM": "dumb", "IPYTHONDIR": home}
    journal, quiet = Path(request[-1]), {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, __file__, "--one"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, cwd=folder, env=settings, start_new_session=True, **quiet
    )
    with process:
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        size, end = 0, time.monotonic() + seconds
        while True:
            try:
                process.wait(0.1)
                return f"died: the process ended with {process.returncode}"
            except subprocess.TimeoutExpired:
                size, before = journal.stat().st_size, size
                end = time.monotonic() + seconds if size != before else end
                if time.monotonic() > end:
                    (os.killpg if hasattr(os, "killpg") else os.kill)(process.pid, signal.SIGKILL)
                    return f"slow: no result after {seconds:g} seconds"


# ------------------------------------------------------------------------------------------------ the table


def cell(value):
    """A value that is safe in a spreadsheet: no formula and no lone surrogates."""
    text = str(value).encode("utf-8", "replace").decode()
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def short(text):
    """The first line of a message, plus the next one if the first ends with a colon."""
    first, *rest = text.strip().split("\n")
    return " ".join([first, *rest[: first.endswith(":")]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", help="its number, such as 05b, its path, or the folder of a handout")
    parser.add_argument("folder", type=Path, help="the folder with the answers")
    parser.add_argument("seconds", type=float, nargs="?", default=60, help="for one cell or check (60)")
    parser.add_argument("--points", type=Path, help="the points of each exercise, as in points.csv")
    parser.add_argument("--feedback", type=Path, help="a folder for the feedback, one text per student")
    request = parser.parse_args()
    for package in ("speculative", "IPython"):
        if not importlib.util.find_spec(package):
            parser.error(f"{package} is missing: pip install -e '.[notebooks]' in the project's folder")
    from tqdm import tqdm

    try:
        lab = Path(request.notebook)
        notebooks = sorted(lab.glob("[0-9]*.ipynb")) if lab.is_dir() else [notebook_of(request.notebook)]
        if not request.folder.is_dir():
            raise ValueError(f"expected a folder with answers, got {request.folder}")
        parts = [part for part in (part_of(notebook.resolve(), request.points) for notebook in notebooks) if part[2]]
    except ValueError as error:
        parser.error(str(error))
    if not parts:
        parser.error(f"{lab.name} has no exercises: expected a notebook with exercises, such as 05b")
    students = sorted((entry, files) for entry in request.folder.iterdir() if (files := files_of(entry)))
    several = len(parts) > 1
    titles = [
        (f"{number_of(notebook)}." if several else "") + call.removeprefix("check.")
        for notebook, _, calls, _ in parts
        for call in calls.values()
    ]

    def marked(student):
        """For each exercise: (whether it is right, what its check says, its points)."""
        said = []
        for notebook, module, calls, points in parts:
            files = student[1]
            path = answering(files, calls) if several or len(files) > 1 else files[0]
            if path:
                results = graded(path, notebook.parent, module, calls, request.seconds)
            else:
                results = dict.fromkeys(calls, (False, f"not handed in: no file has an answer to {notebook.name}"))
            said += [(*results[name], points.get(name, [0])[0] if points is not None else 1) for name in calls]
        return said

    sys.stdout.reconfigure(encoding="utf-8")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["file", "right", "points", *titles])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (entry, _), said in zip(students, tqdm(pool.map(marked, students), total=len(students), disable=None)):
            earned = sum(points for right, _, points in said if right)
            row = [entry.name, sum(right for right, *_ in said), f"{earned:g}", *(short(text) for _, text, _ in said)]
            table.writerow([*map(cell, row)])
            sys.stdout.flush()
            if request.feedback:
                request.feedback.mkdir(parents=True, exist_ok=True)
                text = "\n\n".join(
                    f"{title}{'' if points else ', no points'}\n{told_of}"
                    for title, (_, told_of, points) in zip(titles, said)
                )
                (request.feedback / f"{entry.name}.txt").write_text(text + "\n", encoding="utf-8", errors="replace")


def part_of(notebook, table):
    """(notebook, its module of checks, their calls, their points or None) of what is to be graded."""
    beside = notebook.parent / "points.csv"
    points = points_of(table or beside, number_of(notebook)) if table or beside.exists() else None
    return notebook, *exercises_of(notebook), points


if __name__ == "__main__":
    run(*json.load(sys.stdin)) if sys.argv[1:] == ["--one"] else main()
