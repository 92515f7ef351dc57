"""A product split between two threads, where that saves time.

NumPy releases the interpreter's lock while it multiplies, so a second thread can multiply at the same time. The
hand-over uses two raw locks, the cheapest way in Python, and still takes some tens of microseconds. That is as long as
a product of the bundled models, which therefore stay on one thread, but little compared with one of GPT-2's own.
Next: early_exit.py
"""

import os
import threading

import numpy as np

N_THREADS = min(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
TWO_THREADS_FROM = 1_000_000  # entries of w, times n_rows / 4; below, the hand-over costs more than it saves


class Lock(type(threading.RLock())):
    """A lock that pickle and copy accept: the copied object gets a lock of its own, not held."""

    def __reduce__(self):
        return Lock, ()


class Worker:
    """A second thread that waits for half a product. Its lock `go` starts a job; the job's own lock says it is done."""

    def __init__(self):
        self.go = threading.Lock()
        self.go.acquire()
        self.pid = os.getpid()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            self.go.acquire()
            arrays, done = self.job
            np.matmul(*arrays)
            self.job = arrays = None
            idle.append(self)  # done here, because the waiting thread may be interrupted
            done.release()


idle = []  # workers without a job: at most one, unless several threads of the program use models


def free_worker():
    while idle:
        worker = idle.pop()
        if worker.pid == os.getpid():  # a fork does not take the other threads along
            return worker
    return Worker()


def multiply(x, w, out):
    """out[...] = x @ w, in two threads where that saves time, split along w's first axis, which x may lack."""
    n_rows = x.shape[-3] * x.shape[-2]
    if w.size * max(4, n_rows) < 4 * TWO_THREADS_FROM or N_THREADS < 2:
        np.matmul(x, w, out)
        return
    worker, done = free_worker(), threading.Lock()
    half = len(w) // 2
    first, second = (x[:half], x[half:]) if x.ndim == w.ndim else (x, x)
    done.acquire()
    worker.job = (second, w[half:], out[half:]), done
    worker.go.release()
    np.matmul(first, w[:half], out[:half])
    done.acquire()
