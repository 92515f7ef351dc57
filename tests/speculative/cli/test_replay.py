"""The rounds of a trace, without a model."""

import json
import re

import pytest
from command import refusal, run_here
from helpers import ROOT

from speculative import trace


def test_a_trace_is_kept_and_replayed_without_a_model(tmp_path, monkeypatch):
    kept, made = tmp_path / "t.jsonl", tmp_path / "t.html"
    result = run_here("--show=rounds", "--trace", kept, "--temperature=1", "--n_tokens_to_generate=12")
    assert result.returncode == 0 and result.stderr == "" and f"\ntrace         {kept}\n" in result.stdout
    lines = re.findall(r"^ +\d+  \d/\d accepted  \|.*$", result.stdout, re.M)
    assert len(lines) == len(kept.read_text("utf-8").splitlines()) - 1 > 2 and "[" in "".join(lines)
    monkeypatch.setattr("gpt2np.load", lambda *_: 1 / 0)
    again = run_here("replay", kept, "--trace", made)
    assert again.returncode == 0 and again.stderr == "" and "\n".join(lines) in again.stdout
    counts = re.search(r"accepted      .*\nby position   .*", result.stdout).group()
    about = trace.Trace.load(kept).about
    assert counts in again.stdout and about["K"] == 3
    assert len(about["alone"]["texts"]) == len(about["alone"]["seconds"]) == 12 and min(about["alone"]["seconds"]) > 0
    assert made.read_text(encoding="utf-8") == trace.page(trace.Trace.load(kept))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("README.md", "README.md, line 1: expected a trace"),
        ("1e3", "replay: cannot read 1e3 (No such file"),
        ("nowhere.jsonl", "replay: cannot read nowhere.jsonl (No such file or directory): give a file written by"),
    ],
)
def test_a_file_that_is_not_a_trace(name, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert message in refusal("replay", name)


@pytest.mark.parametrize(
    "damage", [{"drafted": 5}, {"drafted": [{}]}, {"tokens": None}, {"origins": {}}, {"texts": [1]}]
)
def test_a_damaged_round_is_one_sentence(damage, tmp_path):
    file = tmp_path / "t.jsonl"
    run_here("--trace", file, "--n_tokens_to_generate=8")
    header, first, *rest = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([header, json.dumps(json.loads(first) | damage), *rest]), encoding="utf-8")
    assert "t.jsonl, line 2: expected a trace" in refusal("replay", file)
