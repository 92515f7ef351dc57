"""Closed and full outputs, Ctrl-C during the imports, other starts of the program: as processes. Never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from command import report_of, run_here, timeless
from helpers import ROOT
from systems import hears_ctrl_c, needs, needs_ctrl_c, needs_full_device, needs_shell

MAIN = [sys.executable, ROOT / "main.py"]
FEW = ("--n_tokens_to_generate", "12")
TINY = ("--target_model_size", "tiny-draft", "--drafter", "prompt_lookup", *FEW)


def shell(command, **options):
    command = command.replace("M ", f"{MAIN[0]} {MAIN[1]} ")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, **options)


@needs_shell
@needs_full_device
def test_the_reader_may_leave_early_and_a_full_output_is_one_sentence():
    result = shell(f"set -o pipefail; M {' '.join(TINY)} | head -n 1; echo $?; M --help >/dev/full")
    assert re.fullmatch(r"target  .*\n0\n", result.stdout) and result.returncode == 2
    assert result.stderr == "main.py: cannot read or write standard output (No space left on device)\n"


@pytest.mark.slow
@needs_shell
def test_outputs_may_be_closed(tmp_path):
    result = shell(f"M {' '.join(TINY)} --json a.jsonl <&- >&- 2>&-", cwd=tmp_path)
    assert result.stdout == result.stderr == "" and result.returncode == 0
    assert json.loads((tmp_path / "a.jsonl").read_text("utf-8").splitlines()[-1])["part"] == "comparison"


@pytest.mark.slow
@needs_shell
@needs_full_device
def test_what_was_measured_is_kept_when_nobody_can_read_the_page(tmp_path):
    few = "compare --n_prompts 3 --n_tokens_to_generate 3 --K 1,2"
    for words, report, option, other in (
        (" ".join(TINY), "a.jsonl", "trace", "t.html"),
        (few, "b.jsonl", "csv", "b.csv"),
    ):
        result = shell(f"M {words} --json {report} --{option} {other} > /dev/full", cwd=tmp_path)
        assert result.returncode == 2 and result.stderr.count("\n") == 1
        assert len((tmp_path / report).read_text("utf-8").splitlines()) == (2 if report == "a.jsonl" else 5)
        assert (tmp_path / other).read_text("utf-8").startswith(("<!", "K,by,"))


@pytest.mark.slow
@needs_shell
def test_a_full_disk_costs_no_more_than_its_file(tmp_path):
    """A limit of the size of files is met as a full disk is: while the file is written."""
    resource = pytest.importorskip("resource", reason="this system has no limits of a process")
    (tmp_path / "t.html").write_text("old")
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    result = shell(f"M {' '.join(FEW)} --trace t.html", cwd=tmp_path, **limited)
    assert result.returncode == 2 and "\nspeculative\n" in result.stdout
    assert result.stderr == "main.py: cannot write t.html (File too large): the previous file is unchanged\n"
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {"t.html": "old"}


@needs("pipes with a name", os.path.exists("/dev/fd/0"))
def test_a_text_from_a_pipe_is_read_once(tmp_path):
    def piped(text):
        end, other_end = os.pipe()
        os.write(other_end, text.encode())
        os.close(other_end)
        return f"/dev/fd/{end}"

    tale = "Once upon a time there lived a king who lived in a great forest, and he was so much surprised."
    (tmp_path / "tale").write_text(tale)
    one, other = (report_of("--drafter=suffix", *FEW, "--corpus", name) for name in (piped(tale), tmp_path / "tale"))
    assert timeless(one["speculative"]) == timeless(other["speculative"]) and one["speculative"]["accepted"] > 0
    page = run_here("--n_tokens_to_generate=5", "--grammar", piped("a{3}")).stdout
    assert "great forestaaa\n" in page and "\ngrammar /dev/fd/" in page and "not a file" not in page


@pytest.mark.slow
def test_a_terminal_without_the_characters():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    output = subprocess.run([*MAIN, *TINY, "--prompt", "naïve 世界"], env=environment, capture_output=True, check=True)
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


def test_a_checkout_that_is_not_installed(tmp_path):
    code = f"""
import importlib.metadata, sys
def version(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.version = version
sys.path.insert(0, {str(ROOT)!r})
from speculative.cli.main import main
sys.exit(main({[*TINY]!r}) or main(["--version"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0 and result.stdout.endswith("(not installed)\n"), result.stderr
