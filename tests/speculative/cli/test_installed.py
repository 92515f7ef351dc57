"""The packages as setup.py installs them, run from another folder: the same commands, under the name of the program."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

import gpt2np
import speculative


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A function that runs the installed command line in a folder of its own."""
    pytest.importorskip("setuptools", reason="the packages are built with setuptools")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "setup.py", "-q", "build", "--build-base", folder / "build", "--build-lib", folder / "lib"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    environment = {**os.environ, "PYTHONPATH": str(folder / "lib"), "PYTHONSAFEPATH": "1"}
    assert not (folder / "lib" / "command_line").exists() and not (folder / "lib" / "main.py").exists()

    def run(*arguments):
        command = [sys.executable, "-m", "speculative_cli", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)

    return run


def test_the_version_is_one():
    assert gpt2np.__version__ == speculative.__version__ and gpt2np.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'speculative' has no attribute '__versions__'"):
        _ = speculative.__versions__


def test_the_installed_command_line_does_the_same(installed):
    page = installed("--n_tokens_to_generate", "12")
    assert page.returncode == 0 and page.stderr == "" and "same text     yes, all 12 tokens" in page.stdout
    text = installed("--help").stdout
    assert "    speculative-decoding calibrate " in text and "main.py" not in text
    assert installed("--version").stdout == f"speculative-decoding-numpy {gpt2np.__version__}\n"
    wrong = installed("gama_table")
    assert wrong.returncode == 2 and wrong.stderr.startswith("speculative-decoding: unknown command 'gama_table' (did")
