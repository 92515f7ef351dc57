"""Work divided among threads: all of it is done once, whatever happens, and never more threads than pay."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import ROOT, random_array
from systems import needs_safe_fork

from gpt2np.kernels import threads
from gpt2np.kernels.attention import triangle, weighted_sums
from gpt2np.kernels.matmul import pack
from gpt2np.layers import mlp

three = pytest.mark.parametrize("n_threads", [3], indirect=True)


@pytest.fixture
def shared(monkeypatch):
    """The number of threads of each call of `share`."""
    numbers, share = [], threads.share
    monkeypatch.setattr(threads, "share", lambda work, parts, n: numbers.append(n) or share(work, parts, n))
    return numbers


@pytest.mark.parametrize(("n_rows", "n_expected"), [(31, 2), (32, 5)])
def test_a_prompt_may_use_more_threads(monkeypatch, shared, n_rows, n_expected):
    monkeypatch.setattr(threads, "n_threads", lambda for_prompts: 5 if for_prompts else 2)
    monkeypatch.setattr(threads, "WORTH", 1)
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


@three
def test_the_number_of_threads_and_how_work_is_cut_change_no_bit(strategy, n_threads, monkeypatch, shared):
    x, matrices = random_array(30, 2100), [pack(random_array(n_in, 700, seed=1), strategy) for n_in in (300, 2100)]
    q, keys, values = random_array(5, 30, 16), random_array(5, 16, 32, seed=1), random_array(5, 32, 32, seed=2)

    def results():
        products = [(x[:n, : w.shape[0]] @ w).tobytes() for w in matrices for n in (1, 5, 30)]
        return [*products, weighted_sums(q, keys, values, triangle(32)[2:], strategy).tobytes()]

    monkeypatch.setattr(threads, "LEAST", 1)
    in_threads = results()
    assert max(shared) == 3
    monkeypatch.setattr(threads, "WORTH", 10**18)
    assert results() == in_threads


def test_each_part_is_done_once_and_an_error_in_another_thread_is_raised_here():
    done = []
    threads.share(done.extend, range(1000), 3)
    assert sorted(done) == [*range(1000)]
    met = threading.Barrier(2)

    def work(parts):
        met.wait(timeout=60)
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")

    for _ in range(3):
        with pytest.raises(MemoryError, match="no room"):
            threads.share(work, range(4), 2)


@pytest.fixture
def product(n_threads):
    """A product in three threads, and its result."""
    x, w = random_array(3, 200), pack(random_array(200, 500), "panels")
    return x, w, x @ w


@three
def test_several_threads_of_a_program_use_workers_of_their_own(product):
    x, w, _ = product
    xs = [x, x + 1, x + 2, x + 3]
    expected = [{(x @ w).tobytes()} for x in xs]
    with ThreadPoolExecutor(4) as callers:
        assert [*callers.map(lambda x: {(x @ w).tobytes() for _ in range(200)}, xs)] == expected


@needs_safe_fork
def test_a_forked_process_has_its_own_workers():
    code = """
import os, threading
from gpt2np.kernels import threads
met = threading.Barrier(2)
threads.share(lambda parts: met.wait(timeout=20), range(2), 2)  # two threads, at the same time
if os.fork() == 0:
    threads.share(lambda parts: met.wait(timeout=20), range(2), 2)
    os._exit(7)
print(os.wait()[1] >> 8)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, timeout=200)
    assert run.stdout.split() == [b"7"], run.stderr


@three
def test_an_interrupted_product_leaves_the_next_right(product, monkeypatch):
    (x, w, expected), matmul_of_numpy = product, np.matmul
    n_before, n_interrupted = threading.active_count(), 0

    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        matmul_of_numpy(*arguments)

    for _ in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(np, "matmul", interrupted)
            try:
                x @ w
            except KeyboardInterrupt:  # else the workers took all of it
                n_interrupted += 1
        assert (x @ w).tobytes() == expected.tobytes()
    assert n_interrupted > 0
    assert threading.active_count() < n_before + 10  # now and then one more, where a product was still running


@three
def test_without_another_thread_this_one_does_the_work(product, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    x, w, expected = product
    monkeypatch.setattr(threads, "idle", [])
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert (x @ w).tobytes() == expected.tobytes()
