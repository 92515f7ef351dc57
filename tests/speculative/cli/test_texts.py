"""--output: the texts of a file of prompts, several at once, as they are one by one. It resumes: test_journal.py."""

import json

import pytest
from command import refusal, run_here

from speculative.cli.drafters import DRAFTERS

PROMPTS = ["Once upon a time", "The king", "A wolf and", "In a wood there", "She said"]
SHORT = ("--n_tokens_to_generate", "12")


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    lines = [json.dumps({"question_id": f"q{i}", "prompt": prompt}) for i, prompt in enumerate(PROMPTS)]
    path.write_text("\n".join(lines))
    return path


def write(prompts, name, *options):
    path = prompts.with_name(name)
    result = run_here("--prompt_file", prompts, "--output", path, *SHORT, *options)
    assert result.returncode == 0, result.stderr
    return path.read_text(), result.stdout


def texts_in(journal):
    """The texts of a journal, after its first line."""
    return [json.loads(line) for line in journal.splitlines()[1:]]


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "forced"])
def test_the_file_is_the_same_with_any_number_of_lanes(prompts, drafter):
    options = ["--drafter", drafter, "--temperature", "1", "--presence_penalty", "0.5", "--stop", "."]
    options += ["--frequent", "300"] * (drafter in ("eagle", "parallel"))
    (one_by_one, _), (together, page) = (write(prompts, f"{n}.jsonl", *options, "--n_lanes", n) for n in ("1", "3"))
    texts = texts_in(together)
    assert one_by_one == together and [text["question_id"] for text in texts] == ["q0", "q1", "q2", "q3", "q4"]
    assert f"5 texts in {prompts.with_name('3.jsonl')}; 3 at once" in page


def test_the_text_is_that_of_the_program(prompts):
    lines, _ = write(prompts, "texts.jsonl")
    one = texts_in(lines)[1]
    shown = json.loads(run_here("--prompt", PROMPTS[1], "--seed", "1", *SHORT, "--json").stdout)["speculative"]
    assert (one["text"], one["seed"], one["target_calls"]) == (shown["text"], 1, shown["target_calls"])


def test_options_that_are_for_a_comparison_and_an_output_in_the_place_of_the_prompts(prompts):
    path = prompts.with_name("texts.jsonl")
    path.write_text("")
    here = ["--prompt_file", prompts, "--output", path, *SHORT]
    assert "name the same file" in refusal("--prompt_file", path, "--output", path)
    for option, value in (("--trace", "x.html"), ("--show", "rounds"), ("--timings", None), ("--json", None)):
        assert f"{option} has no effect, as --output writes the texts" in refusal(*here, *filter(None, (option, value)))
    assert "--n_lanes has no effect, as it is for --output" in refusal("--n_lanes", "2")


def test_without_a_file_it_is_the_text_of_the_prompt(tmp_path):
    path = tmp_path / "one.jsonl"
    assert run_here("--prompt", PROMPTS[0], "--output", path, *SHORT).returncode == 0
    assert [text["prompt"] for text in texts_in(path.read_text())] == PROMPTS[:1]


def test_a_comparison_with_several_texts_at_once():
    """The same counts with any number of lanes, and those of a comparison one by one."""
    options = ["compare", "--n_prompts", "3", "--n_tokens_to_generate", "6", "--K", "2", "--json"]
    rows = json.loads(run_here(*options, "--n_lanes", "1,3").stdout)["rows"]
    [alone] = json.loads(run_here(*options).stdout)["rows"]
    n_laps = rows[0]["n_texts"]
    for row in rows:
        assert row["same_texts"] == n_laps
        for name in ("n_tokens", "target_calls", "drafted", "accepted", "rejected"):
            assert row[name] == n_laps * alone[name], name
    assert "needs as many prompts: give --n_prompts 4" in refusal(*options[:-1], "--n_lanes", "4")
    sentence = "--by has no effect, as --n_lanes generates the prompts together: leave it out"
    assert sentence == refusal(*options[:-1], "--n_lanes", "2", "--by", "prompt")
