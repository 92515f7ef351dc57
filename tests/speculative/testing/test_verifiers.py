"""The grader of verifiers: right answers pass in any style, and the mistakes in wrong ones are named."""

import functools
import importlib
import re

import numpy as np
import pytest
from helpers import ROOT
from students import answers, told, tree_verifiers, verifiers, wrong_verifiers

import speculative
from speculative.testing import check_verifier

FEW = ("plain", "vectorised_cumprod", "in_logs", "with_cumsum_and_argmax", "with_numpy_integers", "block", "a class")


def check_tree_verifier(verifier):
    check_verifier(verifier, trees=True)


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", verifiers, quick=FEW))
def test_right_ones_pass_in_any_style(answer, words, capsys):
    check_verifier(answer)
    assert capsys.readouterr().out.replace("note: ", "", 1).count("note: ") == 0
    check_verifier(answer, seed=1)


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", tree_verifiers, quick=("ten_lines", "by_parents")))
def test_right_ones_pass_on_trees(answer, words, capsys):
    check_tree_verifier(answer)
    said = capsys.readouterr().out
    assert said == "" or (answer is tree_verifiers.match and "accepts less than it could" in said), said


@pytest.mark.parametrize(("answer", "words"), answers("NOTES", verifiers))
def test_exact_but_slow_ones_pass_with_a_note(answer, words, capsys):
    check_verifier(answer)
    said = capsys.readouterr().out
    assert said.startswith("note: ") and all(word in said for word in words), said


def test_success_is_told_in_a_line(capsys):
    wanted = "the tokens of a round have the target's distribution, to 1e-12, in "
    assert repr(check_verifier(speculative.block)) == f"check_verifier: {wanted}18 cases, K = 0 to 4"
    assert check_verifier(speculative.rejection) == f"check_verifier: {wanted}34 cases, 16 of them trees, K = 0 to 4"
    assert capsys.readouterr().out == ""


def test_siblings_that_are_never_accepted_are_a_note(capsys):
    check_tree_verifier(tree_verifiers.first_child)
    assert "accepts the first child of a node or none" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", wrong_verifiers))
def test_the_mistake_is_named(answer, words):
    said = told(check_verifier, answer)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", tree_verifiers))
def test_the_mistake_in_a_tree_is_named(answer, words):
    said = told(check_tree_verifier, answer)
    assert all(word in said for word in words), said


@pytest.mark.slow
def test_in_pytorch():
    pytest.importorskip("torch", reason="pip install torch")
    module = importlib.import_module("students.torch_verifiers")
    for verifier in module.RIGHT.values():
        check_verifier(verifier)
    for verifier, words in module.WRONG.values():
        said = told(check_verifier, verifier)
        assert all(word in said for word in words), said


def test_an_error_comes_with_its_case_and_its_line():
    with pytest.raises(AssertionError) as error:
        check_verifier(wrong_verifiers.WRONG["broadcasts"][0])
    assert type(error.value.__cause__) is ValueError
    message = str(error.value)
    assert "draft.probs of shape (1, 2), target_probs of shape (2, 2)" in message
    assert "in the line: return np.ones((3, 2)) + np.ones((2, 2))" in message


def test_the_accepted_tokens_of_a_chain_are_the_first_ones():
    def last_ones(draft, target_probs, rng):
        verdict = speculative.rejection(draft, target_probs, rng)
        first = len(draft.tokens) - verdict.n_accepted
        return speculative.Verdict(range(first, len(draft.tokens)), verdict.next_token)

    assert told(check_verifier, last_ones).endswith("you returned n_accepted = 1, nodes = (1,)")


def test_a_mistake_that_no_museum_has_is_caught_and_its_distribution_is_shown():
    """Accepts with the square root of the ratio, and draws from the right residual."""
    with pytest.raises(AssertionError) as error:
        check_verifier(wrong_verifiers.WRONG["square root"][0])
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


def proposed_cell(page):
    """The test cell that the teachers' page proposes."""
    return page.split("This is a test cell:\n\n```python\n")[1].split("```")[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (verifiers.plain, None),
        (functools.partial(verifiers.plain), None),
        (wrong_verifiers.WRONG["accepts all"][0], "you accept every draft token"),
        (lambda draft, rows, rng: speculative.rejection(draft, rows, rng), "write the rule yourself: {'rejection'}"),
    ],
)
def test_the_test_cell_of_the_teachers_page(answer, message, monkeypatch):
    import speculative.testing.verifiers as module

    monkeypatch.setattr(module, "check_verifier", lambda *_: None)  # as a student may have done
    cell = proposed_cell((ROOT / "notebooks" / "README.md").read_text(encoding="utf-8"))
    if message is None:
        exec(cell, {"my_verifier": answer})
    else:
        with pytest.raises(AssertionError) as error:
            exec(cell, {"my_verifier": answer})
        assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["residual cut to 2", "residual cut to 3", "bonus cut to 5", "untested from 3"])
def test_a_cut_correction_or_bonus_is_wrong_for_every_seed(name):
    for seed in range(8):
        with pytest.raises(AssertionError):
            check_verifier(wrong_verifiers.WRONG[name][0], seed=seed)


def test_the_line_shown_is_never_the_librarys():
    """A verdict that the library refuses, and a row that is not there."""
    for verifier in (lambda draft, p, rng: speculative.Verdict(np.array([1]), 0), lambda draft, p, rng: p[9, 0]):
        with pytest.raises(AssertionError) as error:
            check_verifier(verifier)
        assert "raise ValueError" not in str(error.value) and "object.__setattr__" not in str(error.value)
