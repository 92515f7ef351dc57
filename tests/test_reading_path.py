"""The reading path: the module headers' `Next:` lines lead through every file of both packages, each once."""

import ast
import importlib.util
import re

import pytest
from helpers import ROOT

# their __init__ is not on the path
RE_EXPORTS = [f"speculative/{folder}" for folder in ("drafters", "verifiers", "adapters")] + ["gpt2np", "speculative"]


def next_file(path):
    """The file that the header of `path` names in its one `Next:` line, which is relative to `path`."""
    header = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    lines = re.findall(r"\bNext:.*", header)
    assert len(lines) == 1, f"{path.relative_to(ROOT)}: expected one Next: line, got {lines}"
    named = re.fullmatch(r"Next: (\S+\.py)", lines[0])
    assert named, f"{path.relative_to(ROOT)}: expected one file, relative to this one, got {lines[0]!r}"
    found = (path.parent / named[1]).resolve()
    assert found.is_file(), f"{path.relative_to(ROOT)}: {lines[0]!r} does not exist"
    return found


def reading_path(start):
    """The files from `start` on, up to the first that is outside its package."""
    package, files = start.relative_to(ROOT).parts[0], [start]
    while files[-1].relative_to(ROOT).parts[0] == package:
        following = next_file(files[-1])
        assert following not in files, f"{files[-1].relative_to(ROOT)} leads back to {following.relative_to(ROOT)}"
        files.append(following)
    return [path.relative_to(ROOT).as_posix() for path in files]


@pytest.mark.parametrize(
    ("start", "end"),
    [("gpt2np/reference.py", "speculative/interfaces.py"), ("speculative/interfaces.py", "main.py")],
)
def test_it_visits_every_file_once_and_ends(start, end):
    *visited, last = reading_path(ROOT / start)
    package = ROOT / start.split("/")[0]
    files = {path.relative_to(ROOT).as_posix() for path in package.rglob("*.py")}
    assert set(visited) == files - {f"{folder}/__init__.py" for folder in RE_EXPORTS}
    assert last == end


def test_the_reading_list_is_that_of_the_headers():
    """When this fails: python docs/make_reading_list.py"""
    spec = importlib.util.spec_from_file_location("make_reading_list", ROOT / "docs" / "make_reading_list.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
