"""The packages as setup.py installs them, run from another folder: the same commands, under the name of the program."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

PACKAGES = ("gpt2np", "speculative")


def test_the_installed_command_line_does_the_same(tmp_path):
    pytest.importorskip("setuptools", reason="the packages are built with setuptools")
    build, lib = tmp_path / "build", tmp_path / "lib"
    command = [sys.executable, "setup.py", "-q", "build", "--build-base", build, "--build-lib", lib]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    assert sorted(path.name for path in lib.iterdir()) == [*PACKAGES]
    bundled, built = (
        {path.relative_to(root) for name in PACKAGES for path in (root / name).rglob("*.*")} for root in (ROOT, lib)
    )
    assert {path for path in bundled if path.suffix != ".pyc" and (ROOT / path).is_file()} <= built
    environment = {**os.environ, "PYTHONPATH": str(lib), "PYTHONSAFEPATH": "1"}

    def run(*arguments):
        command = [sys.executable, "-m", "speculative", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    page = run("--n_tokens_to_generate", "12")
    assert page.returncode == 0 and page.stderr == "" and "same text     yes, all 12 tokens" in page.stdout
    text = run("compare", "--help").stdout
    assert "    speculative-decoding compare " in text and "main.py" not in text
    assert run("explore", "--html", "page.html").stdout == "page.html is written: open it in a browser\n"
    assert run("compar").stderr == "speculative-decoding: unknown command 'compar': did you mean compare?\n"
