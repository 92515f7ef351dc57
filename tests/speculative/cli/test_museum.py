"""`museum`: a row of the table; that all mistakes are caught is in tests/speculative/testing."""

from speculative.cli.commands.museum import entry, table
from speculative.museum import EXHIBITS


def test_a_mistake_has_its_error_and_what_catches_it():
    exhibit = next(iter(EXHIBITS.values()))
    row = entry(exhibit)
    assert row["mistake"] == exhibit.name and row["law_error"] > 1e-3 and row["message"]
    assert f"\n{exhibit.name:45}{row['law_error']:<12.2g}{row['check']}\n" in table([row])
    assert f"\n  {exhibit.what}\n  seen: {exhibit.seen}\n" in table([row])
