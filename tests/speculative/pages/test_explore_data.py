"""The page explore.html as a file: small, asking for nothing, with the library's numbers in it."""

import json
import re

import numpy as np
from helpers import ROOT, script

PAGE = ROOT / "speculative" / "pages" / "explore.html"


def test_it_is_small_and_asks_for_nothing():
    page = PAGE.read_text(encoding="utf-8")
    assert len(page.encode()) <= 60_000
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"" in page
    assert "http" not in page.replace("http-equiv", "")


def test_its_data_are_those_of_the_library():
    """What dev/pages/explore_data.py records now is what the page has; run it where this fails."""
    explore_data = script("dev/pages/explore_data.py")
    in_page = explore_data.ELEMENT.search(PAGE.read_text(encoding="utf-8")).group()
    (text, numbers), (expected_text, expected) = map(parts, (json.loads(in_page), explore_data.data()))
    assert text == expected_text
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=2e-4)  # other BLAS libraries round otherwise


def parts(data):
    """(the text without its decimal numbers, these numbers)"""
    decimal, text = re.compile(r"-?\d+(?:\.\d+|(?:\.\d+)?e-\d+)"), json.dumps(data)
    return decimal.sub("_", text), [float(number) for number in decimal.findall(text)]
