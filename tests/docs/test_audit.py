"""The pages on other engines: their programs run, on the bundled pair."""

import re

import pytest
from helpers import ROOT
from random_transformers import peer

from gpt2np.files.loading import find_folder


def run_programs(page):
    """Run a page's programs one after the other; their number."""
    names, found = {"LARGE": "tiny-target", "SMALL": "tiny-draft", "LLAMA": "tiny-target", "GPT2": "tiny-draft"}, {}
    programs = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)
    for program in programs:
        for name, size in names.items():
            program = program.replace(f'"{name}"', repr(str(find_folder(size, None))))
        exec(program, found)
    return len(programs)


@peer
def test_the_audits_say_rounding(capsys):
    pytest.importorskip("transformers")
    assert run_programs("audit.md") == 5
    samples, loop, pace, batch, pairs, *changes, gap = capsys.readouterr().out.splitlines()
    assert samples.startswith("True ") and samples.endswith(" the first token differs")
    assert pace.startswith("K = 2: ") and pace.endswith("tokens per target call, as rejection sampling")
    assert "6 pairs of texts" in pairs and gap == "None"
    assert [float(line.split()[-2]) < 64 for line in changes] == [True] * 3
    assert all(said.startswith("rounding: ") for said in (loop, batch, pairs))


@peer
def test_models_of_transformers_draft_for_each_other(capsys):
    pytest.importorskip("transformers")
    assert run_programs("adapters.md") == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("60 tokens in ")
