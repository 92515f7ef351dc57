"""The options: each kind of value, what an option may be, and what has no effect together."""

import json
import re

import pytest
from command import refusal, run_here
from systems import slashes

from speculative.cli.options import ENTRIES, Choice, Flag, Number, Options, Several, Text, Written


def test_a_text_stays_a_text():
    assert Text().read("2010-10-10") == "2010-10-10" and Text().check("any", 5) is None
    for prompt in ("2010-10-10", "1e3", "[1, 2]", "None", "True", "{}", "'quoted'", "a,b", "--K 4", "=", "a\nb"):
        result = run_here(f"--prompt={prompt}", "--n_tokens_to_generate=1", "--stop=1e3", "--json")
        report = json.loads(result.stdout)
        assert (report["prompt"], report["stop"]) == (prompt, "1e3")
    assert "--corpus: cannot read 1e3 (" in refusal("--drafter=suffix", "--corpus=1e3")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Number(), "1e3", 1000.0), (Number(int), "007", 7), (Number(int, 1, words=("auto",)), "auto", "auto"),
        (Number(), "some", "some"), (Flag(), "True", True), (Flag((".json",)), "a.json", "a.json"),
        (Several(Number()), "0,1", "0,1"), (Choice(("a", "b")), "a", "a"), (Written((".txt",)), "a.txt", "a.txt"),
    ],
)  # fmt: skip
def test_the_value_of_a_text(kind, text, value):
    found = kind.read(text)
    assert found == value and type(found) is type(value)


MANY = 10**400


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Number(int, 1), 0, "expected a whole number of 1 or more, got 0"),
        (Number(int, 1, 9), 10, "expected a whole number from 1 to 9, got 10"),
        (
            Number(int, 1, words=("auto", "some")),
            "four",
            "expected a whole number of 1 or more, or auto or some, got 'four'",
        ),
        (Number(int), 2.5, "expected a whole number, got 2.5"),
        (Number(), True, "expected a number, got True"),
        (Number(least=0), float("inf"), "expected a number of 0 or more, got inf"),
        (Number(), MANY, "expected a number, got a number beyond 1.8e308"),
        (Choice(("hub", "openai")), "HUB", "there is no 'HUB': did you mean hub?"),
        (Choice(("ngram", "suffix")), "n-gram", "there is no 'n-gram': did you mean ngram?"),
        (Choice(("hub", "openai")), "ftp", "expected one of hub, openai, got 'ftp'"),
        (Several(Choice(("a", "b"))), "a,,b", "expected values separated by commas, got 'a,,b'"),
        (Several(Number(least=0)), "0,hot", "expected a number of 0 or more, got 'hot'"),
        (Written((".png", ".pdf")), "a.gif", "expected a name that ends in .png or .pdf, got 'a.gif'"),
        (Written((".html",)), "nowhere/t.html", "cannot write nowhere/t.html (No such file or directory): name a file"),
        (Flag(), "3", "expected one of False, True, got '3'"),
        (Flag((".json",)), "yes", "expected a name that ends in .json, got 'yes'"),
    ],
)
def test_a_value_that_is_not_one(kind, value, message):
    with pytest.raises(ValueError) as caught:
        kind.check("some", value)
    assert slashes(str(caught.value)).startswith(f"--some: {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"K": "four"}, "--K: expected a whole number of 1 or more, or auto, heuristic or confidence, got 'four'"),
        (
            {"K": "confidence", "drafter": "suffix"},
            "--K confidence needs a drafter with probabilities, got suffix: try",
        ),
        ({"tree": "2,x"}, "--tree: expected a number of nodes, the number of children for each level (2,2,1), or auto"),
        ({"tree": "0"}, "with at most 256 nodes, got '0'"),
        ({"tree": "16,16"}, "with at most 256 nodes, got '16,16'"),
        ({"tree": "2,2,2,2"}, "--tree 2,2,2,2 has 4 levels: give --K 4, the depth limit"),
        (
            {"tree": "4", "verifier": "block"},
            "--tree needs a verifier that takes trees (rejection, traversal, exact_match, gumbel, typical), got",
        ),
        ({"drafter": "heads", "verifier": "block"}, "--drafter heads needs a verifier that takes trees"),
        (
            {"tree": "4", "K": "auto"},
            "--K auto chooses the length of a chain: for --tree give a number, or --tree auto",
        ),
        ({"tree": "4", "drafter": "prompt_lookup"}, "--tree is for --drafter model, ngram, suffix, recycl"),
        ({"tree": "auto", "drafter": "suffix"}, "--tree: expected a number of nodes for --drafter suffix, got 'auto'"),
        ({"top_p": -1}, "expected a top_p above 0 and at most 1, got -1"),
        ({"min_p": 2}, "expected a min_p from 0 to 1, got 2"),
        ({"repetition_penalty": 0}, "expected a repetition_penalty above 0, got 0"),
        ({"temperatures": "-1"}, "--temperatures: expected a number of 0 or more, got -1"),
        ({"max_K": 1}, "--max_K: expected a whole number from 2 to 100, got 1"),
        ({"drafters": "model,xyzzy"}, "--drafters: expected one of model, ngram, "),
        ({"ngram_table": "no/table"}, "--ngram_table: cannot write no/table (No such file"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options, message):
    with pytest.raises(ValueError) as caught:
        Options(**options)
    assert message in slashes(str(caught.value))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus=a"], "--corpus is for --drafter ngram or suffix, not model: leave --corpus out"),
        (
            ["--drafter=suffix", "--draft_temperature=0"],
            "--draft_temperature is for --drafter model, ngram, early_exit or eagle, not suf",
        ),
        (
            ["calibrate", "--drafter=ngram", "--draft_model_size=124M"],
            "--draft_model_size is for --drafter model, not ngram",
        ),
        (
            ["method_table", "--drafters=model,suffix", "--exit_layer=1"],
            "--exit_layer is for --drafter early_exit, not mo",
        ),
        (["--siblings=top"], "--siblings is for --tree: leave --siblings out"),
        (
            ["--prompt=a", "--prompt_file=b"],
            "--prompt is not for --prompt_file, whose lines are prompts: leave --prompt",
        ),
        (["gamma_table", "--n_prompts=3", "--prompt_file=b"], "--n_prompts is not for --prompt_file, whose lines are"),
        (["bench", "--strategies=rows", "--K=3"], "--K is for --strategies transformers: leave --K out"),
    ],
)
def test_an_option_without_an_effect_is_refused(arguments, message):
    assert refusal(*arguments).startswith(message)


def test_one_number_of_nodes_however_it_is_spelled():
    assert [Options(tree=text).grown_nodes for text in ("8", " 8", "+8", "0_8", "2,2", "auto")] == [8, 8, 8, 8, 0, 0]


def test_options_of_texts_are_texts():
    names = {"prompt", "corpus", "ngram_table", "stop", "models_dir", "draft_model_size", "drafter", "temperatures"}
    assert {ENTRIES[name].type for name in names} == {str}
    assert all(re.fullmatch(r"\w+", name) and ENTRIES[name].metadata["help"] for name in ENTRIES if name != "file")
