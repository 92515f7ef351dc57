"""The page on graders: its functions get the verdicts that it shows."""

import pytest
from helpers import ROOT

PAGE = (ROOT / "docs" / "graders.md").read_text(encoding="utf-8")
EXAMPLES = [part.split("```")[0] for part in PAGE.split("```python\n")[1:] if not part.startswith(">>>")]


def test_the_output_for_the_wrong_function_is_that_of_the_page():
    with pytest.raises(AssertionError) as caught:
        exec(EXAMPLES[0], {"__name__": "student"})
    assert str(caught.value) == PAGE.split("\n```\n")[2].rstrip("\n")


def test_the_function_with_a_specification_is_right(capsys):
    exec(EXAMPLES[1], {"__name__": "student"})
    assert capsys.readouterr().out == ""
