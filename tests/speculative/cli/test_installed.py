"""The packages as setup.py installs them, run from another folder: the same commands, under the name of the program."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A function that runs the installed command line in a folder of its own."""
    pytest.importorskip("setuptools", reason="the packages are built with setuptools")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "setup.py", "-q", "build", "--build-base", folder / "build", "--build-lib", folder / "lib"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    environment = {**os.environ, "PYTHONPATH": str(folder / "lib"), "PYTHONSAFEPATH": "1"}
    assert sorted(path.name for path in (folder / "lib").iterdir()) == ["gpt2np", "speculative"]
    bundled, built = (
        {path.relative_to(root) for package in ("gpt2np", "speculative") for path in (root / package).rglob("*.*")}
        for root in (ROOT, folder / "lib")
    )
    assert {path for path in bundled if path.suffix != ".pyc" and (ROOT / path).is_file()} <= built

    def run(*arguments):
        command = [sys.executable, "-m", "speculative", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)

    return run


def test_the_installed_command_line_does_the_same(installed):
    page = installed("--n_tokens_to_generate", "12")
    assert page.returncode == 0 and page.stderr == "" and "same text     yes, all 12 tokens" in page.stdout
    text = installed("calibrate", "--help").stdout
    assert "    speculative-decoding calibrate\n" in text and "main.py" not in text
    assert installed("explore", "--html", "page.html").stdout == "page.html is written: open it in a browser\n"
    wrong = installed("calibrat")
    assert wrong.returncode == 2 and wrong.stderr == (
        "speculative-decoding: unknown command 'calibrat': did you mean calibrate?\n"
    )
