"""Rounds and generations in a notebook, and the text of a page, which no text of a token can turn into markup."""

import html
import json
import re

from speculative.trace import Trace, notebook, page, show_tokens_as

NASTY = "</script><script>document.title = 'bad'</script><b>&amp;\u2028\n\""


def test_a_small_number_has_two_digits():
    shown = [notebook.number(value) for value in (None, 0, 0.0, 0.5, 0.0006, 0.00012, -3e-9, 1)]
    assert shown == ["", "0.000", "0.000", "0.500", "0.001", "1.2e-04", "-3.0e-09", "1.000"]


def test_the_notebook_shows_rounds_and_generations(generated):
    generation = generated()
    try:
        show_tokens_as(lambda tokens: NASTY if tokens == [4] else "".join(f" w{token}" for token in tokens))
        shown = generation._repr_html_()
        assert f"30 tokens in {len(generation.rounds)} target calls" in shown and "<script" not in shown
        assert shown.count(">|</span>") == len(generation.rounds) and "&lt;/script&gt;" in shown
        rows = re.findall("<tr>.*?</tr>", generation.rounds[0]._repr_html_(), re.S)
        assert len(rows) == len(generation.rounds[0].drafted) + 2 and "<th>q</th>" in rows[0]
        assert f"{generation.rounds[0].uniforms[0]:.3f}" in rows[1]
    finally:
        show_tokens_as(notebook.as_ids)
    assert " 3 1" in generation._repr_html_()


def test_a_tree_is_indented_and_every_branch_whole(of_trees):
    rows = re.findall("<tr>.*?</tr>", notebook.round_html(of_trees().rounds[0]), re.S)[1:-1]
    assert [row.count("&nbsp;") // 4 for row in rows] == [0, 1, 1, 2, 0, 1]


def test_no_text_becomes_markup_in_the_page(generated):
    made = page(Trace.of(generated(), lambda tokens: NASTY, {"target": {"name": NASTY}, "draft": {"name": NASTY}}))
    assert len(re.findall("<script", made)) == len(re.findall("</script", made)) == 2  # the data, and the program
    data = re.search(r'<script type="application/json" id="trace">(.*?)</script>', made, re.S).group(1)
    assert json.loads(data)["about"]["target"]["name"] == NASTY and not set("<>&") & set(data)
    assert html.escape(NASTY) in made and "http" not in made.replace("http-equiv", "")
