"""The tables of docs/measurements.md have the numbers of the raw outputs, and other pages those of the tables."""

import re

from helpers import ROOT, script

summary = script("dev/bench/summary.py")
PAGE = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
GAIN = r"[\d.]+ \([\d.]+ to [\d.]+\)"  # a number with its interval


def test_the_tables_are_those_of_the_raw_outputs():
    """When this fails: python dev/bench/summary.py"""
    assert summary.with_tables(PAGE) == PAGE and PAGE.count(f"\n{summary.FIRST}") == len(summary.TABLES)


def test_the_intervals_in_the_readme_are_those_of_the_tables():
    """A speedup has one source; when this fails: copy the number from docs/measurements.md."""
    shown = re.findall(GAIN, (ROOT / "README.md").read_text(encoding="utf-8").replace("*", ""))
    assert len(shown) > 2 and {*shown} <= {*re.findall(GAIN, PAGE)}


def test_the_numbers_in_choosing_are_those_of_the_measurements():
    """When this fails: copy the number from docs/measurements.md, or leave it out."""
    shown = re.findall(r"\d+\.\d+(?: \(.*?\))?", (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8"))
    assert len(shown) > 10 and [number for number in shown if number not in PAGE] == []


def test_the_results_in_the_readme_are_those_of_the_tables():
    """A row's speedup and tokens per call are a cell of the page, with the kernels that the README names."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\| \*\*([\d.]+)\*\* (\(.*\)) \| ([\d.]+) \|$", readme, re.M)
    assert len(rows) == 3 and all(f"| {gain} {interval}; {calls} (" in PAGE for gain, interval, calls in rows)


def test_a_number_is_read_by_its_row_and_the_heading_of_its_column(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\n$ two\nK  calls  speedup              calls\n3  2.98   1.52 (1.45 to 1.60)  2.99\n```\n")
    for form, wanted in {
        "<3 | speedup>; <3 | calls>; <3 | calls 2>": "1.52 (1.45 to 1.60); 2.98; 2.99",
        "<4 | speedup>": None,
        "<3 | least>": None,
    }.items():
        assert summary.cell(page, {"one": "<3 | speedup>", "two": form}) == wanted
