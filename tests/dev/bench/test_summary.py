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


def test_the_results_in_the_readme_are_those_of_the_table():
    """Rounded, perhaps. Its first column says what was measured, its last one how."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (results,) = re.findall(r"^\| \| AVX-512 .*?(?=\n\n)", readme, re.M | re.S)
    cells = " ".join(cell for row in results.splitlines()[2:] for cell in row.split("|")[2:4])
    shown, measured = (re.findall(r"(?<![\w.-])\d+(?:\.\d+)?", text) for text in (cells, summary.table()))
    assert len(shown) > 20
    for number in shown:
        digits = len(number.partition(".")[2])
        assert float(number) in {round(float(one), digits) for one in measured}, number


def test_a_number_is_read_from_its_block(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\n$ one --x\nby 'rows'\nrows 1.5\nplain 2\n```\n\n```\n$ two\nplain 3\n```\n", encoding="utf-8")
    assert summary.cell(page, ("one", [r"by '(\w+)'", r"{} ([\d.]+)"], "{1} ({0})")) == ("1.5 (rows)", "one --x")
    assert summary.cell(page, ("three", ["(.)"], "{0}"), ("two", [r"plain ([\d.]+)"], "{0}")) == ("3", "two")
    assert summary.cell(page, ("three", ["(.)"], "{0}")) == (None, None)
