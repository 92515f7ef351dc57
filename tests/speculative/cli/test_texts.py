"""--output: the texts of a file of prompts, several at once, as they are one by one; an interrupted run resumes."""

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


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "forced"])
def test_the_file_is_the_same_with_any_number_of_lanes(prompts, drafter):
    options = ["--drafter", drafter, "--temperature", "1", "--presence_penalty", "0.5", "--stop", "."]
    options += ["--frequent", "300"] * (drafter in ("eagle", "parallel"))
    (one_by_one, _), (together, page) = (write(prompts, f"{n}.jsonl", *options, "--n_lanes", n) for n in ("1", "3"))
    texts = [json.loads(line) for line in together.splitlines()]
    assert one_by_one == together and [text["question_id"] for text in texts] == ["q0", "q1", "q2", "q3", "q4"]
    assert f"5 texts in {prompts.with_name('3.jsonl')}; 3 at once" in page


def test_the_text_is_that_of_the_program(prompts):
    lines, _ = write(prompts, "texts.jsonl")
    one = json.loads(lines.splitlines()[1])
    shown = json.loads(run_here("--prompt", PROMPTS[1], "--seed", "1", *SHORT, "--json").stdout)["speculative"]
    assert (one["text"], one["seed"], one["target_calls"]) == (shown["text"], 1, shown["target_calls"])


@pytest.mark.parametrize("cut", [0, 1, -1, 40, 700])
def test_it_resumes(prompts, cut):
    """After any part of the file; a line that was cut short is written anew."""
    whole, _ = write(prompts, "texts.jsonl")
    prompts.with_name("texts.jsonl").write_text(whole[:cut])
    assert write(prompts, "texts.jsonl", "--n_lanes", "2")[0] == whole
    assert "5 were there" in write(prompts, "texts.jsonl")[1]


def test_an_interruption_keeps_the_texts_that_ended(prompts, monkeypatch):
    from speculative.cli.settings import Entrant

    as_they_end = Entrant.as_they_end

    def interrupted(*arguments, **keywords):
        for number, ended in enumerate(as_they_end(*arguments, **keywords)):
            if number == 2:
                raise KeyboardInterrupt
            yield ended

    monkeypatch.setattr(Entrant, "as_they_end", interrupted)
    path = prompts.with_name("texts.jsonl")
    result = run_here("--prompt_file", prompts, "--output", path, *SHORT, "--n_lanes", "1")
    sentence = f"main.py: interrupted; 2 texts in {path}: the same command resumes from there\n"
    assert (result.returncode, result.stderr) == (130, sentence) and path.read_text().count("\n") == 2


def test_what_another_command_wrote_is_refused(prompts):
    write(prompts, "texts.jsonl")
    path = prompts.with_name("texts.jsonl")
    here = ["--prompt_file", prompts, "--output", path, *SHORT]
    other = f"line 1 of {path} was made with different options or prompts: name a different file, or delete it"
    for options in (["--seed", "3"], ["--K", "2"], ["--drafter", "ngram"]):
        assert other in refusal(*here, *options)
    path.write_text('{"text": 3}\n')
    assert f"line 1 of {path} is not a text of this program" in refusal(*here)
    assert "name the same file" in refusal("--prompt_file", path, "--output", path)
    for option, value in (("--trace", "x.html"), ("--show", "rounds"), ("--timings", None), ("--json", None)):
        assert "is for one prompt: leave it out with --output" in refusal(*here, *filter(None, (option, value)))
    assert "--n_lanes is for many prompts: give --output and --prompt_file" in refusal("--n_lanes", "2")
    assert "--output is for many prompts: give --output and --prompt_file" in refusal("--output", path)


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
    assert "--by separates prompts" in refusal(*options[:-1], "--n_lanes", "2", "--by", "prompt")
