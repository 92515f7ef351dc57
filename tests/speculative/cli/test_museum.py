"""`museum`: a row of the table; that all mistakes are caught is in tests/speculative/testing."""

from command import refusal, run_here

from speculative.cli.commands.museum import entry, has, table
from speculative.museum import EXHIBITS, TREE_EXHIBITS


def test_a_mistake_has_its_error_and_what_catches_it():
    exhibit = next(iter(EXHIBITS.values()))
    row = entry(exhibit)
    page, words = table([row]), " ".join(table([row]).split())
    assert row["mistake"] == exhibit.name and row["law_error"] > 1e-3 and row["message"]
    assert f"\nVerifiers\n=========\n\n{exhibit.name}\n  error {row['law_error']:.2g}, {row['check']}\n" in page
    assert f"{exhibit.what} seen: {exhibit.seen}" in words and "error the largest error of a probability" in words
    assert all(len(line) <= 80 or "http" in line for line in page.splitlines())


def test_the_mistakes_about_a_word():
    name = next(iter(TREE_EXHIBITS))
    page = run_here("museum", name.upper()).stdout
    assert f"\nVerifiers, of trees\n===================\n\n{name}\n" in page and page.count("\n  seen: ") == 1
    assert not any(has(exhibit, "of trees") for exhibit in EXHIBITS.values() if "of trees" not in exhibit.what)
    assert refusal("museum", "zzz").startswith("museum: no mistake is about 'zzz'")
