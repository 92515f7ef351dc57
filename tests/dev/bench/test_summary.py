"""The table that opens docs/measurements.md has the numbers of the blocks."""

import re

from helpers import ROOT, script

summary = script("dev/bench/summary.py")


def test_the_table_is_that_of_the_blocks():
    """When this fails: python dev/bench/summary.py"""
    page = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert summary.TABLE.search(page)[0] == summary.table()


def test_the_intervals_in_the_readme_are_those_of_the_table():
    """A speedup has one source; when this fails: copy the number from the table of docs/measurements.md."""
    shown = re.findall(summary.GAIN, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(shown) > 3 and {*shown} <= {*re.findall(summary.GAIN, summary.table())}


def test_the_numbers_in_choosing_are_those_of_the_measurements():
    """When this fails: copy the number from docs/measurements.md, or leave it out."""
    pages = (ROOT / "docs" / name for name in ("choosing.md", "measurements.md"))
    choosing, page = (path.read_text(encoding="utf-8") for path in pages)
    shown = re.findall(r"\d+\.\d+(?: \(.*?\))?", choosing)
    assert len(shown) > 10 and [number for number in shown if number not in page] == []


def test_a_number_is_read_from_its_block(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\n$ one --x\nby 'rows'\nrows 1.5\nplain 2\n```\n\n```\n$ two\nplain 3\n```\n", encoding="utf-8")
    assert summary.cell(page, ("one", [r"by '(\w+)'", r"{} ([\d.]+)"], "{1} ({0})")) == ("1.5 (rows)", "one --x")
    assert summary.cell(page, ("three", ["(.)"], "{0}"), ("two", [r"plain ([\d.]+)"], "{0}")) == ("3", "two")
    assert summary.cell(page, ("three", ["(.)"], "{0}")) == (None, None)
