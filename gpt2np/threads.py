"""A product divided among several threads, as many as pay.

NumPy releases the interpreter's lock while it multiplies, so other threads can multiply at the same time. To hand work
over takes two raw locks a thread, the cheapest way in Python, and still some tens of microseconds. That is as long as a
whole product of the bundled models, which therefore stay on one thread, and little compared with one of GPT-2's own.
All threads take slices of a product from one iterator, so a slow core takes fewer of them and holds nobody up. Each
number is computed by the same call whoever makes it: the number of threads changes no bit.
Next: cores.py
"""

import os
import threading

import numpy as np

from .cores import n_threads

WORTH = 1_000_000  # the cost, see `cost`, for each thread after the first
LEAST = 500_000  # the cost of a slice


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


def cost(size, n_rows):
    """What a product of n_rows rows with `size` weights costs, as a number of weights; four rows cost what one does."""
    return size * max(4, n_rows) // 4


def worthwhile(cost):
    """The number of threads that pays for work of this cost."""
    return min(cost // WORTH + 1, n_threads()) if cost >= WORTH else 1


def slices(n, n_takers, cost, most=None):
    """Slices of range(n), of this cost, for `share`: large ones first, so that all threads end at about one time.

    A slice costs LEAST or more: before it takes the next, a thread waits for the interpreter's lock. `most` limits its
    length.
    """
    found, begin, least = [], 0, -(-n * LEAST // cost)
    while begin < n:
        step = max(least, (n - begin) // (2 * n_takers)) if n_takers > 1 else n
        end = min(n, begin + min(step, most or n))
        found.append(slice(begin, end))
        begin = end
    return found


def in_parts(f, arrays, cost):
    """f(*arrays) in as many threads as pay, for an f that treats the entries of the first axes one by one."""
    n, found = worthwhile(cost), {}
    if n == 1:
        return f(*arrays)

    def work(parts):
        for some in parts:
            found[some.start] = f(*(array[some] for array in arrays))

    share(work, slices(len(arrays[0]), n, cost), n)
    return np.concatenate([found[begin] for begin in sorted(found)])
