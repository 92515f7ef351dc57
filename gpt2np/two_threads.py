"""A product divided between two threads, where that gains.

NumPy lets go of the interpreter's lock while it multiplies, so that a second thread can multiply, too. The hand-over
goes through two raw locks, the cheapest way there is in Python, and still takes some tens of microseconds: as long as a
product of the bundled models, which therefore stay on one thread, and little beside one of GPT-2's own.
Next: safetensors.py
"""

import os
import threading

import numpy as np

N_THREADS = min(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
TWO_THREADS_FROM = 1_000_000  # numbers in w, times rows over 4: below, the hand-over costs more than it saves


class Lock(type(threading.RLock())):
    """A lock that does not stand in the way of pickle and copy: the copied object gets one of its own, a free one."""

    def __reduce__(self):
        return Lock, ()


class Worker:
    """A second thread that waits for half a product. A lock passes the word, `go`; the job has one to pass it back."""

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
            idle.append(self)  # here, and not by the thread that waits: it may be interrupted
            done.release()


idle = []  # workers that have nothing to do: one, unless several threads of the program use models


def free_worker():
    while idle:
        worker = idle.pop()
        if worker.pid == os.getpid():  # a forked process has no threads but its own
            return worker
    return Worker()


def multiply(x, w, out):
    """out[...] = x @ w, in two threads where that gains; they share the first axis of w, which x may lack."""
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
