"""Run notebooks: to keep their outputs and figures, or to check them and their exercises.

    python notebooks/run.py                         run all of them, in place
    python notebooks/run.py notebooks/05*.ipynb     run these; they may be in a different folder, with their checks
    python notebooks/run.py --check [...]           write nothing; say whether every cell runs, and every check of an
                                                    exercise fails as it is, and passes with the file in solutions/

A cell with the tag "check" checks an exercise; it also has the tag "raises-exception", so that "Run all" continues.
Keeping the outputs also writes the exercises (tag "exercise"), which are their functions in solutions/ without the
bodies.
"""

import argparse
import ast
import importlib.util
import re
import sys
from pathlib import Path

import nbformat
from blank import blank, functions
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from gpt2np.files.writing import replacing

FOLDER = Path(__file__).parent
MORE = "# add what you need"  # the lines after it, in a solution, are the solution's
BUSY = "(A busy machine"  # what a cell prints if its times make no sense


def run(notebook, folder):
    """Execute the notebook and store its outputs in it; CellExecutionError if a cell fails that is not a check."""
    options = {"timeout": 600, "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **options).execute()


def missing(path):
    """The modules that the notebook's cells import and that are not installed."""
    code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    names = re.findall(r"^ *(?:import|from) (\w+)", "\n".join(code), re.MULTILINE)
    beside = {file.stem for file in path.parent.iterdir()}  # such as checks
    return [name for name in dict.fromkeys(names) if name not in beside and importlib.util.find_spec(name) is None]


def is_check(cell):
    return "check" in cell.metadata.get("tags", ())


def failed(cell):
    return any(output.output_type == "error" for output in cell.get("outputs", ()))


def solutions_of(path):
    file = path.parent / "solutions" / path.with_suffix(".py").name
    return file.read_text(encoding="utf-8") if file.exists() else ""  # a notebook without exercises


def exercise(source, solutions):
    """The source of an exercise's cell, made from the solutions; code to be repaired stays as it is."""
    unsolved = {
        name: ast.unparse(fn.body[-1])
        for name, (fn,) in functions(ast.parse(source)).items()
        if "NotImplementedError" in ast.unparse(fn.body[-1])
    }
    if not unsolved:
        return source
    whole = blank(solutions.encode(), [*unsolved]).decode()
    lines = re.sub(rf"(?m)(^ *{MORE}$)(\n.+)+", r"\1", whole).splitlines()
    tree = ast.parse("\n".join(lines))
    for name, (fn,) in functions(tree).items():
        if name in unsolved:
            lines[fn.body[-1].lineno - 1] = " " * fn.body[-1].col_offset + unsolved[name].replace("'", '"')
    names = {name.partition(".")[0] for name in unsolved}
    parts = [lines[node.lineno - 1 : node.end_lineno] for node in tree.body if getattr(node, "name", "") in names]
    return "\n\n\n".join(map("\n".join, parts))


def keep(path):
    """Run the notebook and write it with its outputs; ValueError if it says that the machine was busy."""
    before = path.read_bytes()
    notebook = nbformat.reads(before.decode("utf-8"), as_version=4)
    for cell in notebook.cells:
        if "exercise" in cell.metadata.get("tags", ()):
            cell.source = exercise(cell.source, solutions_of(path))
    run(notebook, path.parent)
    if BUSY in "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())):
        raise ValueError(
            "its times were measured on a busy machine, nothing was written: run it while nothing else runs"
        )
    for cell in filter(is_check, notebook.cells):  # an exercise to be solved is not an error
        if failed(cell):
            [error] = cell.outputs
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=error.evalue + "\n")]
    kept = notebook.metadata.keys() & {"kernelspec", "language_info"}
    notebook.metadata = {key: notebook.metadata[key] for key in sorted(kept)}
    if path.read_bytes() != before:
        raise ValueError("it was edited while it ran, nothing was written: save it, and run it again")
    with replacing(path) as new:
        nbformat.write(notebook, new)


def check(path):
    """ValueError unless the notebook runs, each check fails in it, and passes after the solutions."""
    notebook = nbformat.read(path, as_version=4)
    checks = [cell for cell in notebook.cells if is_check(cell)]
    solutions = solutions_of(path)
    for cell in notebook.cells:
        if "exercise" in cell.metadata.get("tags", ()) and cell.source != exercise(cell.source, solutions):
            raise ValueError(f"this exercise is another one in solutions/: run it without --check\n{cell.source}")
    solved = [nbformat.v4.new_code_cell(source) for source in (solutions, *(cell.source for cell in checks))]
    notebook.cells += solved
    try:
        run(notebook, path.parent)
    except CellExecutionError as error:
        raise ValueError(re.sub(r"\033\[[\d;]*m", "", str(error))) from error
    for cell in checks:
        if not failed(cell):
            raise ValueError(f"expected this check to fail before the exercise is solved:\n{cell.source}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="their paths (all of this folder)")
    parser.add_argument("--check", action="store_true", help="write nothing, and try the solutions as well")
    request = parser.parse_args()
    paths = request.notebooks or sorted(FOLDER.glob("[0-9]*.ipynb"))
    try:
        needs = {path: missing(path) for path in paths}
    except OSError as error:
        sys.exit(str(error))
    left_out = [f"{path.name} needs {', '.join(names)}" for path, names in needs.items() if names]
    if left_out:
        print(f"left out: {'; '.join(left_out)}: python -m pip install -e '.[notebooks,train]'", flush=True)
    if len(left_out) == len(paths):
        sys.exit("nothing was run")
    for path in (path for path in paths if not needs[path]):
        print(path.name, flush=True)
        try:
            (check if request.check else keep)(path)
        except (ValueError, CellExecutionError, OSError) as error:
            sys.exit(f"{path.name}: {error}")


if __name__ == "__main__":
    main()
