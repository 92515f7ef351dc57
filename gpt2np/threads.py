"""A product divided among several threads, as many as pay.

NumPy releases the interpreter's lock while it multiplies, so other threads can multiply at the same time. To hand work
over takes two raw locks a thread, the cheapest way in Python, and still some tens of microseconds. That is as long as a
whole product of the bundled models, which therefore stay on one thread, and little compared with one of GPT-2's own.
All threads take slices of a few panels from one iterator, so a slow core takes fewer of them and holds nobody up. Each
number is computed by the same call whoever makes it: the number of threads changes no bit.
Next: cores.py
"""

import os
import threading

import numpy as np

from .cores import n_threads

WORTH = 1_000_000  # entries of w, times n_rows / 4, for each thread after the first


class Lock(type(threading.RLock())):
    """A lock that pickle and copy accept: the copied object gets a lock of its own, not held."""

    def __reduce__(self):
        return Lock, ()


class Worker:
    """Another thread, waiting for work. Its lock `go` starts a job; the job's own lock says that it is done."""

    def __init__(self):
        self.go = threading.Lock()
        self.go.acquire()
        self.pid = os.getpid()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            self.go.acquire()
            work, parts, done, errors = self.job
            try:
                work(parts)
            except Exception as error:  # such as a MemoryError: the waiting thread raises it
                errors.append(error)
            self.job = work = parts = errors = None
            idle.append(self)  # done here, because the waiting thread may be interrupted
            done.release()


idle = []  # workers without a job


def free_worker():
    try:
        while (worker := idle.pop()).pid != os.getpid():  # a fork does not take the other threads along
            pass
        return worker
    except IndexError:
        return Worker()


def share(work, parts, n):
    """Call work(iterator) in n threads, this one included; the iterator gives each part once, to one of them."""
    parts, jobs, errors = iter(parts), [], []
    for _ in range(n - 1):
        worker, done = free_worker(), threading.Lock()
        done.acquire()
        worker.job = work, parts, done, errors
        worker.go.release()
        jobs.append(done)
    work(parts)
    for done in jobs:
        done.acquire()
    if errors:
        raise errors[0]


def worthwhile(size, n_rows):
    """The number of threads that pays for a product of n_rows rows with `size` weights."""
    n = size * max(4, n_rows) // (4 * WORTH) + 1
    return n if n == 1 else min(n, n_threads())


def multiply(x, w, out, n_rows):
    """out[...] = x @ w for n_rows rows, in as many threads as pay, divided along w's first axis, which x may lack."""
    n = worthwhile(w.size, n_rows)
    if n == 1:
        np.matmul(x, w, out)
        return

    def work(slices):
        for some in slices:
            np.matmul(x[some] if x.ndim == w.ndim else x, w[some], out[some])

    # At least 8 panels a slice, where that leaves one for each thread: a thread waits for the interpreter's lock before
    # it takes the next slice.
    step = min(-(-len(w) // n), max(8, -(-len(w) // (4 * n))))
    share(work, [slice(i, i + step) for i in range(0, len(w), step)], n)
