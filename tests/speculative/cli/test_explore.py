"""The page to play with: the file that is written, the browser, and the data in it."""

import json
import runpy

import pytest
from command import refusal, run_here
from helpers import ROOT

PAGE = ROOT / "speculative" / "pages" / "explore.html"


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The addresses that the browser was asked for; there is one."""
    addresses = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    return addresses


def test_the_page_is_written_and_opened(opened, tmp_path):
    result = run_here("explore")
    assert result.returncode == 0 and result.stdout == "explore.html is written\n"
    assert opened == [(tmp_path / "explore.html").as_uri()]
    assert (tmp_path / "explore.html").read_bytes() == PAGE.read_bytes()


def test_a_named_file_is_only_written(opened, tmp_path):
    result = run_here("explore", "--html", "a.html")
    assert result.returncode == 0 and result.stdout == "a.html is written: open it in a browser\n"
    assert opened == [] and (tmp_path / "a.html").read_bytes() == PAGE.read_bytes()


def test_without_a_browser_it_says_what_to_do(opened, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert run_here("explore").stdout == "explore.html is written: open it in a browser\n"


def test_a_file_that_cannot_be_written(opened, tmp_path):
    assert "--html: expected a name that ends in .html, got 'a.txt'" in refusal("explore", "--html", "a.txt")
    (tmp_path / "explore.html").mkdir()
    assert "--html: cannot write explore.html (it is not a regular file)" in refusal("explore")
    assert opened == []


def test_it_is_small_and_asks_for_nothing():
    page = PAGE.read_text(encoding="utf-8")
    assert len(page.encode()) <= 60_000
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"" in page
    assert "http" not in page.replace("http-equiv", "")


def test_its_data_are_those_of_the_library():
    """What dev/pages/explore_data.py records now is what the page has; run it where this fails."""
    script = runpy.run_path(str(ROOT / "dev" / "pages" / "explore_data.py"))
    in_page = json.loads(script["ELEMENT"].search(PAGE.read_text(encoding="utf-8")).group())
    compare(in_page, json.loads(json.dumps(script["data"]())))


def compare(a, b, where=""):
    """Numbers to the digits that are kept, which other BLAS libraries round otherwise; all else exactly."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        a, b = list(a.items()), list(b.items())
    if isinstance(a, list):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            compare(x, y, f"{where}[{i}]") if not isinstance(x, tuple) else compare(x[1], y[1], f"{where}.{x[0]}")
    elif isinstance(a, float):
        assert a == pytest.approx(b, abs=2e-4), where
    else:
        assert a == b, where
