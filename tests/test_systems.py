"""Without what Windows does not have, the tests are collected, and those that touch the system run or are skipped."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "shared")}
IMPORTING = [ROOT / "tests" / folder for folder in ("gpt2np/kernels", "speculative/cli")]
TOUCHING = [*IMPORTING, ROOT / "tests" / "gpt2np" / "files", ROOT / "tests" / "speculative" / "measuring"]


def pytest_like_windows(*arguments):
    command = [sys.executable, "-m", "pytest", "-p", "like_windows", "-p", "no:cacheprovider", "-n", "0", *arguments]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)


def test_the_tests_are_collected_on_other_systems():
    """Those that could not be, when they imported pty or resource, or asked for a forkserver."""
    result = pytest_like_windows("--collect-only", "-m", "", *IMPORTING)
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_the_tests_run_or_are_skipped_on_other_systems():
    result = pytest_like_windows("-rs", *TOUCHING)
    assert result.returncode == 0 and "SKIPPED" in result.stdout, result.stdout
