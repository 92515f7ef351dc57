"""Spec-Bench's answers and metrics from a report of `compare`."""

import json
import subprocess
import sys

import numpy as np
import pytest
from command import report_of, run_here
from helpers import ROOT, script
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = ROOT / "dev" / "bench" / "spec_bench.py"
spec_bench = script("dev/bench/spec_bench.py")
QUESTIONS = [
    {"question_id": 81, "category": "writing", "turns": ["Once upon a time\nthere was\n" * 9, "And then?"]},
    {"question_id": "b2", "category": "rag", "turns": ["The queen said", "Why?", "And?"]},
    {"category": "rag", "prompt": 'A fox said: "I'},
]


@given(st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=9), min_size=1, max_size=5))
def test_rates_follow_from_the_calls_by_length(lengths):
    found, calls = spec_bench.acceptance_lengths(lengths), np.concatenate(lengths)
    assert [k for k, n in found["calls by length"].items() for _ in range(n)] == sorted(calls)
    for k in range(2, max(calls) + 1):
        assert found["joint rate"][k] == pytest.approx(np.mean(calls >= k), abs=0.0051)
        assert found["conditional rate"][k] == pytest.approx(np.mean(calls[calls >= k - 1] >= k), abs=0.0051)
    assert found["joint rate"].keys() == found["conditional rate"].keys() == {*range(2, max(calls) + 1)}
    assert found["average AL"] == pytest.approx(np.mean([np.mean(some) for some in lengths]))


def speed_py(path):
    """(mean accepted tokens, mean speed) of a file of answers, as Spec-Bench's evaluation/speed.py computes them."""
    choices = [json.loads(line)["choices"][0] for line in path.read_text("utf-8").splitlines()]
    lengths = [length for choice in choices for length in choice["accept_lengths"]]
    speeds = [sum(choice["new_tokens"]) / sum(choice["wall_time"]) for choice in choices]
    return sum(lengths) / len(lengths), sum(speeds) / len(speeds)


def test_the_answers_are_those_that_spec_bench_reads(tmp_path, capsys):
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    words = ("--prompt_file", tmp_path / "q.jsonl", "--n_tokens_to_generate=16", "--by=prompt")
    result = run_here("compare", *words, "--json", tmp_path / "r.jsonl")
    assert "note: left out: 3 further turns, which only a model with a chat template" in result.stderr
    rows = [row for row in report_of("compare", *words)["rows"] if row["by"] != "all"]
    spec_bench.main(tmp_path / "r.jsonl", tmp_path / "a.jsonl")
    said = capsys.readouterr().out
    files = tmp_path / "a.jsonl", tmp_path / "a-baseline.jsonl"
    for i, path in enumerate(files):
        lines = path.read_text("utf-8").splitlines()
        for line, row, question in zip(lines, rows, QUESTIONS, strict=True):
            answer = json.loads(line)
            (choice,) = answer.pop("choices")
            assert answer.keys() == {"question_id", "category", "answer_id", "model_id", "tstamp"}
            assert (answer["question_id"], answer["category"]) == (question.get("question_id", 3), question["category"])
            assert choice["index"] == 0 and choice["turns"] == [row["texts"][1 - i]]
            assert choice["new_tokens"] == [sum(choice["accept_lengths"])] == [16]
            assert choice["decoding_steps"] == [len(choice["accept_lengths"])]
    assert set(choice["accept_lengths"]) == {1}
    (accepted, speed), (_, alone) = map(speed_py, files)
    assert (
        f"mean accepted tokens  {accepted:.2f}\n" in said and f"speedup               {speed / alone:.2f} ratio" in said
    )
    command = [sys.executable, SCRIPT, tmp_path / "r.jsonl", tmp_path / "a.jsonl"]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    refusal = f"spec_bench.py: {files[0]} and {files[1]} would be overwritten: name a different file\n"
    assert again.returncode == 1 and again.stderr == refusal
