"""Penalties, bans and grammars on the command line: valid texts, with fewer calls of the target."""

import json
import re
from itertools import pairwise

import pytest
from command import report_of, run_here

JSON = r'\{"name": "[A-Z][a-z]{1,9}", "age": [1-9][0-9]?\}'
DATE = r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
END = 2047
KEYS = ("autoregressive", "speculative")


@pytest.mark.parametrize(
    ("pattern", "drafter"), [(JSON, "model"), pytest.param(DATE, "suffix", marks=pytest.mark.slow), (JSON, "forced")]
)
def test_the_text_matches_and_ends(pattern, drafter):
    words = ("--grammar", pattern, "--temperature=0.8", "--K=4", "--drafter", drafter)
    data = report_of(*words)
    for key in KEYS:
        assert re.fullmatch(pattern, data[key]["text"]) and data[key]["tokens"][-1] == END
    assert "Grammar" in data["processors"][0]
    page = run_here(*words).stdout
    assert data["prompt"] + data["speculative"]["text"] + "\n" in page and "<|endoftext|>" not in page
    assert data["speculative"]["accepted"] > 0 or drafter == "suffix"
    if pattern == JSON:
        assert json.loads(data["speculative"]["text"]).keys() == {"name", "age"}


def test_a_line_of_a_file_of_patterns_ends_at_a_line_break_alone(tmp_path):
    (tmp_path / "answers.txt").write_text("yes\u2028no", encoding="utf-8")
    assert report_of("--grammar", tmp_path / "answers.txt")["speculative"]["text"] == "yes\u2028no"


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
