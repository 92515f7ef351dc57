"""Penalties, bans and grammars on the command line: valid texts, with fewer calls of the target."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from command import row_of, run_here

JSON = r'\{"name": "[A-Z][a-z]{1,9}", "age": [1-9][0-9]?\}'
END = 2047


@pytest.mark.parametrize("drafter", ["model", "forced"])
def test_the_text_matches_and_ends(drafter):
    words = ("--grammar", JSON, "--temperature=0.8", "--K=4", "--drafter", drafter)
    row = row_of(*words)
    for text, tokens in zip(row["texts"], row["tokens"]):
        assert json.loads(text).keys() == {"name", "age"} and tokens[-1] == END
    page = run_here(*words).stdout
    assert row["accepted"] > 0 and row["prompt"] + text + "\n" in page and "<|endoftext|>" not in page


def test_a_line_of_a_file_of_patterns_ends_at_a_line_break_alone():
    Path("answers.txt").write_text("yes\u2028no", encoding="utf-8")
    assert row_of("--grammar=answers.txt")["texts"][1] == "yes\u2028no"


RULES = {  # words -> whether the new tokens, and the whole text, are as they should be
    "--no_repeat_ngram_size=2": lambda new, text: len(set(pairwise(text))) == len(text) - 1,
    "--presence_penalty=100": lambda new, text: len(set(new)) == len(new),
    "--frequency_penalty=100": lambda new, text: max(map(new.count, new)) <= 2,
    r"--min_tokens=9 --grammar=\{*": lambda new, text: new.index(END) == 9 == len(new) - 1,  # else at once
}


@pytest.mark.parametrize("words", RULES)
def test_penalties_and_bans(words, tiny_pair):
    row = row_of(*words.split(), "--n_tokens_to_generate=30")
    new = row["tokens"][1]
    assert row["same_texts"] and RULES[words](new, tiny_pair[2].encode(row["prompt"]) + new)
