"""The diffs of CONTRIBUTING.md apply to the project, and the commands below them run."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def apply(diff, root):
    """Change the files under root: of each hunk, what it removes and its context occur once."""
    for name, hunks in re.findall(r"^--- (\S+)\n((?:[ +@-].*\n|\n)*?)(?=--- |\Z)", diff, re.M):
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in hunks.split("@@\n"):
            lines = [(line[:1], line[1:]) for line in hunk.splitlines(keepends=True)]
            old, new = ("".join(line for sign, line in lines if sign != other) for other in "+-")
            assert not text or text.count(old) == 1, f"{name}: {old}"
            text = text.replace(old, new) if text else new
        path.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_diffs_apply_and_their_commands_run(tmp_path):
    for name in ("gpt2np", "speculative", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "main.py", tmp_path)
    section = PAGE.partition("## Add something")[2].partition("## Style")[0]
    (program,) = re.findall(r"```python\n# (\S+)\n(.*?)```", section, re.S)
    (tmp_path / program[0]).write_text(program[1], encoding="utf-8")
    for diff in re.findall(r"```diff\n(.*?)```", section, re.S):
        apply(diff, tmp_path)
    for command in re.findall(r"^    python (.*)$", section, re.M):
        if command.startswith("notebooks"):
            pytest.importorskip("nbclient", reason="the notebooks' packages are not installed")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        words = [sys.executable, *shlex.split(command)]
        ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
