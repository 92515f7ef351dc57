"""How many threads a product may use: the cores that are worth it, four at most except for prompts, or GPT2NP_THREADS.

A pass over a few tokens waits for its weights, and four threads keep a laptop's memory busy. A prompt uses each weight
many times and waits for arithmetic, so it gets up to sixteen. Only physical cores count (two threads of one core
share its arithmetic), of the fast kind where a processor has two kinds, and no more than this process may use: a
container often gets a share of the processor's time, that is, fewer cores than it sees. GPT2NP_THREADS=8 in the
environment overrides this, for a server with more memory bandwidth, or to leave cores to others.
"""

import math
import os
import re
from functools import lru_cache
from pathlib import Path

MOST, MOST_FOR_PROMPTS = 4, 16
SYSTEM = Path("/sys")  # where Linux describes processors and limits; other systems do not have it


@lru_cache
def n_threads():
    """The number of threads for a product of a few rows; ValueError if GPT2NP_THREADS is not a number of threads."""
    return usable(MOST)


@lru_cache
def n_threads_for_prompts():
    """The number of threads for a product of many rows; errors as in `n_threads`."""
    return usable(MOST_FOR_PROMPTS)


def usable(most):
    """GPT2NP_THREADS, or the number of fast cores within the quota, at most `most`."""
    if not (text := os.environ.get("GPT2NP_THREADS")):
        return max(1, math.ceil(min(most, fast_cores(), quota())))
    if not (text.isdecimal() and len(text) < 5 and 1 <= int(text) <= 1024):
        raise ValueError(f"GPT2NP_THREADS: expected a number of threads from 1 to 1024, got {text!r:.40}")
    return int(text)


def fast_cores():
    """The number of physical cores that this process may run on, without those made to save energy."""
    folder = SYSTEM / "devices" / "system" / "cpu"
    capacity = {cpu: read(folder / f"cpu{cpu}" / "cpu_capacity").strip() for cpu in cpus()}  # ARM: 1024 for the fastest
    speed = {cpu: int(capacity[cpu]) if capacity[cpu].isdecimal() else 1 for cpu in capacity}
    fast = {cpu for cpu in speed if speed[cpu] >= max(speed.values()) / 2}
    if performance := numbers(read(SYSTEM / "devices" / "cpu_core" / "cpus")) & fast:  # Intel, with two kinds of cores
        fast = performance
    return len({read(folder / f"cpu{cpu}" / "topology" / "thread_siblings_list") or cpu for cpu in fast})


def cpus():
    """The processors that this process may run on, as the system numbers them."""
    try:
        return os.sched_getaffinity(0)
    except (AttributeError, OSError):  # as on other systems
        return range(os.cpu_count() or 1)


def quota():
    """How many cores' time this process may use (float), by the limits of its control groups and all above them."""
    limits = [math.inf]
    for line in read(Path("/proc/self/cgroup")).splitlines():
        names, _, path = line.partition(":")[2].partition(":")
        if names and "cpu" not in names.split(","):
            continue
        root = SYSTEM / "fs" / "cgroup" / ("cpu" if names else "")  # version 1 has a folder for each kind of limit
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            allowed = read(folder / "cpu.max") or read(folder / "cpu.cfs_quota_us") + read(folder / "cpu.cfs_period_us")
            microseconds = [int(word) for word in allowed.split() if word.isdecimal()]  # "max" and -1: no limit
            if len(microseconds) == 2 and microseconds[1]:
                limits.append(microseconds[0] / microseconds[1])
            if folder == root:
                break
    return min(limits)


def read(path):
    """The text of a file of the system; "" if it does not exist."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def numbers(text):
    """The numbers in a list such as "0-3,8": {0, 1, 2, 3, 8}."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {n for first, last in ranges for n in range(int(first), int(last or first) + 1)}
