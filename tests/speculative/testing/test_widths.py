"""Rounding or a bug: none in the library's own models, and bugs planted in trained weights are told from rounding."""

import numpy as np
import pytest

from gpt2np.model import forward
from speculative import ModelDrafter
from speculative.testing import TableModel
from speculative.testing.mistakes.models import around, not_rolled_back
from speculative.testing.widths import Recording, first_difference, unit_of, verdict, width_audit


@pytest.fixture(scope="module")
def pair(tiny_pair):
    target, draft, tokenizer = tiny_pair
    return target, draft, tokenizer.encode("Once upon a time there was a king who had three sons")


def rounded(dtype):
    """Rows change with their number by the last bits of a dtype, float32 or bfloat16."""

    def answer(self, tokens, n_last):
        rows = self.model(tokens, n_last=n_last)
        rows = rows + np.float32(2 * unit_of(rows, dtype)) * (n_last > 1) * (np.arange(rows.shape[1]) % 3 - 1)
        if dtype == "bfloat16":
            rows = (rows.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return rows.astype(np.float32)

    return answer


def positions_one_off(self, tokens, n_last):
    """The tokens of a block have positions one too high."""
    n, model = len(tokens), self.model
    positions = np.arange(n) + ((np.arange(n) >= n - n_last) if n_last > 1 else 0)
    return forward(tokens, model.params, model.hparams.n_head, n_last, positions=positions)


def blind_block(self, tokens, n_last):
    """The tokens of a block see the text, but not those of the block before them."""
    text = tokens[: len(tokens) - n_last]
    return np.concatenate([self.model([*text, x], n_last=1) for x in tokens[len(tokens) - n_last :]])


def audited(model, tokens):
    return width_audit(model, tokens, widths=(2, 4), n_places=5)


def test_the_librarys_models_are_bitwise_identical(pair):
    target, draft, tokens = pair
    for model, text in ((target, tokens), (draft, tokens), (TableModel.random(5), [0, 1, 2, 3, 4, 0, 1, 2, 3])):
        audit = audited(model, text)
        assert audit.largest == 0
        assert verdict(audit) == "bitwise identical: a row does not depend on the rows computed with it"
    assert first_difference(target, ModelDrafter(draft), tokens, 12, 3) is None


@pytest.mark.parametrize(
    ("model", "dtype", "units", "words"),
    [
        (around(rounded("float32")), "float32", (0, 12), "units of float32: rounding"),
        (around(rounded("bfloat16")), "bfloat16", (0, 12), "repeat in float32"),
        (around(positions_one_off), "float32", (10_000, np.inf),
         "NOT rounding, a bug; all rows of a block are wrong, from m = 2 on"),
        (around(blind_block), "float32", (10_000, np.inf), "NOT rounding, a bug; row 0 is right, the others not"),
        (not_rolled_back(0), "float32", (10_000, np.inf),
         "a row alone is wrong as well after a rollback: the cache"),
    ],
)  # fmt: skip
def test_planted_bugs(pair, model, dtype, units, words):
    audit = audited(model(pair[0]), pair[2])
    assert audit.dtype == dtype and words in verdict(audit), verdict(audit)
    assert units[0] < audit.units < units[1]


def test_the_first_difference_is_that_of_the_rows_that_were_used(pair):
    target, draft, tokens = pair
    found = first_difference(around(positions_one_off)(target), ModelDrafter(draft), tokens, 20, 3)
    assert found is not None and found.alone != found.drafted and min(found.margins) >= 0 and found.row > 0.01
    said = verdict(audited(target, tokens), found)
    assert "another reason" in said or "NOT rounding; something grows" in said


def test_a_recording_keeps_the_row_of_each_text():
    model = Recording(TableModel([[0.5, 0.5], [0.125, 0.875]]))
    rows = model([0, 1, 0], n_last=2)
    np.testing.assert_array_equal([model.rows[0, 1], model.rows[0, 1, 0]], rows)


def test_a_text_that_is_too_short():
    with pytest.raises(ValueError, match="expected at least 32 tokens for 24 places and 9 rows, got 5"):
        width_audit(TableModel.random(3), [0] * 5)
