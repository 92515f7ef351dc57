"""A round as a line in a terminal."""

import pytest

from speculative.trace import Trace, round_line
from speculative.trace.terminal import visible


def test_a_round_as_a_line():
    drafted = [
        {"text": " so", "decision": "accepted", "parent": -1},
        {"text": "\nx", "decision": "rejected", "parent": 0},
        {"text": " y", "decision": "dropped", "parent": 1},
    ]
    record = {"drafted": drafted, "texts": [" so", " sad"], "next": {"text": " sad", "origin": "correction"}}
    assert round_line(record) == "1/3 accepted  | so|~\u23cex~|~ y~|[ sad]"
    coloured = round_line(record, coloured=True)
    assert round_line(record | {"next": None}) == "1/3 accepted  | so|~\u23cex~|~ y~"  # the text ended
    assert "\033[32m so\033[0m|\033[9;31m\u23cex\033[0m|\033[2;9m y\033[0m|\033[31m sad\033[0m" in coloured


def test_of_a_tree_the_tested_siblings_are_shown(of_trees):
    generation = of_trees()
    for r, record in zip(generation.rounds, Trace.of(generation).rounds):
        if r.draft.depth < len(r.drafted):
            line, n_tested = round_line(record), sum(draft["decision"] != "dropped" for draft in record["drafted"])
            places = len({draft["parent"] for draft in record["drafted"][:n_tested]})
            assert line.startswith(f"{r.n_accepted}/{len(record['drafted'])} accepted")
            assert line.count("~") == 2 * (n_tested - r.n_accepted) and line.count("|") == places + 1


@pytest.mark.parametrize("coloured", [False, True])
def test_no_text_sends_control_characters_to_the_terminal(coloured):
    odd = "".join(map(chr, range(160))) + "\u2028\u202e\u2066\ud83d caf\u00e9 \U0001f40d"
    draft = {"text": odd, "decision": "accepted", "parent": -1}
    record = {"drafted": [draft], "texts": [odd, odd], "next": {"text": odd, "origin": "bonus"}}
    line = round_line(record, coloured)
    codes = ["\033[32m", "\033[34m", "\033[0m", "\t"]
    for code in codes[: 4 if coloured else 0]:
        line = line.replace(code, "")
    assert line.replace("\t", "").isprintable()
    assert "\u241b[" not in line and "\u241b" in line and "\\x9b" in line and "\\u202e" in line
    assert line.count(" caf\u00e9 \U0001f40d") == 2
    assert visible("a\tb\n\x1b[2J") == "a\tb\n\u241b[2J"
