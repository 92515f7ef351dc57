"""Signals between threads: none is lost, awake or asleep, and who waits lets the others run."""

import threading
import time

import numpy as np
import pytest

from gpt2np.kernels import signals, threads
from gpt2np.kernels.signals import Signal


@pytest.fixture(params=[True, False], ids=["awake", "asleep"])
def awake(request):
    return request.param


def test_a_signal_can_come_before_the_wait(awake):
    signal = Signal()
    for _ in range(100):
        signal.give()
        signal.wait(awake)
    assert not signal.given.any()
    assert not signal.lock.acquire(blocking=False)  # the next wait would wait


def test_two_threads_take_turns(awake):
    """Each signal is seen once, and so is what was written before it."""
    ping, pong, counted = Signal(), Signal(), []

    def other():
        for i in range(500):
            ping.wait(awake)
            counted.append(i)
            pong.give()

    thread = threading.Thread(target=other)
    thread.start()
    for i in range(500):
        assert len(counted) == i
        ping.give()
        pong.wait(awake)
    thread.join()
    assert counted == list(range(500))


@pytest.mark.parametrize("seconds", [0, 1e-4, 0.01])  # the last is longer than a thread stays awake
def test_a_thread_that_waits_lets_others_run(awake, seconds):
    signal, done = Signal(), []
    thread = threading.Thread(target=lambda: (signal.wait(awake), done.append(True)))
    thread.start()
    time.sleep(seconds)
    assert not done
    signal.give()
    thread.join(timeout=60)
    assert done


def test_the_looks_release_the_interpreters_lock():
    """Otherwise this thread could not set the byte before the last look, seconds later."""
    byte, started, seen = np.zeros(1, bool), threading.Event(), []

    def look():
        looks = np.broadcast_to(byte, 10**10)
        started.set()
        seen.append(np.logical_or.reduce(looks))

    thread = threading.Thread(target=look)
    thread.start()
    started.wait()
    time.sleep(0.02)
    byte[0] = True
    thread.join()
    assert seen == [True]


def test_the_looks_end_with_the_signal_in_this_numpy():
    assert signals.looking_ends()


@pytest.mark.parametrize(("n_cpus", "others"), [(1, {}), (2, {}), (8, {}), (8, {-1: 3, -2: 3}), (8, {-1: 3, -2: 4})])
def test_more_threads_than_processors_wait_asleep(monkeypatch, n_cpus, others):
    """Counting those of other calls at the same time."""
    waits = []

    class Recorded(Signal):
        def wait(self, awake):
            waits.append(awake)
            super().wait(awake)

    monkeypatch.setattr(threads, "idle", [])
    monkeypatch.setattr(threads, "Signal", Recorded)
    monkeypatch.setattr(threads, "cpus", lambda: range(n_cpus))
    monkeypatch.setattr(threads, "sharing", dict(others))
    for _ in range(3):
        threads.share(list, range(10), 2)
    n_asleep = 1 if 2 + sum(others.values()) <= n_cpus else len(waits)  # a new worker waits asleep for its first job
    assert waits.count(False) == n_asleep and len(waits) >= 6
    with pytest.raises(ZeroDivisionError):
        threads.share(lambda parts: 1 // 0, range(10), 2)
    assert threads.sharing == others


def test_where_the_looks_would_not_end_a_thread_waits_asleep(monkeypatch):
    signal = Signal()
    monkeypatch.setattr(signals, "looking_ends", lambda: False)
    monkeypatch.setattr(signals, "np", None)  # a look would fail
    threading.Timer(0.01, signal.give).start()
    signal.wait(awake=True)
    assert not signal.given.any()
