"""The grader of verifiers is tested by every small edit of the right programs: the wrong ones must be refused."""

import pytest
from small_edits import is_wrong, small_edits

from speculative.testing import check_verifier, watch

EDITS = small_edits()
DIFFERS_AT_0 = "where the uniform number is 0"  # <= in place of <: the distribution is right
EVERY = 40  # of these, one is tested by default


def test_there_are_many():
    assert len(EDITS) > 850


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if i % EVERY == 3 else [pytest.mark.slow]) for i, name in enumerate(EDITS)
])  # fmt: skip
def test_an_edit_passes_if_and_only_if_its_distribution_is_right(name, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 1.0)  # some edits never return
    said = None
    try:
        check_verifier(EDITS[name])
    except AssertionError as error:
        said = str(error).splitlines()[0]
    assert (said is not None) == is_wrong(EDITS[name]) or DIFFERS_AT_0 in said, said
