"""check_batch: right loops of any style pass, each mistake of the catalogue is told from the others."""

import numpy as np
import pytest
from students import told

from speculative.testing import batches, check_batch
from speculative.testing.batches import Case, Loop, SlotModel, TableModel, largest_difference
from speculative.testing.mistakes import batches as catalogue
from speculative.testing.mistakes.batches import Batch, batch
from speculative.testing.mistakes.edits import variant
from speculative.testing.museum import EXHIBITS

LONG = "and a text that accepted more"  # this one takes several seconds
WRONG = [
    pytest.param(mistake.hint, wrong, marks=[pytest.mark.slow] if n % 2 or i > 0 or LONG in mistake.hint else [])
    for n, mistake in enumerate(catalogue.BATCHES)
    for i, wrong in enumerate(mistake.variants)
]


def changed(method, *changes):
    """The right loop with changes to a method."""
    return variant(Batch(), method, vars(catalogue), changes, None)


FIRST_COLUMN, VERDICTS = "first[i] = 0", "self.verify(drafts, rows, rng)"
ON_THE_LEFT = changed("__call__", (FIRST_COLUMN, "first[i] = width - len(new_of_text)"))
HELD_BACK = changed("__call__", (VERDICTS, f"clamped({VERDICTS}, lambda t, m: drafts[t].tokens[m])"))


def without_options(target, drafter, prompts, n_tokens, rng, K):
    """A right loop that pads on the left, takes no stop tokens and no sampling, and returns arrays without counts."""
    return [np.array(text) for text in ON_THE_LEFT(target, drafter, prompts, n_tokens, rng, K)]


RIGHT = {"without options": without_options, "catalogue": Batch(), "held back": HELD_BACK}


@pytest.mark.parametrize("name", [*RIGHT][:2] + [pytest.param("held back", marks=pytest.mark.slow)])
def test_right_loops_pass_with_a_note_if_a_text_is_held_back_by_the_other(name, capsys, request):
    if name != "catalogue":
        request.getfixturevalue("few_cases")
    assert check_batch(RIGHT[name]).startswith("check_batch: the texts are independent")
    said = capsys.readouterr().out
    assert ("passes where" in said) == (said != "") == (name == "held back")


@pytest.mark.parametrize(("hint", "wrong"), WRONG, ids=map(str, range(len(WRONG))))
def test_each_mistake_is_named_and_is_none_for_a_single_text(hint, wrong, monkeypatch, few_cases):
    loop = Loop(wrong, TableModel.random(2, seed=1), TableModel.random(2, seed=101))
    case = Case("one text", ([0, 1],), (3,), 2)
    assert largest_difference(loop.distribution(case), loop.wanted(case)) < 1e-12
    monkeypatch.setattr(batches, "check_one_text", lambda *_: None)  # which takes longer
    assert told(check_batch, wrong) == hint


def test_a_mistake_of_a_single_text_is_named_as_such():
    from_p = EXHIBITS["residual from the target"].wrong
    wrong = batch(verify=lambda self, drafts, rows, rng: [from_p(draft, p, rng) for draft, p in zip(drafts, rows)])
    assert "draw from max(0, p - q)" in told(check_batch, wrong)


def test_a_mistake_that_no_entry_has_is_placed():
    first_alone = changed("__call__", ("- first[i], 0)", "- first[i], 0) + (mask.shape[1] > 3)"))
    assert told(check_batch, first_alone).startswith("your loop goes wrong where")
    number = "u if (t, n) == (0, 0) else 1 - u if (t, n) == (1, 0) else rng.random()"
    depends = changed("verify", ("rng.random()", f"({number})"), ("for t, k in", "u = rng.random()\n    for t, k in"))
    assert "depend on each other" in told(check_batch, depends)


FIRST = "prompts of one length: prompts [[0, 1], [1, 1]], n_tokens = [2, 2], K = 1"


def endless(target, drafter, prompts, n_tokens, rng, K):
    n = len(prompts)
    while True:
        target(np.zeros((n, 1)), np.zeros((n, 1)), np.ones((n, target.n_slots + 1)))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda target, drafter, prompts, n_tokens, rng, K: None, "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [[0.5] for _ in prompts], "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: target(prompts, prompts, [[1]]), "target(tokens [B, T]"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [n_tokens.pop(), [0]], "writes to its arguments"),
        (lambda target, drafter, prompts, n_tokens, rng, K: 1 / 0, f"fails for {FIRST}: ZeroDivisionError"),
        (endless, "endless loop"),
    ],
)
def test_what_is_no_loop_gets_a_sentence(wrong, hint):
    assert hint in told(check_batch, wrong)


def test_slots_seen_rightly_are_the_table():
    table = TableModel.random(3, seed=4)
    model = SlotModel(table, 2)
    rows = model([[2, 1, 0], [0, 0, 1]], [[0, 1, 2], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]])
    assert np.array_equal(rows[0], table([2, 1, 0], 3)) and np.array_equal(rows[1, 1:], table([0, 1], 2))
    model.crop(2)
    rows = model([[1], [1]], [[2], [1]], [[1, 1, 1], [0, 1, 1]])
    assert np.array_equal(rows[0], table([2, 1, 1])) and np.array_equal(rows[1], table([0, 1]))
    rows = model([[1], [1]], [[2], [1]], [[1, 1, 1, 1], [0, 1, 0, 1]])  # a slot too many; the same as before
    assert not np.allclose(rows[0], table([2, 1, 1, 1])) and np.array_equal(rows[1], table([0, 1]))
