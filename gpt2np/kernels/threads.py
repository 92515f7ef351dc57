"""Products, attention and gelu divided among several threads, as many as pay.

NumPy releases the interpreter's lock while it computes, so other threads can compute at the same time. Handing over
work takes two signals per thread (signals.py), and costs tens of microseconds (`python main.py bench` says how many).
That is as long as a product of the bundled models for a few tokens, which therefore stays on one thread, and little
compared with one of GPT-2's own. All threads take slices of the work from one iterator, so a slow core takes fewer and
delays nobody. Each number is computed by the same call whichever thread makes it: the number of threads changes no bit.
"""

import os
import threading

from .cores import cpus, n_threads, n_threads_for_prompts
from .signals import Signal

WORTH = 1_000_000  # the cost, see `cost`, for each thread after the first
LEAST = 500_000  # the least cost of a slice
MANY = 32  # rows; from here on, a product takes its time for arithmetic, not for memory


class Lock(type(threading.RLock())):
    """A lock that pickle and copy accept: the copied object gets a lock of its own, not held."""

    def __reduce__(self):
        return Lock, ()


class Worker:
    """Another thread, waiting for work. Its signal `go` starts a job; the job's own signal says that it is done."""

    def __init__(self):
        self.go = Signal()
        self.pid = os.getpid()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        awake = False
        while True:
            self.go.wait(awake)
            work, parts, done, errors, awake = self.job
            try:
                work(parts)
            except Exception as error:  # such as a MemoryError: the waiting thread raises it
                errors.append(error)
            self.job = work = parts = errors = None
            idle.append(self)  # done here: the waiting thread may be interrupted
            done.give()


idle = []  # workers without a job
sharing = {}  # thread -> in how many threads its call of `share`, now in progress, computes


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
    try:
        sharing[threading.get_ident()] = n
        awake = sum(sharing.values()) <= len(cpus())  # else a thread that waits would keep another one from its work
        for _ in range(n - 1):
            try:
                worker, done = free_worker(), Signal()
            except RuntimeError:  # no more threads can be started: those that run do the work
                break
            worker.job = work, parts, done, errors, awake
            worker.go.give()
            jobs.append(done)
        work(parts)
        for done in jobs:
            done.wait(awake)
    finally:
        sharing.pop(threading.get_ident(), None)
    if errors:
        raise errors[0]


def cost(size, n_rows):
    """What a product of n_rows rows with `size` weights costs, as a number of weights; four rows cost what one does."""
    return size * max(4, n_rows) // 4


def worthwhile(size, n_rows):
    """The number of threads that pays for a product of n_rows rows with `size` weights, or for work of its cost."""
    return min(cost(size, n_rows) // WORTH + 1, n_threads() if n_rows < MANY else n_threads_for_prompts())


def slices(n, n_takers, cost, most=None):
    """Slices of range(n) for `share`. They get smaller, so that all threads end together.

    The whole range has this cost. Each slice but the last costs at least LEAST, unless `most` limits its length: before
    it takes the next slice, a thread waits for the interpreter's lock.
    """
    found, begin, least = [], 0, -(-n * LEAST // cost)
    while begin < n:
        step = max(least, 2 * (n - begin) // (3 * n_takers)) if n_takers > 1 else n
        end = min(n, begin + min(step, most or n))
        found.append(slice(begin, end))
        begin = end
    return found


def divide(work, n, size, n_rows, most=None):
    """Call work(iterator over slices of range(n)) in as many threads as pay; arguments as in `cost` and `slices`."""
    n_takers = worthwhile(size, n_rows)
    share(work, slices(n, n_takers, cost(size, n_rows), most), n_takers)


def in_parts(f, arrays, out, size, n_rows, most=None):
    """f(*arrays) in as many threads as pay, for an f that treats the entries of the first axes one by one.

    The result is a new array, or `out`, which may be one of the arrays; other arguments as in `divide`.
    """
    if worthwhile(size, n_rows) == 1 and n_rows < MANY:
        return f(*arrays)

    def work(parts):
        for some in parts:
            out[some] = f(*(array[some] for array in arrays))

    divide(work, len(out), size, n_rows, most)
    return out
