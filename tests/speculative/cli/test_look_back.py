"""Penalties, bans and grammars on the command line: valid texts, with fewer calls of the target."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from command import report_of, run_here

JSON = r'\{"name": "[A-Z][a-z]{1,9}", "age": [1-9][0-9]?\}'
END = 2047


@pytest.mark.parametrize("drafter", ["model", "forced"])
def test_the_text_matches_and_ends(drafter):
    words = ("--grammar", JSON, "--temperature=0.8", "--K=4", "--drafter", drafter)
    data = report_of(*words)
    for key in ("autoregressive", "speculative"):
        assert json.loads(data[key]["text"]).keys() == {"name", "age"} and data[key]["tokens"][-1] == END
    assert "Grammar" in data["processors"][0] and data["speculative"]["accepted"] > 0
    page = run_here(*words).stdout
    assert data["prompt"] + data["speculative"]["text"] + "\n" in page and "<|endoftext|>" not in page


def test_a_line_of_a_file_of_patterns_ends_at_a_line_break_alone():
    Path("answers.txt").write_text("yes\u2028no", encoding="utf-8")
    assert report_of("--grammar=answers.txt")["speculative"]["text"] == "yes\u2028no"


RULES = {  # words -> whether the new tokens, and the whole text, are as they should be
    "--no_repeat_ngram_size=2": lambda new, text: len(set(pairwise(text))) == len(text) - 1,
    "--presence_penalty=100": lambda new, text: len(set(new)) == len(new),
    "--frequency_penalty=100": lambda new, text: max(map(new.count, new)) <= 2,
    r"--min_tokens=9 --grammar=\{*": lambda new, text: new.index(END) == 9 == len(new) - 1,  # else at once
}


@pytest.mark.parametrize("words", RULES)
def test_penalties_and_bans(words, tiny_pair):
    data = report_of(*words.split(), "--n_tokens_to_generate=30")
    new = data["speculative"]["tokens"]
    assert data["same_tokens"] and RULES[words](new, tiny_pair[2].encode(data["prompt"]) + new)
