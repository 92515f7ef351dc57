"""What a guess and a check cost here: measured on the models themselves, at a given length of the text.

Next: ../main.py
"""

from statistics import median
from time import perf_counter


def measure_costs(target, draft, tokens, most_rows=9, repeats=9):
    """(seconds of a target call for one token, c, v): what `theory.speedup` takes.

    The calls are made in turn, once for each number of rows, and that `repeats` times; medians are taken. So a machine
    that slows down slows all of them.

    Parameters
    ----------
    target, draft : LanguageModel
        With a cache: a call with a known prefix costs its new tokens.
    tokens : sequence of int
        A text of at least most_rows + 1 tokens.
    most_rows : int
        v is measured for 1 .. most_rows new tokens.

    Returns
    -------
    float, float, tuple of float
    """
    tokens = list(tokens)
    prefix, following = tokens[:-most_rows], tokens[-most_rows:]
    times = {n: [] for n in range(most_rows + 1)}  # 0: the draft
    for _ in range(repeats + 1):
        for n in range(1, most_rows + 1):
            target(prefix)
            times[n].append(timed(target, prefix + following[:n], n))
        draft(prefix)
        times[0].append(timed(draft, prefix + following[:1], 1))
    seconds = {n: median(some[1:]) for n, some in times.items()}  # the first of each is to warm up
    return seconds[1], seconds[0] / seconds[1], tuple(seconds[n] / seconds[1] for n in range(1, most_rows + 1))


def timed(model, tokens, n_last):
    started = perf_counter()
    model(tokens, n_last=n_last)
    return perf_counter() - started
