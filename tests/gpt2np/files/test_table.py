"""The tables in docs/models.md are those of the code: with --update they are written again."""

import json
import re
from itertools import groupby

from helpers import ROOT

from gpt2np.files import table


def quoted(names):
    return ", ".join(f"`{name}`" for name in names)


def of_forms(forms):
    return [
        (quoted(form.patterns), f"loads: {form.sentence}" if form.layout else f"refused: it {form.sentence}")
        for form in forms
    ]


def of_settings(settings):
    for (values, remedy), entries in groupby(settings.items(), key=lambda entry: entry[1]):
        values = [value if isinstance(value, str) else json.dumps(value) for value in values]
        yield quoted(key for key, _ in entries), quoted(value for value in values if value) or "none", remedy


TABLES = {
    "weights": ("files", "result", *of_forms(table.WEIGHTS)),
    "tokenizer": ("files", "result", *of_forms(table.TOKENIZERS), ("none of these", f"loads: {table.NUMBERS}")),
    "config.json": ("setting", "loads", "others are refused", *of_settings(table.SETTINGS)),
    "tensors": (
        "names, after prefixes", "result",
        (quoted(table.PREFIXES), "the prefixes, which are dropped, one after the other"),
        *((quoted(patterns), f"refused: {sentence}") for patterns, sentence in table.TENSORS.items()),
    ),
    "tokenizer.json": ("setting", "loads", "others are refused", *of_settings(table.BPE)),
}  # fmt: skip


def test_the_page_has_the_tables(golden):
    path = ROOT / "docs" / "models.md"
    page = path.read_text(encoding="utf-8")
    for name, cells in TABLES.items():
        header = [cell for cell in cells if isinstance(cell, str)]
        rows = [header, ["---"] * len(header), *cells[len(header) :]]
        new = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        page, n = re.subn(rf"(?s)(<!-- {re.escape(name)} -->\n).*?(?=<!-- -->)", lambda match: match[1] + new, page)  # noqa: B023
        assert n == 1, name
    golden(path, page)
