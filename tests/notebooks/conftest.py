import subprocess
import sys

import pytest
from helpers import ROOT


@pytest.fixture(scope="session")
def tool():
    """tool(name, *arguments): a script of notebooks/ as a process."""

    def run(name, *arguments):
        command = [sys.executable, ROOT / "notebooks" / f"{name}.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8-sig", check=False)

    return run
