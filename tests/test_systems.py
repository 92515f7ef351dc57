"""Without what Windows does not have, the tests are collected, and those that touch the system run or are skipped."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "shared")}
TOUCHING = (
    "files",
    "streams",
    "generate",
    "inputs",
    "download_leftovers",
    "download_models",
    "load",
    "matmul",
    "timing",
)


def files_of(*names):
    return [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in names]


def pytest_like_windows(*arguments):
    command = [sys.executable, "-m", "pytest", "-p", "like_windows", "-p", "no:cacheprovider", "-n", "0", *arguments]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)


def test_the_tests_are_collected_on_other_systems():
    """Those that could not be, when they imported pty or resource, or asked for a forkserver."""
    files = files_of("generate", "streams", "command_lines", "matmul")
    result = pytest_like_windows("--collect-only", "-m", "", *files)
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_the_tests_run_or_are_skipped_on_other_systems():
    result = pytest_like_windows("-rs", *files_of(*TOUCHING))
    assert result.returncode == 0, result.stdout
    for what in ("pseudo-terminals", "bash", "Ctrl-C", "symbolic links", "/proc", "/dev/full", "a fork after"):
        assert what in result.stdout
