"""A row of a table: what the papers' formulas expect, and of which runs."""

import pytest

from speculative.measuring import Run
from speculative.measuring.rows import drafts_K_tokens, expected


@pytest.mark.parametrize(("drafted", "is_full"), [(5, True), (4, False)])
def test_drafts_have_K_tokens_or_as_many_as_the_text_still_needs(drafted, is_full):
    runs = [Run(1.0, 0.1, [0] * 5, [2, 3], drafted, 3, 1)]  # 3 tokens, then 2 of the 3 that the text still needs
    assert drafts_K_tokens(runs, 3, 5) == is_full


def test_a_speedup_is_expected_from_alpha_and_c():
    calls = 1 + 0.75 + 0.75**2 + 0.75**3
    row = {"alpha": 0.75, "c": 0.1}
    assert [*expected(row, 3).values()] == [pytest.approx(calls / 1.3), pytest.approx(calls)]
    assert [*expected(row, None).values()] == [*expected({"alpha": None}, 3).values()] == [None, None]
