"""docs/reading.md says how long each step takes: fifteen lines a minute."""

import json
import re

from helpers import ROOT

PAGE = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
STEP = r"^\d\. \[[^]]+\]\(\.\./([^)]+)\) \((\d+) min\)"


def n_lines(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".ipynb"):
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return len(text.splitlines())


def test_each_step_has_its_minutes():
    steps = re.findall(STEP, PAGE, re.M)
    assert len(steps) == len(re.findall(r"^\d\. ", PAGE, re.M)) == 16
    for name, minutes in steps:
        assert abs(int(minutes) - n_lines(name) / 15) < 1.5, name
