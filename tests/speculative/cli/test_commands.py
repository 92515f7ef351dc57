"""museum and explore: what they find. Their pages are in pages/."""

import sys

import pytest
from command import refusal, run_here
from helpers import ROOT

from speculative.cli.commands import museum
from speculative.testing.museum import EXHIBITS, TREE_EXHIBITS


def test_the_mistakes_about_a_word_are_in_a_section_of_their_own():
    assert not any(museum.has(one, "of trees") for one in EXHIBITS.values() if "of trees" not in one.what)
    assert all(museum.has(one, "OF TREES") for one in TREE_EXHIBITS.values())


@pytest.mark.parametrize("answer", ["", "n", "y", None, EOFError])
def test_the_page_is_written_and_opened_and_a_file_of_ones_own_stays_unless_one_says_so(answer, tmp_path, monkeypatch):
    def asked(question):
        if answer is EOFError:
            raise EOFError
        return answer

    addresses, page, made = [], ROOT / "speculative" / "pages" / "explore.html", tmp_path / "explore.html"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", addresses.append)  # and returns that it did not
    monkeypatch.setattr(sys.stdin, "isatty", lambda: answer is not None, raising=False)
    monkeypatch.setattr("builtins.input", asked)
    for name, words in (("explore.html", []), ("explore.html", []), ("a.html", ["--html=a.html"])):
        assert run_here("explore", *words).stdout == f"{name} is written: open it in a browser\n"
        assert (tmp_path / name).read_bytes() == page.read_bytes()
    made.write_text("precious")
    if answer == "y":
        assert run_here("explore").returncode == 0 and made.read_bytes() == page.read_bytes()
    else:
        assert refusal("explore").startswith("explore.html is a different file, and stays as it is: name one with")
        assert made.read_text("utf-8") == "precious"
    assert addresses == [made.as_uri()] * (3 if answer == "y" else 2)
