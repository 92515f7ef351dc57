"""`alpha_table`: alpha of every drafter."""

import re

from speculative.cli.commands.alpha_table import cells, table


def test_the_page(small):
    report, page, _ = small("alpha_table")
    names = [row["drafter"] for row in report["targets"]["tiny-target"]["temperatures"]["temperature 1"]["rows"]]
    assert names == [
        "unigram", "bigram", "trigram", "prompt lookup", "suffix", "2 of 9 layers", "4 of 9 layers", "8 of 9 layers",
        "eagle", "tiny-draft",
    ]  # fmt: skip
    assert all(re.search(rf"^{name} +(\d\.\d\d\d|-)", page, re.M) for name in names)
    assert "1 of 2 layers" in page and page.count("tiny-draft   ") == 1  # not as its own draft


def test_drafts_are_the_positions_with_a_draft():
    row = {"alpha": 0.5, "low": 0.4, "high": 0.6, "drafted": 0.2}
    assert cells(row) == ["0.500", "0.40 to 0.60", "20%", ""] and cells({"alpha": None}) == ["-", "", "", ""]


def page_of(n_texts, n_tokens):
    found = {"target": {"name": "t"}, "n_prompts": n_texts, "n_tokens": n_tokens, "temperatures": {}}
    return table({"machine": "any", "targets": {"t": found}})


def test_the_interval_is_that_of_the_texts_with_a_draft():
    assert "; 1 text of 1 token\n" in page_of(1, 1) and "; 3 texts of 9 tokens\n" in page_of(3, 9)
    assert "interval    none: there is one text\n" in page_of(1, 9) and "Wilson" not in page_of(1, 9)
    assert "Student's t over those of the 3 texts in which it drafts, and none over a single one;" in page_of(3, 9)
