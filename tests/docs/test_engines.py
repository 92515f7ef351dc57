"""The page on other engines: its tables are those of the commands, and its programs run on the bundled pair."""

import re

import pytest
from command import run_here
from helpers import ROOT
from random_transformers import peer

from gpt2np.files.loading import find_folder

PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
SERVING = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^```\n\$ python main.py (batch_table.*)\n((?s:.*?))^```$", SERVING, re.M)


@pytest.mark.parametrize(("command", "output"), TABLES)
def test_a_batch_table_is_that_of_the_command(command, output):
    """When this fails: python dev/bench/run_blocks.py docs/serving.md batch_table"""
    assert len(TABLES) == 2 and run_here(*command.split()).stdout.strip() == output.strip()


@peer
def test_the_programs_of_the_page_run_one_after_the_other(capsys):
    pytest.importorskip("transformers")
    names, found = {"LARGE": "tiny-target", "SMALL": "tiny-draft", "LLAMA": "tiny-target", "GPT2": "tiny-draft"}, {}
    programs = [block for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if ">>>" not in block]
    for program in programs:
        for name, size in names.items():
            program = program.replace(f'"{name}"', repr(str(find_folder(size, None))))
        exec(program, found)
    loop, batch, pairs, verdict, *_, stats = capsys.readouterr().out.splitlines()
    assert len(programs) == 6 and "rounding" in verdict and "6 pairs of texts" in pairs
    assert all(said.startswith("rounding: ") for said in (loop, batch, pairs))
    assert stats.startswith("60 tokens in ")
