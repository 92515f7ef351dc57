"""Work divided among as many threads as pay.

NumPy releases the interpreter's lock while it computes, so other threads can compute at the same time. Handing over
work takes tens of microseconds (`python main.py bench` says how many): as long as a product of the bundled models for a
few tokens, which therefore stays on one thread, and little compared with one of GPT-2's own. All threads take slices of
the work from one iterator, so a slow core takes fewer and delays no other. Each number is computed by the same call
in whichever thread: the number of threads changes no bit.
"""

import os
import threading
from contextlib import suppress

import numpy as np

from .cores import cpus, n_threads

WORTH = 1_000_000  # the cost, see `cost`, for each thread after the first
CACHED = 2**19  # weights, 2 MB: that many stay in a core's cache, and another thread pays only at ten times the cost
LEAST = 500_000  # the least cost of a slice
MANY = 32  # rows; from here on, arithmetic limits a product, not memory
N_ROWS, N_LOOKS = 80, 25_000  # rows of looks at a signal, and looks in a row: together about a millisecond


class Signal:
    """One thread gives it and another waits for it, awake for a moment, then asleep. Two in a row may be seen as one.

    Waking a thread takes some ten microseconds, on a virtual machine often more than a hundred, and a product only a
    few hundred. So `wait` first looks many times whether the signal was given. A loop in Python would hold the
    interpreter's lock, which the other thread needs. NumPy's loops release it, and `logical_or.reduce` ends at the
    first True: over one byte that is repeated many times, without a copy, it waits until another thread sets this byte.

        >>> byte = np.zeros(1, bool)
        >>> looks = np.broadcast_to(byte, 1000)  # one byte, seen a thousand times
        >>> byte[0] = True
        >>> bool(np.logical_or.reduce(looks))  # after the first look
        True

    The signalling thread holds the interpreter's lock for a moment after it has set the byte. A waiter that asked for
    it at once would be put to sleep. So the waiter first pauses for 10 to 20 microseconds: it reads one more row, of a
    byte that is never set.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()
        self.given = np.zeros(N_ROWS + 1, bool)  # the last byte is never set
        self.looks = np.ndarray((N_ROWS + 1, N_LOOKS), bool, self.given, strides=(1, 0))

    def give(self):
        self.given[:-1] = True
        with suppress(RuntimeError):  # given before, and not seen yet
            self.lock.release()

    def wait(self, awake):
        """Wait for the signal, at first `awake`, which costs a core's time; it can be given again after that."""
        if awake and not self.given[0]:
            np.logical_or.reduce(self.looks, axis=1)
        self.lock.acquire()
        self.given[:] = False


class Worker:
    """Another thread, waiting for work. Its signal `go` starts a job; the job's own signal says that it is done.

    `job` has at most one job. Whoever pops it, the worker to run or the caller to cancel it, adds the worker to `idle`.
    """

    def __init__(self):
        self.go, self.job = Signal(), []
        self.pid = os.getpid()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        awake = False
        while True:
            self.go.wait(awake)
            try:
                work, parts, done, errors, awake = self.job.pop()
            except IndexError:  # cancelled: this worker woke too late, so its core is probably busy
                awake = False  # sleep at once next time
                continue
            try:
                work(parts)
            except Exception as error:  # such as a MemoryError: the waiting thread raises it
                errors.append(error)
            work = parts = errors = None
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


def has_begun(worker, job):
    """Whether the worker has begun this job; if not, it never will, and is idle again."""
    try:
        job.pop()
    except IndexError:
        return True
    idle.append(worker)
    return False


def share(work, parts, n):
    """Call work(iterator) in n threads, of which this is one; the iterator yields each part once, to one of them.

    A thread that has not begun when no part is left, such as one whose core another program has, is not waited for.
    """
    parts = iter(parts)
    jobs, errors = [], []
    try:
        sharing[threading.get_ident()] = n
        awake = sum(sharing.values()) <= len(cpus())  # else a thread that waits would keep another one from its work
        for _ in range(n - 1):
            try:
                worker, done = free_worker(), Signal()
            except RuntimeError:  # no more threads can be started: those that run do the work
                break
            job = worker.job = [(work, parts, done, errors, awake)]  # another call may soon give it another list
            jobs.append((worker, job, done))
            worker.go.give()
        work(parts)
        for worker, job, done in jobs:
            if has_begun(worker, job):
                done.wait(awake)
    finally:
        for worker, job, _ in jobs:  # after an interruption
            has_begun(worker, job)
        sharing.pop(threading.get_ident(), None)
    if errors:
        raise errors[0]


def cost(size, n_rows):
    """The cost, in weights, of a product of n_rows rows with `size` weights; four rows cost as much as one."""
    return size * max(4, n_rows) // 4


def worthwhile(size, n_rows):
    """The number of threads that pays for a product of n_rows rows with `size` weights, or for work of its cost.

    Products with weights from memory are shared from the first row on. With weights in the cache, a product of the
    bundled models takes a few hundred microseconds at most for a draft of 64 tokens: two threads gain little, and where
    another program needs the second core they take longer than one (`python dev/bench/sizes.py`).
    """
    worth = WORTH if size > CACHED else 10 * WORTH
    return min(cost(size, n_rows) // worth + 1, n_threads(n_rows >= MANY))


def divide(work, n, size, n_rows, most=None):
    """Call work(iterator over slices of range(n)) in as many threads as pay for a product, see `worthwhile`.

    The slices get smaller, so that all threads end together. Each but the last costs at least LEAST, unless `most`
    limits its length: before it takes the next slice, a thread waits for the interpreter's lock.
    """
    n_takers, least = worthwhile(size, n_rows), -(-n * LEAST // cost(size, n_rows))
    slices, begin = [], 0
    while begin < n:
        step = max(least, 2 * (n - begin) // (3 * n_takers)) if n_takers > 1 else n
        slices.append(slice(begin, min(n, begin + min(step, most or n))))
        begin = slices[-1].stop
    share(work, slices, n_takers)


def in_parts(f, arrays, out, size, n_rows, most=None):
    """f(*arrays) in as many threads as pay, for an f that treats the entries of the first axes one by one.

    The result is a new array, or `out`, which may be one of the arrays; other arguments as in `divide`.
    """
    if worthwhile(size, n_rows) == 1 and n_rows < MANY:
        return f(*arrays)

    def work(parts):
        for part in parts:
            out[part] = f(*(array[part] for array in arrays))

    divide(work, len(out), size, n_rows, most)
    return out


def by_rows(f, x):
    """f(x), in as many threads as pay, for an f like gelu that treats the entries one by one; x may be overwritten."""
    return in_parts(f, (x,), x, 48 * x.shape[1], n_rows=len(x), most=MANY)  # an entry costs as much as 48 products
