"""Dividing work among as many threads as are worthwhile.

NumPy releases the interpreter's lock while it computes, so other threads can compute at the same time. Handing over
work takes tens of microseconds. That is as long as a matmul of the bundled models for a few tokens, which therefore
stays on one thread, and short compared with a matmul of GPT-2's size. All threads take slices of the work from one
iterator, so a slow core takes fewer and delays no other. Each number is computed by the same call in any thread, so
results are bitwise independent of the number of threads.
"""

import os
import threading
from queue import SimpleQueue

from .cores import n_threads

WORTH = 1_000_000  # the cost (see `cost`) that makes one more thread worthwhile
CACHED = 2**19  # weights, 2 MB: these fit in a core's cache, and a second thread pays only at ten times the cost
LEAST = 500_000  # the smallest cost of a slice
MANY = 32  # rows; from this number on, arithmetic rather than memory limits a matmul


class Worker:
    """A thread that waits for jobs. A job is a list with one entry, (work, parts, done, errors).

    Whoever pops the entry, the worker to run it or the caller to cancel it, adds the worker to `idle`.
    """

    def __init__(self):
        self.jobs, self.pid = SimpleQueue(), os.getpid()
        threading.Thread(target=self.work, daemon=True).start()

    def give(self, job):
        self.jobs.put(job)

    def work(self):
        while True:
            try:
                work, parts, done, errors = self.jobs.get().pop()
            except IndexError:  # cancelled: this worker woke up too late
                continue
            try:
                work(parts)
            except Exception as error:  # such as a MemoryError; the waiting thread raises it
                errors.append(error)
            work = parts = errors = None
            idle.append(self)  # done here, because the waiting thread may be interrupted
            done.release()


idle = []  # workers without a job


def free_worker():
    try:
        while (worker := idle.pop()).pid != os.getpid():  # a forked process lacks the other threads
            pass
        return worker
    except IndexError:
        return Worker()


def has_begun(worker, job):
    """Whether the worker has begun this job. If not, the job is cancelled, and the worker is idle again."""
    try:
        job.pop()
    except IndexError:
        return True
    idle.append(worker)
    return False


def share(work, parts, n):
    """Call work(iterator) in n threads, of which this is one; the iterator yields each part once, to one of them.

    When no part is left, it does not wait for threads that have not started, for example because their cores are busy.
    """
    parts = iter(parts)
    jobs, errors = [], []
    try:
        for _ in range(n - 1):
            done = threading.Lock()  # released when the job is done
            done.acquire()
            try:
                worker = free_worker()
            except RuntimeError:  # no more threads can be started, so the running ones do the work
                break
            job = [(work, parts, done, errors)]
            jobs.append((worker, job, done))
            worker.give(job)
        work(parts)
        for worker, job, done in jobs:
            if has_begun(worker, job):
                done.acquire()
    finally:
        for worker, job, _ in jobs:  # still there after an interruption
            has_begun(worker, job)
    if errors:
        raise errors[0]


def each(f, items):
    """[f(item) for each item], in several threads."""
    results = [None] * len(items)

    def work(indices):
        for i in indices:
            results[i] = f(items[i])

    share(work, range(len(items)), n_threads())
    return results


def cost(size, n_rows):
    """The cost, in weights, of a matmul of n_rows rows with `size` weights; up to four rows cost as much as one."""
    return size * max(4, n_rows) // 4


def worthwhile(size, n_rows):
    """The worthwhile number of threads for a matmul of n_rows rows with `size` weights, or for work of equal cost.

    Matmuls whose weights come from memory are shared even for one row. With weights in the cache, a matmul of the
    bundled models takes a few hundred microseconds at most for a draft of 64 tokens: two threads gain little, and take
    longer than one if another program needs the second core (`python main.py compare --tree 2,4,8,16,32,64`).
    """
    worth = WORTH if size > CACHED else 10 * WORTH
    return min(cost(size, n_rows) // worth + 1, n_threads(n_rows >= MANY))


def divide(work, n, size, n_rows, most=None):
    """Call work(iterator over slices of range(n)) in as many threads as pay for a matmul (see `worthwhile`).

    The slices get smaller, so that all threads end together. Before each slice, a thread waits for the
    interpreter's lock, so every slice but the last costs at least LEAST, unless `most` limits its length.
    """
    n_takers, least = worthwhile(size, n_rows), -(-n * LEAST // cost(size, n_rows))
    slices, begin = [], 0
    while begin < n:
        step = max(least, 2 * (n - begin) // (3 * n_takers)) if n_takers > 1 else n
        slices.append(slice(begin, min(n, begin + min(step, most or n))))
        begin = slices[-1].stop
    share(work, slices, n_takers)


def in_parts(f, arrays, out, size, n_rows, most=None):
    """f(*arrays) in several threads if worthwhile, for an f whose results along the first axes are independent.

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
    """f(x) in several threads if worthwhile, for an elementwise f like gelu; x may be overwritten."""
    return in_parts(f, (x,), x, 48 * x.shape[1], n_rows=len(x), most=MANY)  # an entry costs 48 multiplications
