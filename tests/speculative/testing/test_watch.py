"""What the graders do around the graded code: calls that hang, other threads, other sources of randomness, progress."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from students import drafters, told

from speculative import ModelDrafter
from speculative.testing import TableModel, check_drafter, check_verifier, watch
from speculative.testing.museum import EXHIBITS

DRAFTER, WRONG = drafters.RIGHT["greedy, one-hot"], EXHIBITS["residual from the target"].wrong


@pytest.mark.parametrize("main_thread", [True, False])
def test_an_endless_call_ends_in_every_thread(main_thread, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 0.3)
    said = []

    def hand_in(call):
        try:
            said.append(watch.asked(call, "your verifier", lambda: "here"))
        except AssertionError as error:
            said.append(str(error).splitlines()[0])

    def endless():
        while True:
            pass

    for call in (lambda: 1, endless, lambda: 2):
        thread = threading.Thread(target=hand_in, args=(call,))
        hand_in(call) if main_thread else (thread.start(), thread.join(30))
    assert said[0] == 1 and said[2] == 2 and "does not return: an endless loop?" in said[1]


@pytest.mark.slow
def test_graders_in_several_threads_leave_nothing_behind():
    before, together = np.random.default_rng, threading.Barrier(4)

    def grade(i):
        together.wait()
        check_drafter(ModelDrafter(TableModel.random(2 + i % 2)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(grade, range(4)))
    assert np.random.default_rng is before


def test_another_thread_that_draws_is_not_the_graded_codes_and_a_failure_leaves_numpy_as_it_was():
    before, busy = np.random.default_rng, threading.Event()

    def draws():
        while not busy.is_set():
            np.random.default_rng(1).random()

    thread = threading.Thread(target=draws)
    thread.start()
    try:
        said = told(check_verifier, WRONG)
    finally:
        busy.set()
        thread.join()
    assert said.startswith("on a rejection you drew from the target") and np.random.default_rng is before


def test_long_checks_report_progress_on_stderr(monkeypatch, capsys):
    check_drafter(DRAFTER)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(watch, "QUIET", 0.0)
    check_drafter(DRAFTER)
    assert "check_drafter: 21 of 21 cases\n" in capsys.readouterr().err


def test_graders_work_where_no_thread_can_be_started(monkeypatch):
    """As in Pyodide."""

    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(watch, "watchers", [])
    check_drafter(DRAFTER)
    assert "you drew from the target" in told(check_verifier, WRONG)
