"""Work divided among threads: all of it is done once, whatever happens."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from helpers import ROOT, random_array
from systems import needs_safe_fork

from gpt2np.kernels import threads
from gpt2np.kernels.attention import weighted_sums
from gpt2np.kernels.matmul import pack
from gpt2np.layers import mlp


@pytest.mark.parametrize(("n_rows", "n_expected"), [(31, 2), (32, 5)])
def test_a_prompt_may_use_more_threads(monkeypatch, n_rows, n_expected):
    monkeypatch.setattr(threads, "n_threads", lambda for_prompts: 5 if for_prompts else 2)
    monkeypatch.setattr(threads, "WORTH", 1)
    shared = []
    monkeypatch.setattr(threads, "share", lambda work, parts, n: shared.append(n) or work(iter(parts)))
    x, q, keys = random_array(n_rows, 100), random_array(2, n_rows, 16), random_array(2, 16, 32)
    x @ pack(random_array(100, 700), "panels")
    weighted_sums(q, keys, random_array(2, 32, 32), np.zeros((n_rows, 32), np.float32), "panels")
    shapes = (100, 400), (400, 100)
    mlp(x, *({"w": pack(random_array(*shape), "panels"), "b": random_array(shape[1])} for shape in shapes))
    assert shared == [n_expected] * 5


def test_products_of_a_small_model_stay_on_one_thread(monkeypatch):
    """Two threads gain nothing there, and lose if another program needs the second core. Large matrices are shared."""
    monkeypatch.setattr(threads, "n_threads", lambda for_prompts: 4)
    small, large = (128 * 384, 256 * 256, 256 * 1024, 256 * 2048), (768 * 2304, 1024 * 1024, 1024 * 4096)
    assert {threads.worthwhile(size, n_rows) for size in small for n_rows in range(1, 66)} == {1}
    assert min(threads.worthwhile(size, 1) for size in large) == 2
    assert threads.worthwhile(256 * 1024, 512) == threads.worthwhile(1024 * 4096, 1) == 4  # a prompt


def test_a_slow_thread_takes_fewer_parts():
    """The others go on without it."""
    taken, others = {}, threading.Event()

    def work(parts):
        for part in parts:
            taken.setdefault(threading.current_thread(), []).append(part)
            if threading.current_thread() is threading.main_thread():
                others.wait(timeout=60)
            elif part == 99:
                others.set()

    threads.share(work, range(100), 3)
    assert sorted(part for parts in taken.values() for part in parts) == list(range(100))
    assert len(taken.get(threading.main_thread(), [])) <= 1


def test_an_error_in_another_thread_is_raised_here():
    met = threading.Barrier(2)

    def work(parts):
        met.wait(timeout=60)
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")

    for _ in range(3):
        with pytest.raises(MemoryError, match="no room"):
            threads.share(work, range(4), 2)


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_several_threads_of_a_program(n_threads):
    """Each uses workers of its own."""
    xs, w, wrong = [random_array(3, 200, seed=seed) for seed in range(4)], pack(random_array(200, 500), "rows"), []
    expected = [x @ w for x in xs]

    def run(x, result):
        wrong.extend(1 for _ in range(200) if (x @ w).tobytes() != result.tobytes())

    callers = [threading.Thread(target=run, args=pair) for pair in zip(xs, expected)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == [] and 2 <= len(threads.idle) <= 8


@needs_safe_fork
def test_a_forked_process_has_its_own_workers():
    code = """
import os, numpy as np
from gpt2np.kernels import matmul, threads
threads.WORTH, threads.n_threads = 1, lambda for_prompts: 3
x, w = np.ones((2, 100), np.float32), matmul.pack(np.ones((100, 200), np.float32), "rows")
x @ w
if os.fork() == 0:
    os._exit(int((x @ w).sum() == 40000))
print(os.wait()[1] >> 8)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert run.stdout.split() == [b"1"], run.stderr


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_an_interrupted_product_leaves_the_workers_to_the_next(n_threads, monkeypatch):
    x, w, matmul_of_numpy = random_array(3, 200), pack(random_array(200, 500), "panels"), np.matmul
    expected, n_before = x @ w, threading.active_count()

    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        matmul_of_numpy(*arguments)

    n_interrupted = 0
    for _ in range(20):
        monkeypatch.setattr(np, "matmul", interrupted)
        try:
            x @ w
        except KeyboardInterrupt:  # else the workers took all of it
            n_interrupted += 1
        monkeypatch.setattr(np, "matmul", matmul_of_numpy)
        assert (x @ w).tobytes() == expected.tobytes()
    assert n_interrupted > 0
    assert threading.active_count() < n_before + 10  # now and then one more, where a product was still running


def test_a_thread_that_comes_too_late_is_not_waited_for(monkeypatch):
    """It is free for the next job, which it does when it comes."""
    may_run, begun, met = threading.Event(), [], threading.Barrier(2)

    class Late(threads.Worker):
        def work(self):
            begun.append(may_run.wait(timeout=60))
            super().work()

    late = Late()
    monkeypatch.setattr(threads, "idle", [late])
    for _ in range(3):
        done = []
        threads.share(done.extend, range(10), 2)
        assert done == list(range(10)) and begun == [] and threads.idle == [late]
    may_run.set()
    for _ in range(100):
        threads.share(lambda parts: met.wait(timeout=60), range(2), 2)
    assert threads.idle == [late]


def test_an_interruption_between_two_threads_loses_none(monkeypatch):
    def interrupted(worker, job):
        give(worker, job)
        raise KeyboardInterrupt

    met, worker, give = threading.Barrier(2), threads.Worker(), threads.Worker.give
    monkeypatch.setattr(threads, "idle", [worker])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threads.Worker, "give", interrupted)
        threads.share(list, range(2), 2)
    for _ in range(5000):
        if not threads.idle:
            time.sleep(0.001)
    threads.share(lambda parts: met.wait(timeout=60), range(2), 2)
    assert threads.idle == [worker]


def test_an_interruption_while_waiting_loses_no_worker(monkeypatch):
    """The worker is in the middle of its job: it finishes, and is idle again."""
    begun, may_end, worker = threading.Event(), threading.Event(), threads.Worker()
    monkeypatch.setattr(threads, "idle", [worker])

    def work(parts):
        if threading.current_thread() is threading.main_thread():
            begun.wait(timeout=60)
            raise KeyboardInterrupt
        begun.set()
        may_end.wait(timeout=60)

    with pytest.raises(KeyboardInterrupt):
        threads.share(work, range(2), 2)
    assert threads.idle == []
    may_end.set()
    for _ in range(5000):
        if not threads.idle:
            time.sleep(0.001)
    assert threads.idle == [worker]


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_without_another_thread_this_one_does_the_work(n_threads, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    x, w = random_array(3, 200), pack(random_array(200, 500), "panels")
    expected = x @ w
    monkeypatch.setattr(threads, "idle", [])
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert (x @ w).tobytes() == expected.tobytes() and threads.idle == []
