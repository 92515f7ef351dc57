"""The page on graders: its example runs, and prints what the page says."""

from helpers import ROOT


def test_the_example_of_the_page(capsys):
    page = (ROOT / "docs" / "graders.md").read_text(encoding="utf-8")
    exec(page.split("```python\n")[1].split("```")[0], {"__name__": "student"})
    assert capsys.readouterr().out.startswith("note: your function is exact, but gives the bonus away")
