"""Parts that several tables share."""

import io
import sys

import pytest

from speculative.cli.tables import has_colours, show, tree_line, where


def test_the_drafts_own_temperature_is_on_the_page():
    for report in ({"settings": {"draft_temperature": 0.5}}, {"settings": {}}):
        page = where({"machine": "one core", "load_average": 0.0, **report})
        assert ("drafts  at temperature 0.5" in page) == bool(report["settings"])


def test_the_tree_in_words():
    found = {"nodes": 0, "levels": 0, "expected_speedup": 1.0}
    assert tree_line({"tree": "auto", "measured_tree": found}) == (
        "tree    none pays: expected speedup 1.00 by measured costs and acceptance"
    )


class Output(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "name", "value", "coloured"),
    [
        (True, "TERM", "xterm", True),
        (True, "TERM", "dumb", False),
        (True, "NO_COLOR", "1", False),
        (False, "TERM", "xterm", False),
    ],
)
def test_colours_where_they_are_wanted(is_terminal, name, value, coloured, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Output(is_terminal))
    assert has_colours() == coloured


@pytest.mark.parametrize(("is_terminal", "columns", "told"), [(True, 80, True), (True, 101, False), (False, 80, False)])
def test_a_page_that_is_too_wide_for_the_terminal_says_so(is_terminal, columns, told, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Output(is_terminal))
    monkeypatch.setenv("COLUMNS", str(columns))
    show({}, lambda report: "x" * 101 + "\n", as_json=False)
    note = "\n\nThis page is 101 columns wide, and the terminal has 80.\n" if told else "\n"
    assert sys.stdout.getvalue() == "x" * 101 + note
