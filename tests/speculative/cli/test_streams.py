"""Closed and full outputs, Ctrl-C during the imports, other starts of the program: as processes. Never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from command import run_here
from helpers import ROOT
from systems import hears_ctrl_c, needs_ctrl_c, needs_full_device, needs_shell

FEW = ("--n_tokens_to_generate", "12")
TINY = ("--target_model_size", "tiny-draft", "--drafter", "prompt_lookup")


def shell(command, **options):
    command = command.replace("M", f"{sys.executable} {ROOT / 'main.py'}", 1)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, **options)


@needs_shell
@pytest.mark.parametrize("words", ["--n_tokens_to_generate 12", "compare --help"])
def test_the_reader_may_leave_early(words):
    result = shell(f"set -o pipefail; M {words} | head -n 1")
    assert result.stdout.count("\n") == 1 and result.stderr == "" and result.returncode == 0


@needs_shell
@needs_full_device
def test_a_full_output_is_one_sentence():
    result = shell("M --help > /dev/full")
    assert (
        result.stderr == "main.py: cannot read or write standard output (No space left on device)\n"
        and result.returncode == 2
    )


@pytest.mark.slow
@needs_shell
def test_outputs_may_be_closed(tmp_path):
    result = shell(f"M {' '.join(TINY + FEW)} --json a.json <&- >&- 2>&-", cwd=tmp_path)
    assert result.stdout == result.stderr == "" and result.returncode == 0
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["finished"] is True


@pytest.mark.slow
@needs_shell
@needs_full_device
def test_what_was_measured_is_kept_when_nobody_can_read_the_page(tmp_path):
    few = "compare --n_prompts 3 --n_tokens_to_generate 3 --K 1,2"
    for words, files in ((" ".join(TINY + FEW), "--json a.json --trace t.html"), (few, "--json b.json --csv b.csv")):
        result = shell(f"M {words} {files} > /dev/full", cwd=tmp_path)
        assert result.returncode == 2 and result.stderr.count("\n") == 1
        report, other = files.split()[1::2]
        assert json.loads((tmp_path / report).read_text("utf-8"))["finished"] is True
        assert (tmp_path / other).read_text("utf-8").startswith(("<!", "target_model_size,"))


@pytest.mark.slow
@needs_shell
@pytest.mark.parametrize("output", ["--trace t.html", "--json t.json"])
def test_a_full_disk_costs_no_more_than_its_file(tmp_path, output):
    """A limit of the size of files is met as a full disk is: while the file is written."""
    resource = pytest.importorskip("resource", reason="this system has no limits of a process")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    option, name = output.split()
    before = {name: "old"} if option == "--trace" else {}
    for old in before:
        (tmp_path / old).write_text("old")
    result = shell(f"M --n_tokens_to_generate 12 {output}", cwd=tmp_path, preexec_fn=limited)
    assert result.returncode == 2 and "\nspeculative\n" in result.stdout
    assert result.stderr == f"main.py: cannot write {name} (File too large): the previous file is unchanged\n"
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == before


@needs_shell
def test_a_text_from_a_pipe_is_read_once(tmp_path):
    (tmp_path / "tale").write_text("Once upon a time there was a king who had three daughters. " * 5)
    words = ("--drafter=suffix", *FEW, "--corpus")
    piped = shell(f"M {' '.join(words)} <(cat tale) | grep calls", cwd=tmp_path).stdout
    assert piped in run_here(*words, tmp_path / "tale").stdout and piped
    page = shell("M --n_tokens_to_generate 5 --grammar <(echo 'a{3}')", cwd=tmp_path).stdout
    assert "great forestaaa\n" in page and "\ngrammar /dev/fd/" in page and "not a file" not in page


@pytest.mark.slow
def test_a_terminal_without_the_characters():
    command = [sys.executable, ROOT / "main.py", *TINY, "--prompt", "naïve 世界", *FEW]
    output = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert b"na?ve ??" in output.stdout and output.stderr == b""


@needs_ctrl_c
@pytest.mark.parametrize("module", ["numpy", pytest.param("fire", marks=pytest.mark.slow)])
def test_ctrl_c_during_the_imports_leaves_no_traceback(module):
    command = [sys.executable, "-X", "importtime", ROOT / "main.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, **hears_ctrl_c()) as child:
        seen = next(line for line in child.stderr if re.search(rf"\| +{module}(\.\w+)?$", line))
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
    assert seen and child.returncode == -signal.SIGINT and "Traceback" not in rest


# ------------------------------------------------------------------------------------------------ other starts


def test_python_m_speculative():
    command = [sys.executable, "-m", "speculative", *TINY, *FEW]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0 and result.stderr == "" and "same text     yes, all 12 tokens" in result.stdout


def test_a_checkout_that_is_not_installed(tmp_path):
    code = f"""
import importlib.metadata, sys
def version(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.version = version
sys.path.insert(0, {str(ROOT)!r})
from speculative.cli.main import main
sys.exit(main({[*TINY, *FEW]!r}) or main(["--version"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0 and result.stdout.endswith("(not installed)\n"), result.stderr
