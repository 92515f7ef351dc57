"""The grader of verifiers: right answers pass in any style, and the mistakes in wrong ones are named."""

import re
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from helpers import ROOT
from students import told, verifiers
from students.edits import edited, read_edits

import speculative
from speculative.testing import check_verifier

FOLDER = ROOT / "tests" / "shared" / "students"
ACCEPT, REST, BONUS = "rng.random() * q[x] < p[x]", "residual(p, q)", "sample_token(target_probs[-1], rng)"


def verifier(of, *changes, file="verifiers.py"):
    return edited((FOLDER / file).read_text(encoding="utf-8"), of, *changes)


def grade(answer, of="rule", **options):
    return check_verifier(answer, trees=True if of in ("tree", "recursive") else None, **options)


CASES = {"right": [], "note": [], "wrong": []}
for of, hint, changes in read_edits(FOLDER / "verifiers.txt"):
    kind = hint.partition(": ")[0] if hint.startswith(("right: ", "note: ")) else "wrong"
    # by default the first for each hint, and every third of the right ones
    is_slow = any(hint == case.values[1] for case in CASES[kind]) or (kind == "right" and len(CASES[kind]) % 3)
    marks = [pytest.mark.slow] if is_slow else []
    CASES[kind].append(pytest.param(of, hint, changes, id=f"{of}: {hint}", marks=marks))


@pytest.mark.parametrize(("of", "hint", "changes"), CASES["right"])
def test_a_right_one_passes_in_any_style(of, hint, changes, capsys):
    grade(verifier(of, *changes), of)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", verifiers.RIGHT)
def test_a_right_one_passes_for_another_seed(name, capsys):
    grade(verifiers.RIGHT[name], name, seed=1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("of", "hint", "changes"), CASES["note"])
def test_an_exact_but_slow_one_passes_with_a_note(of, hint, changes, capsys):
    grade(verifier(of, *changes), of)
    said = capsys.readouterr().out
    assert said.count("note: ") == 1 and re.match(hint.replace(" ", ".*", 1), said), said


def test_success_is_told_in_a_line(capsys):
    wanted = "the tokens of a round have the target's distribution, to 1e-12, in "
    gain = "; it accepts 102.3 % of what min(1, p / q) accepts, token by token"
    assert repr(check_verifier(speculative.block)) == f"check_verifier: {wanted}79 cases, K = 0 to 6{gain}"
    assert check_verifier(speculative.rejection) == f"check_verifier: {wanted}180 cases, 101 of them trees, K = 0 to 6"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("of", "hint", "changes"), CASES["wrong"])
def test_the_mistake_is_named(of, hint, changes):
    said = told(lambda answer: grade(answer, of), verifier(of, *changes))
    assert re.search(hint, said), said


@pytest.mark.parametrize("hint", verifiers.WRONG)
def test_what_is_no_verifier_is_named(hint):
    assert re.search(hint, told(check_verifier, verifiers.WRONG[hint]))


@pytest.mark.slow
def test_in_pytorch():
    pytest.importorskip("torch", reason="pip install torch")
    check_verifier(verifier("rule", file="torch_verifiers.py"))
    for of, hint, changes in read_edits(FOLDER / "torch_verifiers.txt"):
        answer = verifier(of, *changes, file="torch_verifiers.py")
        if hint.startswith("right: "):
            check_verifier(answer)
        else:
            said = told(check_verifier, answer)
            assert re.search(hint, said), said


def test_an_error_comes_with_its_case_and_its_line():
    with pytest.raises(AssertionError) as error:
        check_verifier(verifier("wrapped", "return v", "return np.ones((3, 2)) + np.ones((2, 2))"))
    assert type(error.value.__cause__) is ValueError
    message = str(error.value)
    assert "draft.probs of shape (1, 2), target_probs of shape (2, 2)" in message
    assert "in the line: return np.ones((3, 2)) + np.ones((2, 2))" in message


def test_the_accepted_tokens_of_a_chain_are_the_first_ones():
    last_ones = verifier(
        "wrapped", "return v", "k = len(draft.tokens); return Verdict(range(k - v.n_accepted, k), v.next_token)"
    )
    assert told(check_verifier, last_ones).endswith("you returned n_accepted = 1, nodes = (1,)")


def test_a_mistake_that_no_museum_has_is_caught_and_its_distribution_is_shown():
    """Accepts with the square root of the ratio, and draws from the right residual."""
    with pytest.raises(AssertionError) as error:
        check_verifier(verifier("rule", ACCEPT, "rng.random() < np.sqrt(p[x] / q[x])"))
    message = str(error.value)
    assert message.startswith("what you accept and what you replace by do not add up to the target")
    p, q = (
        np.array([float(n) for n in re.search(rf"{name} = \[(.*?)\]", message).group(1).split(",")])
        for name in ("target p", "draft q")
    )
    drafted = int(re.search(r"draft token (\d): accepted with probability 0", message).group(1))
    shown = float(re.search(rf"draft token {drafted}: accepted with probability ([\d.]+)", message).group(1))
    np.testing.assert_allclose(shown, np.sqrt(p[drafted] / q[drafted]), rtol=1e-4)
    got, wanted = map(float, re.search(rf"\({1 - drafted}, 0\) +got ([\d.]+), wanted ([\d.]+)", message).groups())
    first = q[1 - drafted] + q[drafted] * (1 - shown)
    np.testing.assert_allclose(got / wanted, first / p[1 - drafted], rtol=1e-4)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (verifiers.rule, None),
        (partial(verifiers.rule), None),
        (verifier("rule", ACCEPT, "True"), "^you accept every draft token"),
        (verifiers.wrapped, "^write it yourself: rejection comes"),
    ],
)
def test_the_test_cell_of_the_teachers_page(answer, message, monkeypatch):
    import speculative.testing.verifiers as module

    monkeypatch.setattr(module, "check_verifier", lambda *_: None)  # as a student may have done
    monkeypatch.syspath_prepend(ROOT / "notebooks")  # where the cell runs
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    (cell,) = re.findall(r"```python\n(from importlib import reload\n.*?)```", page, re.DOTALL)
    with pytest.raises(AssertionError, match=message) if message else nullcontext():
        exec(cell, {"my_verifier": answer})


@pytest.mark.parametrize(
    "changes",
    [
        (REST, f"np.where({REST} >= np.sort({REST})[-3:][0], {REST}, 0)"),
        (BONUS, "sample_token(np.where((p := target_probs[-1]) >= np.sort(p)[-5:][0], p, 0), rng)"),
        ("if not ", "if i < 3 and not "),
    ],
    ids=["residual cut to 3", "bonus cut to 5", "untested from 3"],
)
def test_a_cut_correction_or_bonus_is_wrong_for_every_seed(changes):
    for seed in range(1, 3):
        with pytest.raises(AssertionError):
            check_verifier(verifier("rule", *changes), seed=seed)


def test_the_line_shown_is_never_the_librarys():
    """A verdict that the library refuses, and a row that is not there."""
    for answer in (lambda draft, p, rng: speculative.Verdict(np.array([1]), 0), lambda draft, p, rng: p[9, 0]):
        with pytest.raises(AssertionError) as error:
            check_verifier(answer)
        assert "raise ValueError" not in str(error.value) and "object.__setattr__" not in str(error.value)
