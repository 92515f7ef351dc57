"""Grade a folder of answers to the exercises of a notebook: a table (CSV) with a line for each student.

    python notebooks/grade.py 05b answers > marks.csv
    python notebooks/grade.py 05b answers 120 > marks.csv                   at most 120 seconds for a cell, not 60
    python notebooks/grade.py 05b answers --feedback told > marks.csv       and told/NAME.txt, with whole messages
    python notebooks/grade.py lab/05b_speculative_sampling.ipynb answers   exercises and checks from a different folder
    python notebooks/grade.py lab answers                                  all notebooks of a handout

A student hands in a notebook, a .py file with the functions, or a folder of these; whatever else is in the folder of
answers has its line as well. Each file runs in its own process and in its own copy of the notebook's folder, as the
student ran it, cell after cell, and continues after a cell that fails. The checks are those beside the notebook,
whatever the student's file contains. Commands to the shell and to pip do nothing. It is not a sandbox.
"""

import argparse
import ast
import builtins
import contextlib
import csv
import importlib
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handout import code_of, notebook_of, number_of, outside, points_of

LONGEST = 2000  # characters of a message; a table has its first line, and at most a tenth of it
stopped = threading.Event()  # set by Ctrl-C

# ------------------------------------------------------------------------------------------------ what is to be graded


class Part:
    """A notebook that is graded: its checks, and dict "exercise_1" -> the call in the notebook's own cell."""

    def __init__(self, notebook, table):
        self.notebook, self.module, self.calls = notebook, notebook.stem.partition("_")[2], {}
        for cell in cells_of(notebook):
            for node in ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*", "", cell))):
                if isinstance(node, ast.ImportFrom) and node.module == "checks":
                    self.module = next(alias.name for alias in node.names)
                if is_check(node):
                    self.calls[node.func.attr] = ast.unparse(node)
        beside = notebook.parent / "points.csv"
        points = points_of(table or beside, number_of(notebook)) if table or beside.exists() else None
        self.points = {name: 1 if points is None else points.get(name, [0])[0] for name in self.calls}
        if self.calls and not notebook.with_name("checks").joinpath(f"{self.module}.py").is_file():
            raise ValueError(f"{notebook.name}: expected checks/{self.module}.py in its folder, {notebook.parent}")

    def asked(self, path):
        """dict name -> its definition in a file, of the names that the calls check."""
        nodes = [node for call in self.calls.values() for node in ast.walk(ast.parse(call))]
        names = "|".join(node.id for node in nodes if isinstance(node, ast.Name) and node.id != "check")
        found = re.findall(
            rf"(?m)^((?:def |class )?({names})\b *[(:=].*(?:\n(?:[ \t].*)?$)*)", "\n".join(cells_of(path))
        )
        return {name: source.strip() for source, name in found}

    def chosen(self, files):
        """The file of a student with most answers, of several the newest; None if none defines what is asked for."""
        given, counts = self.asked(self.notebook), []
        for path in files:
            try:
                found = self.asked(path)
            except Exception:  # of several files one may be unreadable
                found = {}
            answered = sum(given.get(name) != source for name, source in found.items())
            counts.append((answered, len(found), path.stat().st_mtime, str(path)))
        return Path(max(counts)[-1]) if max(counts)[1] else None


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
        if isinstance(error, UnicodeDecodeError) or "encoding" in str(error):
            raise ValueError(f"unreadable: {path.name} is not in UTF-8: save it with this encoding") from error
        if isinstance(error, SyntaxError) and error.lineno:
            raise ValueError(f"SyntaxError: {error}") from error
        raise ValueError(f"unreadable: {type(error).__name__}: {error}") from error


def files_of(entry):
    """(the answers of a student: a file or those in a folder, the names of other files)."""
    paths = [entry]
    if entry.is_dir() and not entry.is_symlink():
        paths = [Path(root, name) for root, _, names in os.walk(entry) for name in names]
        paths = [path for path in paths if not any(part.startswith(".") for part in path.relative_to(entry).parts)]
    kept = [path for path in paths if path.suffix.lower() in (".py", ".ipynb")]
    kept = sorted(path for path in kept if path.is_file() and not path.is_symlink())
    return kept, [path.name + " (a link)" * path.is_symlink() for path in paths if path not in kept]


def statements(source):
    """The parts of a Python file, so that one that fails does not take the others with it."""
    tree = ast.parse(source)
    starts = [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) for node in tree.body]
    lines, starts = io.StringIO(source).readlines(), sorted({*starts})
    return ["".join(lines[a - 1 : b and b - 1]) for a, b in zip(starts, [*starts[1:], None])]


# ------------------------------------------------------------------------------------------------ one student


def run(notebook, table, files, is_chosen, skipped, journal):
    """In a process of its own: run the cells; write to the journal what is begun, and what each check says."""

    def write(**event):
        with open(journal, "a", encoding="ascii") as file:
            file.write(json.dumps(event) + "\n")

    part, files = Part(Path(notebook), table and Path(table)), [*map(Path, files)]
    try:
        path = files[0] if is_chosen else part.chosen(files)
        cells = path and cells_of(path)
    except Exception as error:  # nested too deep, for instance
        text = f"unreadable: {type(error).__name__}: {error}" if type(error) is not ValueError else str(error)
        return write(said=dict.fromkeys(part.calls, (False, text[:LONGEST])), file=files[0].name)
    if not path:
        text = f"not handed in: no file has an answer to {part.notebook.name}"
        return write(said=dict.fromkeys(part.calls, (False, text)), file="")
    write(said=said_by(cells, part, skipped, write), file=path.name)


def said_by(cells, part, skipped, write):
    """dict exercise -> (whether it is right, what its check says)."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    sys.path[0] = os.getcwd()  # the copy of the notebook's folder
    checks, said, broken = importlib.import_module(f"checks.{part.module}"), {}, {}
    from checks import causes, told

    exercises, before = {name: getattr(checks, name) for name in part.calls}, graders()
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.system, shell.getoutput = lambda *_: None, lambda *_, **__: []
    magics, line_magic = shell.magics_manager.magics["cell"], shell.run_line_magic
    magics |= {name: lambda *_: None for name in magics.keys() & {"!", "bash", "script", "sh", "sx", "system"}}

    def why(error):
        """What failed; if it is a name without a value, what became of the cell that defines it."""
        if isinstance(error, SyntaxError) and error.text:
            return f"{type(error).__name__}: {error.msg}\nline {error.lineno} of the cell: {error.text.strip()}"
        missing = [each.name for each in causes(error) if isinstance(each, NameError) and each.name in broken]
        return broken[missing[0]] if missing else told(error)

    def forgiving(*given, **named):
        try:
            return line_magic(*given, **named) if given[0] != "reset" else None  # it would remove the answers
        except Exception:
            return None

    class Checks:
        """Takes the place of `check`: the check beside the notebook, with the notebook's own keywords."""

        def __getattr__(self, name):
            call = ast.parse(part.calls[name], mode="eval").body
            keywords = {each.arg: ast.literal_eval(each.value) for each in call.keywords}

            def graded(*answers, **_):
                write(at=name)
                try:
                    result = exercises[name](*answers, **keywords)
                    after = graders()
                    changed = [".".join(one) for one, value in before.items() if after.get(one) is not value]
                    said[name] = (False, f"changed the checks: {changed[0]}") if changed else (True, str(result))
                    return result
                except BaseException as error:  # sys.exit() as well
                    said[name] = False, why(error)
                    raise

            return graded if name not in skipped else lambda *_, **__: None

        def missing(self, error):
            broken[error.name] = told(error)

    shell.run_line_magic = forgiving
    shell.ast_transformers.append(Graded())
    builtins.__graded__ = Checks()
    for i, cell in enumerate(cells):
        error = skipped.get(f"cell {i}")
        if not error:
            write(at=f"cell {i}")
            result = shell.run_cell(cell, silent=True)
            error = result.error_before_exec or result.error_in_exec
        if error:
            names = re.findall(r"(?m)^(?:class |def |async def )?(\w+) *(?=[(:=])", cell)
            broken |= dict.fromkeys(names, error if isinstance(error, str) else why(error))
    for name in part.calls.keys() - said.keys() - skipped.keys():  # the file has no such call, or it had no answer
        error = shell.run_cell(part.calls[name].replace("check", "__graded__", 1), silent=True).error_in_exec
        if name not in said:
            said[name] = False, why(error) if error else "no result: it changed how cells are run"
    return {name: (right, text[:LONGEST]) for name, (right, text) in said.items()}


def failed(texts):
    return {name: (False, text) for name, text in texts.items()}


def graders():
    """dict (module, name) -> function or class of the checks, the library and NumPy, which no answer changes."""
    roots = ("checks", "speculative", "gpt2np")
    modules = [(name, vars(module)) for name, module in sys.modules.items() if name.split(".")[0] in roots]
    return {
        (name, key): value
        for name, known in [*modules, ("numpy", vars(sys.modules["numpy"]))]
        for key, value in known.items()
        if callable(value) and getattr(value, "__name__", "") == key
    }


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


def start():
    """The request of `watched`; from here on this process has limits, and it ends if the other one does."""
    request, alive = json.loads(sys.stdin.buffer.readline()), os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    def end():
        os.read(alive, 1)  # returns when the other end is closed
        end_group(os.getpid())

    threading.Thread(target=end, daemon=True).start()
    return request


def end_group(pid):
    """End a process and those that it started."""
    with contextlib.suppress(OSError):
        (os.killpg if hasattr(os, "killpg") else os.kill)(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def end_detached(home):
    """End the processes in sessions of their own that have this IPYTHONDIR; found on Linux only."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"IPYTHONDIR={home}\0".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def graded(part, table, files, is_chosen, leave_out, seconds):
    """(dict exercise -> (whether it is right, what its check says), the name of the file graded) of a student."""
    skipped, end = {}, time.monotonic() + 20 * seconds  # what took too long, or ended the process, is skipped next time
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder, "journal")
        while True:
            journal.write_text("")
            request = str(part.notebook), table and str(table), [*map(str, files)], is_chosen, skipped, str(journal)
            ended = watched(request, part.notebook, leave_out, seconds)
            events = [json.loads(line) for line in journal.read_text(encoding="ascii").splitlines()]
            if events and "said" in events[-1]:
                return failed(skipped) | events[-1]["said"], events[-1]["file"]
            at = events[-1]["at"] if events else None
            if at is None or at in skipped or time.monotonic() > end:
                return failed(dict.fromkeys(part.calls, ended)), files[0].name
            skipped[at] = ended + (f" in {at}, counted from 0" if at.startswith("cell") else "")


def watched(request, notebook, leave_out, seconds):
    """Run one file in its own process and copy of the folder, until it ends or makes no progress; how it ended."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        work = copied(notebook, Path(home), leave_out)
        settings = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
        settings |= {"MPLBACKEND": "Agg", "PAGER": "cat", "TERM": "dumb", "IPYTHONDIR": home, "TMPDIR": home}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, __file__, "--one"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, cwd=work, env=settings, start_new_session=True, **quiet
        )
        with process:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()  # and stays open: the process ends with this one
            size, end, journal = 0, time.monotonic() + seconds, Path(request[-1])
            try:
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        return f"died: the process ended with {process.wait(0.1)}"
                    size, before = journal.stat().st_size, size
                    end = time.monotonic() + seconds if size != before else end
                    if time.monotonic() > end or stopped.is_set():
                        return f"slow: no result after {seconds:g} seconds"
            finally:
                end_group(process.pid)
                end_detached(home)


def copied(notebook, home, leave_out):
    """A copy of the notebook's folder without solutions and notebooks, and of what the notebook reads beside it."""
    folder, work = notebook.parent, home / "course" / notebook.parent.name

    def ignored(at, names):
        return [
            n for n in names if n[:1] == "." or n == "solutions" or n.endswith(".ipynb") or Path(at, n) in leave_out
        ]

    shutil.copytree(folder, work, ignore=ignored)
    for file, name in outside(code_of(json.loads(notebook.read_text("utf-8"))), folder):
        (work.parent / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, work.parent / name)
    if (models := folder.parent / "models").is_dir():
        with contextlib.suppress(OSError):  # GPT-2's own weights, if the notebook chooses them
            (work.parent / "models").symlink_to(models)
    return work


# ------------------------------------------------------------------------------------------------ the table


def safe(value):
    """A value for a spreadsheet: no formula, no control characters, no lone surrogates."""
    from speculative.trace.terminal import visible

    text = visible(str(value).encode("utf-8", "replace").decode().replace("\n", " ").replace("\r", " "))
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t") else text


def short(text):
    """The first line of a message, plus the next one if the first ends with a colon."""
    first, *rest = text.strip().split("\n")
    line = " ".join([first, *rest[: first.endswith(":")]])
    return line if len(line) <= LONGEST // 10 else line[: LONGEST // 10] + " ..."


def marked(entry, parts, request):
    """(for each exercise (whether it is right, what its check says, its points), lines about what was graded)."""
    said, lines = [], []
    for part in parts:
        try:
            files, others = files_of(entry)
            if files:
                is_chosen, leave_out = len(files) == len(parts) == 1, {request.folder, request.feedback}
                results, name = graded(part, request.points, files, is_chosen, leave_out, request.seconds)
                lines.append(f"graded for {part.notebook.name}: {name or 'nothing'}, 1 of {len(files)} files")
            else:
                results = failed(
                    dict.fromkeys(part.calls, f"nothing to grade: {', '.join(others) or 'an empty folder'}")
                )
            said += [(*results[name], points) for name, points in part.points.items()]
        except Exception as error:  # one student's, whatever it is
            said += [(False, f"not graded: {type(error).__name__}: {error}", points) for points in part.points.values()]
    return said, lines


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
        notebooks = sorted(lab.glob("[!.]*.ipynb")) if lab.is_dir() else [notebook_of(request.notebook)]
        if not request.folder.is_dir():
            raise ValueError(f"expected a folder with answers, got {request.folder}")
        request.folder, request.points = request.folder.resolve(), request.points and request.points.resolve()
        parts = [part for notebook in notebooks if (part := Part(notebook.resolve(), request.points)).calls]
        if request.feedback:
            request.feedback = request.feedback.resolve()
            request.feedback.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if not parts:
        parser.error(f"{lab.name} has no exercises: expected a notebook with exercises, such as 05b")
    students = sorted(entry for entry in request.folder.iterdir() if not entry.name.startswith("."))
    calls = [(number_of(part.notebook), name, call) for part in parts for name, call in part.calls.items()]
    titles = [f"{number}.{call.removeprefix('check.')}" for number, _, call in calls]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.reconfigure(encoding="utf-8-sig")  # the mark by which spreadsheets know UTF-8
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["file", "right", "points", *(f"{number}.{name[9:]}" for number, name, _ in calls), *titles])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            rows = pool.map(lambda entry: marked(entry, parts, request), students)
            for i, (entry, (said, lines)) in enumerate(zip(students, tqdm(rows, total=len(students), disable=None))):
                points = [points if right else 0 for right, _, points in said]
                row = [f"{sum(points):g}", *map("{:g}".format, points), *(safe(short(text)) for _, text, _ in said)]
                table.writerow([safe(entry.name), sum(right for right, *_ in said), *row])
                sys.stdout.flush()
                if request.feedback:
                    paragraphs = ["\n".join(lines)] if lines else []
                    for title, (_, text, of) in zip(titles, said):
                        paragraphs.append(f"{title}{'' if of else ', no points'}\n{text}")
                    name = entry.name if len(os.fsencode(entry.name)) < 250 else f"{entry.name[:50]}~{i + 1}"
                    path = request.feedback / f"{name}.txt"
                    path.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8", errors="replace")
        except KeyboardInterrupt:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            sys.exit("interrupted: the table is not complete")


if __name__ == "__main__":
    os._exit(run(*start()) or 0) if sys.argv[1:] == ["--one"] else main()  # threads of the answer end as well
