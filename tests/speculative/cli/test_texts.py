"""--output: the texts of a file of prompts, several at once, as they are one by one. It resumes: test_journal.py."""

import json
from pathlib import Path

import pytest
from command import refusal, report_of, row_of, run_here

from speculative.cli.drafters import DRAFTERS

PROMPTS = ["Once upon a time", "The king", "A wolf and", "In a wood there", "She said"]
SHORT = ("--n_tokens_to_generate", "12")
FILE = ("--prompt_file", "prompts.jsonl")


@pytest.fixture(autouse=True)
def prompts(in_a_folder):
    lines = [json.dumps({"question_id": f"q{i}", "prompt": prompt}) for i, prompt in enumerate(PROMPTS)]
    Path("prompts.jsonl").write_text("\n".join(lines))


def write(name, *options):
    """(the file, the page)"""
    result = run_here("--output", name, *SHORT, *options)
    assert result.returncode == 0, result.stderr
    return Path(name).read_text(), result.stdout


def texts_in(journal):
    """The texts of a journal, after its first line."""
    return [json.loads(line) for line in journal.splitlines()[1:]]


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "forced"])
def test_the_file_is_the_same_with_any_number_of_lanes(drafter):
    options = [*FILE, "--drafter", drafter, "--temperature", "1", "--presence_penalty", "0.5", "--stop", "."]
    options += ["--frequent", "300"] * (drafter in ("eagle", "parallel"))
    (one_by_one, _), (together, page) = (write(f"{n}.jsonl", *options, "--n_lanes", n) for n in ("1", "3"))
    assert one_by_one == together and [text["question_id"] for text in texts_in(together)] == [
        "q0",
        "q1",
        "q2",
        "q3",
        "q4",
    ]
    assert "5 texts in 3.jsonl; 3 at once" in page


def test_the_text_is_that_of_the_program():
    one = texts_in(write("texts.jsonl", *FILE)[0])[1]
    row = row_of("--prompt", PROMPTS[1], "--seed", "1", *SHORT)
    assert (one["text"], one["seed"], one["target_calls"]) == (row["texts"][1], 1, row["target_calls"])


def test_options_that_are_for_a_comparison_and_an_output_in_the_place_of_the_prompts():
    assert "name the same file" in refusal(*FILE, "--output", FILE[1])
    for option in ("--trace=x.html", "--show=rounds", "--json"):
        sentence = f"{option.partition('=')[0]} has no effect, as --output is given"
        assert sentence in refusal(*FILE, "--output=texts.jsonl", option)
    assert "--n_lanes has no effect, as it is for --output" in refusal("--n_lanes", "2")


def test_without_a_file_it_is_the_text_of_the_prompt():
    lines, _ = write("one.jsonl", "--prompt", PROMPTS[0])
    assert [text["prompt"] for text in texts_in(lines)] == PROMPTS[:1]


def test_a_comparison_with_several_texts_at_once():
    """The same counts with any number of lanes, and those of a comparison one by one."""
    options = ["compare", "--n_prompts", "3", "--n_tokens_to_generate", "6", "--K", "2"]
    rows, [alone] = (report_of(*options, *lanes)["rows"] for lanes in (("--n_lanes", "1,3"), ()))
    n_laps = rows[0]["n_texts"]
    for row in rows:
        assert row["same_texts"] == n_laps
        for name in ("n_tokens", "target_calls", "drafted", "accepted", "rejected"):
            assert row[name] == n_laps * alone[name], name
    assert "needs as many prompts: give --n_prompts 4" in refusal(*options, "--n_lanes", "4")
    sentence = "--by has no effect, as --n_lanes is given: leave it out"
    assert sentence == refusal(*options, "--n_lanes", "2", "--by", "prompt")
