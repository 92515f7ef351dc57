"""`tokenizer_table`: drafts with other tokenizers, in both ways."""

import pytest
from command import report_of, words

import gpt2np
from speculative.cli.commands.tokenizer_table import OTHER, of_merges, table, vocabularies


def test_every_vocabulary_has_a_row(quick):
    """Of the smaller bundled model, so that the draft model at the end is the target: all it drafts is accepted."""
    sizes = ("--n_prompts=2", "--n_tokens_to_generate=8", "--temperatures=0,0.5")
    report = report_of("tokenizer_table", "--target_model_size=tiny-draft", "--draft_model_size=tiny-draft", *sizes)
    first, *others, last = report["rows"]
    assert (first["shared"], first["of_uses"], first["draft"]) == (2048, 1, "the target's")
    for row in others:
        assert row["shared"] <= row["n_vocab"] and row["bytes"] < first["bytes"]
    assert [row["n_vocab"] for row in others] == [1152, 704, 1024, 640, 257]
    assert last["draft"] == "tiny-draft" and last["calls"]["temperature 0, shared"] == 4
    for row in report["rows"]:
        assert row["calls"].keys() == {f"temperature {t}, {way}" for t in ("0", "0.5") for way in ("shared", "text")}


def test_the_page_by_hand():
    calls = {"temperature 0, shared": 1.25, "temperature 0, text": 1.5}
    row = {"draft": "some", "n_vocab": 7, "bytes": 2.5, "shared": 5, "of_uses": 0.625, "calls": calls}
    report = {"target": {"name": "t"}, "machine": "any", "K": 4, "n_prompts": 2, "n_tokens": 8, "n_max": 3}
    page = words(table({**report, "rows": [row]}))
    assert "some 7 2.50 5 62% 1.25 1.50" in page and "draft tokens bytes each shared of its uses shared text" in page
    assert "target t; K = 4; 2 texts of 8 tokens" in page and "temperature 0" in page


@pytest.mark.parametrize("text", ["Once upon a time\n\n", "def f(x):  # é 😀", "".join(map(chr, range(300)))])
def test_every_vocabulary_writes_every_text(text):
    for tokenizer in vocabularies(gpt2np.load("tiny-target")[1]).values():
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_other_merges_are_few_and_others():
    assert OTHER.stat().st_size < 6000
    tokenizer = gpt2np.load("tiny-target")[1]
    assert of_merges([*tokenizer.ranks]).vocabulary == tokenizer.vocabulary
