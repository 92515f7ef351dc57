"""How a thread waits for another one: awake for a moment, then asleep.

A thread that sleeps gives up its core. To wake it takes some ten microseconds, on a virtual machine often more than a
hundred: too long between two products that take a few hundred. So `Signal.wait` first looks again and again whether
the signal was given. A loop of Python's would hold the interpreter's lock meanwhile, which the other thread needs.
NumPy's loops release it, and that of `logical_or.reduce` ends at the first True: over one byte that is repeated
many times, without a copy, it waits until another thread sets this byte.

    >>> byte = np.zeros(1, bool)
    >>> looks = np.broadcast_to(byte, 1000)  # one byte, seen a thousand times
    >>> byte[0] = True
    >>> bool(np.logical_or.reduce(looks))  # after the first look
    True

A last row of looks, at a byte that nobody sets, is a pause of ten or twenty microseconds: the other thread holds the
interpreter's lock when it gives the signal, and a thread that asked for the lock at once would fall asleep after all.
"""

import threading
from functools import lru_cache
from time import perf_counter

import numpy as np

N_ROWS, N_LOOKS = 80, 25_000  # rows of looks at the signal, and looks in a row: together about a millisecond


class Signal:
    """Given by one thread, once for each time that another one waits for it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()
        self.given = np.zeros(N_ROWS + 1, bool)  # the last byte is never set
        self.looks = np.ndarray((N_ROWS + 1, N_LOOKS), bool, self.given, strides=(1, 0))

    def give(self):
        self.given[:-1] = True
        self.lock.release()

    def wait(self, awake):
        """Wait for the signal, at first `awake`, which costs a core's time; it can be given again after that."""
        if awake and not self.given[0] and looking_ends():
            np.logical_or.reduce(self.looks, axis=1)
        self.lock.acquire()
        self.given[:] = False


@lru_cache
def looking_ends():
    """Whether the looks end with the signal, which NumPy does not promise: by the fastest of three times."""
    signal, seconds = Signal(), {False: [], True: []}
    for given in 3 * (False, True):
        signal.given[:-1] = given
        started = perf_counter()
        np.logical_or.reduce(signal.looks, axis=1)
        seconds[given].append(perf_counter() - started)
    return min(seconds[True]) < min(seconds[False]) / 2
