"""Grade a folder of answers to the exercises of a notebook: a table (CSV) with a line for each file.

    python notebooks/grade.py 05 answers > marks.csv
    python notebooks/grade.py 05 answers 600 > marks.csv       at most 600 seconds for each file, not 300

The files are students' notebooks, or .py files with the functions. Each runs in a process of its own, a notebook
without the cells that its answers do not need; then the checks of this folder run. This is no sandbox.
"""

import ast
import csv
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def needed(cells, wanted):
    """The cells that bind a wanted name, and those before them that bind a name which these use, and so on."""
    kept = []
    for cell in reversed(cells):
        nodes = list(ast.walk(ast.parse(cell)))
        used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        bound |= {(node.asname or node.name).split(".")[0] for node in nodes if isinstance(node, ast.alias)}
        if bound & wanted:
            kept.insert(0, cell)
            wanted = wanted | used - bound - {node.arg for node in nodes if isinstance(node, ast.arg)}
    return kept


def grade(path, module, *calls):
    """Print the first line of what each check says, or of the exception of the answer."""
    out, sys.stdout = sys.stdout, sys.stderr
    text, names, said = Path(path).read_text(encoding="utf-8-sig"), {}, {}
    try:
        cells = [text]
        if path.endswith(".ipynb"):
            code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
            code = ["".join(cell["source"]) for cell in code if "check" not in cell["metadata"].get("tags", ())]
            code = [re.sub(r"(?m)^\s*[%!].*", "", source) for source in code]  # commands of IPython
            cells = needed(code, {*re.findall(r"\w+", " ".join(calls))} - {"check"})
        for cell in cells:
            exec(cell, names)
    except BaseException as error:  # sys.exit() as well
        said = dict.fromkeys(calls, f"{type(error).__name__}: {error}")
    for call in calls:
        try:
            result = said.get(call) or eval(call, names | {"check": importlib.import_module(f"checks.{module}")})
        except BaseException as error:
            result = error if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        print(str(result).strip().split("\n")[0], file=out, flush=True)


def graded(path, module, calls, seconds):
    """The lines of grade(), in a process of its own."""
    command = [sys.executable, __file__, "--one", str(path.resolve()), module, *calls]
    settings = os.environ | {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    try:
        said = subprocess.run(command, capture_output=True, timeout=seconds, cwd=FOLDER, env=settings).stdout
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
    return [*said.decode("utf-8").splitlines(), *[f"no result after {seconds:g} seconds"] * len(calls)][: len(calls)]


def main(number, folder, seconds="300"):
    if not importlib.util.find_spec("speculative"):
        raise SystemExit("grade.py: the project is not installed: pip install -e . in its folder")
    [notebook] = FOLDER.glob(f"{number}_*.ipynb")
    calls = re.findall(r'"(check\.exercise_\d\(.+?\))"', notebook.read_text(encoding="utf-8"))
    files = sorted(path for path in Path(folder).iterdir() if path.suffix in (".py", ".ipynb"))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["file", "right", *(call.removeprefix("check.") for call in calls)])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, said in zip(
            files, pool.map(lambda path: graded(path, notebook.stem[3:], calls, float(seconds)), files)
        ):
            table.writerow([path.name, sum(line.startswith("right") for line in said), *said])
            sys.stdout.flush()


if __name__ == "__main__":
    grade(*sys.argv[2:]) if sys.argv[1] == "--one" else main(*sys.argv[1:])
