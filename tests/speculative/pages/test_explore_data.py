"""The page explore.html as a file: small, asking for nothing, with the library's numbers in it."""

import json
import runpy

import pytest
from helpers import ROOT

PAGE = ROOT / "speculative" / "pages" / "explore.html"


def test_it_is_small_and_asks_for_nothing():
    page = PAGE.read_text(encoding="utf-8")
    assert len(page.encode()) <= 60_000
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"" in page
    assert "http" not in page.replace("http-equiv", "")


def test_its_data_are_those_of_the_library():
    """What dev/pages/explore_data.py records now is what the page has; run it where this fails."""
    script = runpy.run_path(str(ROOT / "dev" / "pages" / "explore_data.py"))
    in_page = json.loads(script["ELEMENT"].search(PAGE.read_text(encoding="utf-8")).group())
    equal(in_page, json.loads(json.dumps(script["data"]())))


def equal(a, b, where=""):
    """Numbers to the digits that are kept, which other BLAS libraries round otherwise; all else exactly."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for name in a:
            equal(a[name], b[name], f"{where}.{name}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            equal(x, y, f"{where}[{i}]")
    else:
        assert a == (pytest.approx(b, abs=2e-4) if isinstance(a, float) else b), where
