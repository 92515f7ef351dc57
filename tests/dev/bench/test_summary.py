"""The tables of docs/measurements.md have the numbers of the raw outputs, and other pages those of the tables."""

import re

from helpers import ROOT, script

summary = script("dev/bench/summary.py")
PAGE = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_raw_outputs():
    """When this fails: python dev/bench/summary.py"""
    assert summary.TABLE.findall(PAGE) == [summary.table(rows) for rows in summary.TABLES]


def test_the_intervals_in_the_readme_are_those_of_the_tables():
    """A speedup has one source; when this fails: copy the number from docs/measurements.md."""
    shown = re.findall(summary.GAIN, (ROOT / "README.md").read_text(encoding="utf-8").replace("*", ""))
    assert len(shown) > 3 and {*shown} <= {*re.findall(summary.GAIN, PAGE)}


def test_the_numbers_in_choosing_are_those_of_the_measurements():
    """When this fails: copy the number from docs/measurements.md, or leave it out."""
    shown = re.findall(r"\d+\.\d+(?: \(.*?\))?", (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8"))
    assert len(shown) > 10 and [number for number in shown if number not in PAGE] == []


def test_the_results_in_the_readme_are_those_of_the_tables():
    """Rounded, perhaps. Its first column says what was measured, its last one how."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (results,) = re.findall(r"^\| \| AVX-512 .*?(?=\n\n)", readme, re.M | re.S)
    cells = " ".join(cell for row in results.splitlines()[2:] for cell in row.split("|")[2:4])
    tables = " ".join(map(summary.table, summary.TABLES))
    shown, measured = (re.findall(r"(?<![\w.-])\d+(?:\.\d+)?", text) for text in (cells, tables))
    assert len(shown) > 20
    for number in shown:
        digits = len(number.partition(".")[2])
        assert float(number) in {round(float(one), digits) for one in measured}, number


def test_a_number_is_read_from_its_block(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\n$ one --x\nby 'rows'\nrows 1.5\nplain 2\n```\n\n```\n$ two\nplain 3\n```\n", encoding="utf-8")
    assert summary.cell(page, ("one", [r"by '(\w+)'", r"{} ([\d.]+)"], "{1} ({0})")) == "1.5 (rows)"
    assert summary.cell(page, ("three", ["(.)"], "{0}"), ("two", [r"plain ([\d.]+)"], "{0}")) == "3"
    assert summary.cell(page, ("three", ["(.)"], "{0}")) is None
