"""The catalogue: every entry is wrong and named by its sentence, and no two entries of a stage decide alike."""

import itertools
import re

import pytest
from students import told

from speculative.testing import check_sampler, check_verifier, diagnosis
from speculative.testing.mistakes import samplers, verifiers
from speculative.testing.mistakes.edits import Edit, read

CHAINS = [stage for stage in diagnosis.STAGES if stage not in diagnosis.TREES_OF]
TOO_SMALL = 1e-9  # errors below are named by whatever entry has them, such as an epsilon of 1e-15


@pytest.mark.parametrize("stage", [*CHAINS, "trees"])
def test_no_two_entries_of_a_stage_have_one_distribution(stage):
    found = [(hint, wrong) for hint, wrong in diagnosis.entries(stage) if error_of(wrong, stage) > TOO_SMALL]
    for (hint, one), (other_hint, other) in itertools.combinations(found, 2):
        part = diagnosis.wrong_part(one, stage)
        if hint != other_hint and part == diagnosis.wrong_part(other, stage):
            views = (diagnosis.known(verifier, stage, part) for verifier in (one, other))
            assert diagnosis.distance(*views) > TOO_SMALL, (hint, other_hint)


def error_of(verifier, stage):
    views = (diagnosis.known(one, stage, "all") for one in (verifier, diagnosis.rejection))
    return diagnosis.distance(*views)


def test_every_entry_of_chains_is_wrong_in_a_stage():
    groups = (verifiers.WHOLE, verifiers.ACCEPT, verifiers.REST, verifiers.BONUS, verifiers.BLOCK, verifiers.SEVERAL)
    for mistake in itertools.chain(*groups):
        assert any(error_of(wrong, stage) > 1e-13 for wrong in mistake.variants for stage in CHAINS), mistake.hint


# ------------------------------------------------------------------------------------------------ edits

TINY = re.compile(r"1e-1[2-5]|\*\*-52")  # epsilons whose errors are below what graders name
EDITS = [
    pytest.param(
        mistake.options.get("said", mistake.hint),
        wrong,
        marks=[pytest.mark.slow] * (i > 0 or n % 2),
        id=f"{name}: {mistake.hint[:40]}",
    )
    for name, mistakes in verifiers.SECTIONS.items()
    for n, mistake in enumerate(mistakes)
    for i, wrong in enumerate(mistake.variants)
    if isinstance(wrong, Edit) and not TINY.search(str(wrong.changes))
]


@pytest.mark.parametrize(("hint", "wrong"), EDITS)
def test_each_edit_is_named_by_its_sentence(hint, wrong):
    assert told(check_verifier, wrong).startswith(hint)


TEXT = """
[chain] REST

the first sentence
on two lines
  residual(p, q) => {row}
  or
  Verdict(i, => Verdict(0,
  residual(p, q) => {row}
  for row in p, q
  name: its name
  why: a reason that
    goes on
  way: drawn independently
the second
  = chain
  tell: is_large
"""
PROGRAMS = {"chain": verifiers.chain}


def read_text(text, folder):
    (folder / "text.txt").write_text(text, encoding="utf-8")
    return read(folder / "text.txt", PROGRAMS, {**PROGRAMS, "is_large": lambda number: number > 1})


def test_a_text_is_read(tmp_path):
    [(name, (first, second))] = read_text(TEXT, tmp_path).items()
    assert (name, first.hint, first.name) == ("REST", "the first sentence on two lines", "its name")
    assert (first.why, first.options) == ("a reason that goes on", {"way": "drawn independently"})
    none, (p, q) = ("Verdict(i,", "Verdict(0,"), [("residual(p, q)", row) for row in "pq"]
    assert [wrong.changes for wrong in first.variants] == [[p], [none, p], [q], [none, q]]
    assert {wrong.part for wrong in first.variants} == {"rest"}
    assert second.variants == [verifiers.chain] and second.tell(2) and not second.tell(1)


@pytest.mark.parametrize("line", ["residual(p, q) -> p", "not the residual"])
def test_a_line_that_is_neither_an_edit_nor_a_field_is_refused(line, tmp_path):
    with pytest.raises(ValueError, match=r"neither an edit nor a field of an entry: '" + re.escape(line)):
        read_text(f"[chain] REST\n\nthe first\n  {line}", tmp_path)


@pytest.mark.parametrize(("old", "n"), [("residuals", 0), ("rng", 4)])
def test_the_old_code_of_a_change_occurs_once(old, n):
    with pytest.raises(ValueError, match=f"chain: '{old}' occurs {n} times in its code"):
        _ = Edit(verifiers.chain, [(old, "p")], {}).source


# ------------------------------------------------------------------------------------------------ loops

LOOPS = [(mistake.hint, wrong) for mistake in [*samplers.SAMPLING, *samplers.LOOPS] for wrong in mistake.variants]


@pytest.mark.parametrize(("hint", "wrong"), [
    pytest.param(*one, id=str(i), marks=[pytest.mark.slow] if i != 3 else []) for i, one in enumerate(LOOPS)
])  # fmt: skip
def test_each_loop_is_named_by_its_grader(hint, wrong):
    """By default one that no student has in tests/shared/students."""
    assert told(check_sampler, wrong) == hint
