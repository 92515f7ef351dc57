"""`python main.py ...` in this process, which is fast, and as a process of its own, for what depends on its start."""

import contextlib
import io
import json
import os
import subprocess
import sys
from subprocess import CompletedProcess

from helpers import ROOT
from systems import hears_ctrl_c

from speculative.cli.main import main

AGAIN = """from speculative.drafters.deterministic import one_hot
class Again:  # a file with a drafter of one's own
    def __init__(self, target, _):
        self.n = target.n_vocab
    def propose(self, tokens, K, rng):
        return one_hot([tokens[-1]] * K, self.n)
"""


def run_here(*arguments):
    """What the command prints and how it ends, as `subprocess.run` would say it, without a process of its own."""
    arguments, argv = [os.fsdecode(argument) for argument in arguments], sys.argv
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            sys.argv = ["main.py", *arguments]
            return CompletedProcess(arguments, main(arguments), out.getvalue(), err.getvalue())
        finally:
            sys.argv = argv


def process(*arguments, **options):
    """`python main.py` as a process whose Ctrl-C is not ignored, wherever these tests run."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, ROOT / "main.py", *arguments], **hears_ctrl_c() | pipes | options)


def report_of(*arguments):
    """The report of a command with --json."""
    result = run_here(*arguments, "--json")
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    return json.loads(result.stdout)


def row_of(*arguments):
    """The row of a report on one text."""
    (row,) = report_of(*arguments)["rows"]
    return row


def timeless(value):
    """A report without what a clock has measured."""
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [timeless(each) for each in value]
    return None if isinstance(value, float) else value


def refused(result):
    """The one sentence of a command that was refused."""
    assert result.returncode == 2 and result.stdout == "" and "Traceback" not in result.stderr, result
    assert result.stderr.startswith("main.py: ") and result.stderr.count("\n") == 1 and len(result.stderr) < 500
    return result.stderr.removeprefix("main.py: ").rstrip("\n")


def refusal(*arguments):
    """The same, of a command that is run here."""
    return refused(run_here(*arguments))
