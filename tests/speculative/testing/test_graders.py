"""The graders, on what students write: right answers pass in any style, and the mistakes in wrong ones are named."""

import functools
import importlib
import signal
import threading
import time

import numpy as np
import pytest
from helpers import ROOT
from students import drafters, models, more_verifiers, samplers, tree_verifiers, verifiers

import speculative
from speculative.testing import check_drafter, check_language_model, check_sampler, check_verifier, watch

GRADERS = {
    verifiers: check_verifier,
    more_verifiers: check_verifier,
    tree_verifiers: lambda verifier: check_verifier(verifier, trees=True),
    drafters: lambda drafter: check_drafter(drafter, n_vocab=3),
    models: check_language_model,
    samplers: check_sampler,
}

SLOW = {  # seconds each, all in all some ten
    "samplers: arrays", "samplers: bonus thrown away", "samplers: cuts", "samplers: one row at a time",
    "samplers: plain", "samplers: ignores sampling", "samplers: temperature twice", "verifiers: racing",
    "tree_verifiers: by_recursion", "tree_verifiers: match",
}  # fmt: skip


def students(kind, modules=GRADERS):
    """(grader, what is handed in, words) of all that are of a kind: RIGHT, NOTES or WRONG."""
    found = []
    for module in modules:
        for name, entry in getattr(module, kind, {}).items():
            given, words = (entry, ()) if kind == "RIGHT" else entry
            label = f"{module.__name__.split('.')[1]}: {name}"
            marks = [pytest.mark.slow] if label in SLOW else []
            found.append(pytest.param(GRADERS[module], given, words, id=label, marks=marks))
    return found


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 1.5)


@pytest.mark.parametrize(("grader", "given", "words"), students("RIGHT"))
def test_right_ones_pass_with_nothing_but_notes(grader, given, words, capsys, monkeypatch):
    monkeypatch.setattr(watch, "QUIET", 60.0)  # no progress, however slow the machine is
    grader(given)
    said = capsys.readouterr()
    assert said.err == "" and (said.out == "" or said.out.startswith("note: ")), said


@pytest.mark.parametrize(("grader", "given", "words"), students("NOTES"))
def test_exact_but_slow_ones_pass_with_a_note(grader, given, words, capsys):
    grader(given)
    said = capsys.readouterr().out
    assert said.startswith("note: ") and all(word in said for word in words), said


@pytest.mark.parametrize(("grader", "given", "words"), students("WRONG"))
def test_wrong_ones_are_told_what_is_wrong(grader, given, words):
    with pytest.raises(AssertionError) as error:
        grader(given)
    first = str(error.value).splitlines()[0]
    assert all(word in first for word in words), error.value


@pytest.mark.slow
def test_in_pytorch():
    pytest.importorskip("torch", reason="pip install torch")
    module = importlib.import_module("students.torch_verifiers")
    for verifier in module.RIGHT.values():
        check_verifier(verifier)
    for name, (verifier, words) in module.WRONG.items():
        with pytest.raises(AssertionError) as error:
            check_verifier(verifier)
        first = str(error.value).splitlines()[0]
        assert all(word in first for word in words), (name, error.value)


def test_an_error_comes_with_its_case_and_its_line():
    with pytest.raises(AssertionError) as error:
        check_verifier(more_verifiers.broadcasts)
    assert type(error.value.__cause__) is ValueError
    message = str(error.value)
    assert "draft.probs of shape (1, 2), target_probs of shape (2, 2)" in message
    assert "in the line: return np.ones((3, 2)) + np.ones((2, 2))" in message


def test_long_checks_report_progress_on_stderr(monkeypatch, capsys):
    check_drafter(drafters.Drafter())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(watch, "QUIET", 0.0)
    check_sampler(samplers.Sampler)
    assert "check_sampler: 25 of 25 cases\n" in capsys.readouterr().err


def test_a_failure_leaves_numpy_as_it_was():
    before = np.random.default_rng
    with pytest.raises(AssertionError):
        check_verifier(lambda *_: None)
    assert np.random.default_rng is before


def proposed_cell(page):
    """The test cell that the teachers' page proposes."""
    return page.split("This is a test cell:\n\n```python\n")[1].split("```")[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (verifiers.plain, None),
        (functools.partial(verifiers.plain), None),
        (verifiers.WRONG["accepts all"][0], "you accept every draft token"),
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


@pytest.mark.parametrize("main_thread", [True, False])
def test_an_endless_call_ends_in_every_thread(main_thread):
    """Outside of the main thread there are no signals, and on Windows there is no SIGALRM."""
    told = []

    def hand_in(call):
        try:
            told.append(watch.asked(call, "your verifier", lambda: "here"))
        except AssertionError as error:
            told.append(str(error).splitlines()[0])

    def endless():
        while True:
            pass

    for call in (lambda: 1, endless, lambda: 2):
        thread = threading.Thread(target=hand_in, args=(call,))
        hand_in(call) if main_thread else (thread.start(), thread.join(30))
    assert told[0] == 1 and told[2] == 2 and "does not return: an endless loop?" in told[1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_a_grader_leaves_the_callers_alarm_on(monkeypatch):
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 100, 7)
        watch.asked(lambda: 1, "your code", str)
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 90 < left <= 100 and interval == 7 and not rung
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        watch.asked(lambda: time.sleep(0.2), "your code", str)  # it rings when the call is over
        time.sleep(0.05)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
