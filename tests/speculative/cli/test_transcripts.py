r"""Golden files: what each command prints, whole, and all that it refuses.

A file of pages/, and refusals.txt, has `$ command line`s, each followed by what it prints, indented; `> name text`
writes a file first, `< name` shows one, `# ` is a comment. To add a case, write its line and run `pytest --update`;
read the difference. Quotes are as in a shell; \n, \e (escape), \u202e and \\ are one character, and @x@5@ is xxxxx.

The clock shows how much the models have computed, so a page has the same numbers everywhere. The last digits of a
probability depend on the processor, so decimal numbers are compared to 1 in 10,000.
"""

import re
import shlex
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest
from command import refusal, run_here
from systems import needs_any_name, opening_a_folder, slashes

import gpt2np
from speculative.cli import commands
from speculative.cli.journal import Journal

HERE = Path(__file__).parent
PAGES = sorted(path.stem for path in (HERE / "pages").glob("*.txt"))
ESCAPES = {"n": "\n", "e": "\033", "u202e": "\u202e", "\\": "\\"}
DECIMAL = re.compile(r"\d+\.\d{5,}(?:e-\d+)?")
NUMBER = re.compile(r"\d+\.\d{3,}(?:e-\d+)?|\d(?:\.\d+)?e-\d+")


def unescaped(text):
    text = re.sub("@([^@]+)@([0-9]+)@", lambda found: found[1] * int(found[2]), text)
    return re.sub(r"\\(n|e|u202e|\\)", lambda found: ESCAPES[found[1]], text)


def shorter(number):
    """Six digits of it; "0.0" for a difference that is only rounding."""
    value = round(float(number[0]), 9)
    return f"{value:.6g}" if value else "0.0"


def transcript(path, said, folder):
    """The text of the file with what the commands print now, as said(*words) tells it."""
    lines = []

    def show(text):
        text = DECIMAL.sub(shorter, slashes(text))
        text = re.sub(r'"matmul": "\w+"', '"matmul": "chosen here"', text)
        text = text.replace(opening_a_folder(), "Is a directory")
        lines.extend("    " + line if line else "" for line in text.rstrip("\n").splitlines())

    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("    ") or not line:
            continue
        is_after_a_page = lines and lines[-1].startswith("    ") and path.parent != HERE
        lines += ["", line] if is_after_a_page or (line.startswith("# ") and lines) else [line]
        name, _, text = line[2:].partition(" ")
        if line.startswith("> "):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(unescaped(text), encoding="utf-8")
        elif line.startswith("$ "):
            show(said(*(unescaped(word) for word in shlex.split(line[2:]))))
        elif line.startswith("< "):
            show((folder / name).read_text(encoding="utf-8"))
    return "\n".join(lines) + "\n"


def as_kept(text, path):
    """The text, in which each line that differs from a line of the file only by rounding is replaced by that line."""
    kept = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        kept.setdefault(NUMBER.sub("", line), []).append(line)

    def is_close(line, other):
        return np.allclose([float(n) for n in NUMBER.findall(line)], [float(n) for n in NUMBER.findall(other)], 1e-4)

    lines = text.split("\n")
    same = (next((k for k in kept.get(NUMBER.sub("", line), ()) if is_close(line, k)), line) for line in lines)
    return "\n".join(same)


def printed(*words):
    result = run_here(*words)
    notes = "".join(f"! {line}\n" for line in result.stderr.splitlines())
    return result.stdout + notes + f"exit code {result.returncode}\n" * (result.returncode != 0)


@pytest.fixture
def by_work(monkeypatch):
    """The clock that shows how much the models have computed, on a machine without a name."""
    now, run = [0.0], gpt2np.GPT2.run

    def working(self, tokens, n_last=1, parents=()):
        n_rows = n_last if self.cache.length else len(tokens)
        now[0] += self.hparams.n_layer * (16 + n_rows) / 512  # differences are exact, and so are ties
        return run(self, tokens, n_last, parents)

    monkeypatch.setattr(gpt2np.GPT2, "run", working)
    for module in ("generation", "measuring.experiment"):
        monkeypatch.setattr(f"speculative.{module}.perf_counter", lambda: now[0])
    monkeypatch.setattr("speculative.cli.journal.machine", lambda: "a machine")
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("speculative.cli.journal.version", lambda: "a version")
    monkeypatch.setattr("webbrowser.open", lambda address: True)


@pytest.mark.parametrize("name", PAGES)
def test_what_a_command_prints(name, golden, whole_models, by_work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = HERE / "pages" / f"{name}.txt"
    golden(path, as_kept(transcript(path, printed, tmp_path), path))


def test_every_command_has_a_page():
    assert {module.name for module in iter_modules(commands.__path__)} <= {*PAGES}


@needs_any_name
def test_what_is_refused_in_one_sentence(golden, whole_models, tmp_path, monkeypatch):
    """Before anything is measured, or any file written."""

    def contents():
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    def refused(*words):
        before, sentence = contents(), refusal(*words)
        assert contents() == before, words
        return sentence

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Journal, "keep", lambda *_: 1 / 0)
    golden(HERE / "refusals.txt", transcript(HERE / "refusals.txt", refused, tmp_path))
