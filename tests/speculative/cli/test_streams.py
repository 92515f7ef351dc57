"""Closed and full outputs, Ctrl-C during the imports, other starts of the program: as processes. Never a traceback."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import row_of, run_here, timeless
from helpers import ROOT
from systems import hears_ctrl_c, needs, needs_ctrl_c, needs_full_device, needs_shell

MAIN = [sys.executable, ROOT / "main.py"]
TINY = "--target_model_size tiny-draft --drafter prompt_lookup --n_tokens_to_generate 12"


def shell(command, **options):
    command = command.replace("M ", f"{MAIN[0]} {MAIN[1]} ")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, **options)


@needs_shell
@needs_full_device
def test_a_reader_may_leave_early_and_a_full_output_costs_no_file():
    result = shell(f"set -o pipefail; M {TINY} | head -n 1; echo $?; M {TINY} --json a.jsonl --trace t.html >/dev/full")
    assert re.fullmatch(r"target  .*\n0\n", result.stdout) and result.returncode == 2
    assert result.stderr == "main.py: cannot read or write standard output (No space left on device)\n"
    assert (
        len(Path("a.jsonl").read_text("utf-8").splitlines()) == 8
    )  # the first line, the prompt, three laps of two texts
    assert Path("t.html").read_text("utf-8").startswith("<!")


@pytest.mark.slow
@needs_shell
def test_outputs_may_be_closed():
    result = shell(f"M {TINY} --json a.jsonl <&- >&- 2>&-")
    assert result.stdout == result.stderr == "" and result.returncode == 0
    assert len(Path("a.jsonl").read_text("utf-8").splitlines()) == 8


@pytest.mark.slow
@needs_shell
def test_a_full_disk_costs_no_more_than_its_file():
    """A limit of the size of files is met as a full disk is: while the file is written."""
    resource = pytest.importorskip("resource", reason="this system has no limits of a process")
    Path("t.html").write_text("old")
    result = shell(
        f"M {TINY} --trace t.html", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000,) * 2)
    )
    assert result.returncode == 2 and "\nspeculative\n" in result.stdout
    assert result.stderr == "main.py: cannot write t.html (File too large): the previous file is unchanged\n"
    assert os.listdir() == ["t.html"] and Path("t.html").read_text() == "old"


@needs("pipes with a name", os.path.exists("/dev/fd/0"))
def test_a_text_from_a_pipe_is_read_once():
    def piped(text):
        end, other_end = os.pipe()
        os.write(other_end, text.encode())
        os.close(other_end)
        return f"/dev/fd/{end}"

    tale = "Once upon a time there lived a king who lived in a great forest, and he was so much surprised."
    Path("tale").write_text(tale)
    words = ("--drafter=prompt_lookup", "--n_tokens_to_generate=12", "--corpus")
    one, other = (row_of(*words, name) for name in (piped(tale), "tale"))
    assert timeless(one) == timeless(other) and one["accepted"] > 0
    page = run_here("--n_tokens_to_generate=5", "--grammar", piped("a{3}")).stdout
    assert "great forestaaa\n" in page and "\ngrammar /dev/fd/" in page and "not a file" not in page


@pytest.mark.slow
def test_a_terminal_without_the_characters():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    output = subprocess.run(
        [*MAIN, *TINY.split(), "--prompt", "naïve 世界"], env=environment, capture_output=True, check=True
    )
    assert b"na?ve ??" in output.stdout and output.stderr == b""


@needs_ctrl_c
@pytest.mark.parametrize("module", ["numpy", pytest.param("fire", marks=pytest.mark.slow)])
def test_ctrl_c_during_the_imports_leaves_no_traceback(module):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([MAIN[0], "-X", "importtime", MAIN[1]], **pipes, **hears_ctrl_c()) as child:
        seen = next(line for line in child.stderr if re.search(rf"\| +{module}(\.\w+)?$", line))
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
    assert seen and child.returncode == -signal.SIGINT and "Traceback" not in rest


def test_a_checkout_that_is_not_installed():
    code = f"""
import importlib.metadata, sys
def version(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.version = version
sys.path.insert(0, {str(ROOT)!r})
from speculative.cli.main import main
sys.exit(main({TINY.split()!r}) or main(["--version"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.endswith("(not installed)\n"), result.stderr
