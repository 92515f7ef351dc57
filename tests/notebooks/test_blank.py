"""Exercises made of the library's own files: the body goes, and nothing else."""

import ast
import runpy
import subprocess
import sys
from itertools import pairwise

import pytest
from helpers import ROOT

SCRIPT = ROOT / "notebooks" / "blank.py"
blank, functions = (runpy.run_path(str(SCRIPT))[name] for name in ("blank", "functions"))
FILES = sorted(path.relative_to(ROOT) for folder in ("gpt2np", "speculative") for path in (ROOT / folder).rglob("*.py"))


def without_bodies(tree):
    """The syntax tree as it should be, as text."""
    for node in (node for nodes in functions(tree).values() for node in nodes):
        docstring = node.body[:1] if ast.get_docstring(node) is not None else []
        node.body = [*docstring, *ast.parse("raise NotImplementedError").body]
    return ast.dump(tree)


def pieces(source):
    """The lines of a file in pieces: those of each function, from `def` on, and those between."""
    nodes = sorted((node for nodes in functions(ast.parse(source)).values() for node in nodes), key=lambda n: n.lineno)
    cuts = [0, *(cut for node in nodes for cut in (node.lineno - 1, node.end_lineno)), None]
    lines = source.splitlines(keepends=True)
    return [lines[begin:end] for begin, end in pairwise(cuts)]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_function_of_the_library_can_be_an_exercise(path):
    source = (ROOT / path).read_bytes()
    result = blank(source, functions(ast.parse(source)))
    assert ast.dump(ast.parse(result)) == without_bodies(ast.parse(source))
    before, after = pieces(source), pieces(result)
    assert after[::2] == before[::2]
    for whole, sheet in zip(before[1::2], after[1::2]):
        assert sheet[-1].strip() == b"raise NotImplementedError" and sheet[:-1] == whole[: len(sheet) - 1]


@pytest.mark.parametrize(
    "source, wanted",
    [
        ("def f():  # 0\n  # hint\n  return x  # done\n  # so\n\n# next\n", "def f():  # 0\n  {}\n\n# next\n"),
        ("def f(x): return x\n", "def f(x): {}\n"),
        ('def f(x): "doc"; return x\n', 'def f(x): "doc"; {}\n'),
        ('def f(x): "doc"\n', 'def f(x): "doc"; {}\n'),
        ('def f(x):\n\t"""doc\n\tmore"""  # here\n', 'def f(x):\n\t"""doc\n\tmore"""  # here\n\t{}\n'),
        ("def f(\n  x=lambda: 1,  # 0\n) -> g:\n  return [\n    x]", "def f(\n  x=lambda: 1,  # 0\n) -> g:\n  {}\n"),
        ("@a\nasync def f(x):\r\n  é = '\x0c'\r\n  return x\r\n", "@a\nasync def f(x):\r\n  {}\r\n"),
        ("if 1:\n  def f():\n    if x:\n      return x\n  # else\n", "if 1:\n  def f():\n    {}\n  # else\n"),
        ("class A:\n  def f(): 1\n  def g(): 2\ndef f(): 3\n", "class A:\n  def f(): 1\n  def g(): {}\ndef f(): {}\n"),
    ],
)  # fmt: skip
def test_what_stays_byte_for_byte(source, wanted):
    names = ["f", "A.g"] if "A" in source else ["f"]
    assert blank(source.encode(), names) == wanted.replace("{}", "raise NotImplementedError").encode()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("rule.py", b"def f():\n    return 1\n", "there is no function g in it: expected one of f"),
        ("rule.py", b"x = 1\n", "there is no function g in it: it has no functions"),
        ("rule.py", b"def f(:\n", "expected a Python file in UTF-8"),
        ("rule.py", b"\xff\xfe\x00", "expected a Python file in UTF-8"),
        ("absent.py", None, "cannot read or write"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = subprocess.run([sys.executable, SCRIPT, tmp_path / name, "g"], capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == "" and message in result.stderr
    assert "Traceback" not in result.stderr and len(result.stderr.splitlines()) == 1


def test_the_command(tmp_path):
    path, out = ROOT / "speculative" / "verifiers" / "rejection.py", tmp_path / "homework.py"
    wanted = blank(path.read_bytes(), ["rejection"])
    assert subprocess.run([sys.executable, SCRIPT, path, "rejection"], capture_output=True).stdout == wanted
    assert subprocess.run([sys.executable, SCRIPT, path, "rejection", "-o", out]).returncode == 0
    assert out.read_bytes() == wanted and b"p(x)" not in wanted.partition(b"raise")[2]
    again = subprocess.run([sys.executable, SCRIPT, out, "rejection", "-o", out], capture_output=True, text=True)
    assert again.returncode == 1 and "which would overwrite the solution" in again.stderr
