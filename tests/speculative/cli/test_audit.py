"""`audit`: the page; what is measured needs PyTorch, see tests/speculative/testing/test_torch_draws.py."""

import pytest
from command import refusal

from speculative.cli.commands import audit


def test_it_needs_transformers(monkeypatch):
    monkeypatch.setattr(audit, "HAS_TRANSFORMERS", False)
    assert refusal("audit").startswith("audit needs PyTorch and transformers, which are missing: ")


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({}, ""),
        (
            {"verdict": "NOT LOSSLESS", "distance": 0.25, "impossible": 0.125},
            "top_k 2: the tokens [0, 1] have probability 0.5000 with the draft, 0.2500 without\n"
            "         and 0.1250 is for texts that are impossible without\n",
        ),
        ({"verdict": "fails", "message": "ValueError: no"}, "top_k 2: generate() fails: ValueError: no\n"),
    ],
)
def test_the_page_by_hand(changes, remark):
    worst = {"tokens": [0, 1], "alone": 0.25, "with_draft": 0.5}
    row = {
        "setting": "top_k 2", "n_vocab": 3, "n_tokens": 3, "K": 2, "paths": 7, "outcomes": 5, "distance": 1e-8,
        "impossible": 0, "worst": worst, "verdict": "lossless", **changes,
    }  # fmt: skip
    page = audit.table({"transformers": "5", "torch": "2", "rows": [row, {**row, "verdict": "lossless"}]})
    assert f"lossless\n{remark}\npaths  " in page
