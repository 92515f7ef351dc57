"""The number of threads for a matmul: one for each useful core, at most four except for prompts.

A pass over a few tokens waits for its weights, and four threads keep a laptop's memory busy. A prompt uses each weight
many times and waits for arithmetic, so it gets up to sixteen. Only physical cores count, because two threads of one
core share its arithmetic units. Where a processor has two kinds of cores, only the fast ones count. A container often
gets only a share of the processor's time, which is also a limit. The environment variable GPT2NP_THREADS
overrides all this, for example with GPT2NP_THREADS=8.
"""

import math
import os
import re
from functools import lru_cache
from pathlib import Path

MOST, MOST_FOR_PROMPTS = 4, 16
SYSTEM = Path("/sys")  # Linux describes processors and limits here; other systems have no such folder


@lru_cache
def n_threads(for_prompts=False):
    """GPT2NP_THREADS, or the number of fast cores within the quota, at most MOST or MOST_FOR_PROMPTS."""
    if not (text := os.environ.get("GPT2NP_THREADS")):
        return max(1, math.ceil(min(MOST_FOR_PROMPTS if for_prompts else MOST, fast_cores(), quota())))
    if not (text.isdecimal() and len(text) < 5 and 1 <= int(text) <= 1024):
        raise ValueError(f"GPT2NP_THREADS: expected a number of threads from 1 to 1024, got {text!r:.40}")
    return int(text)


def cpus():
    """The processors that this process may run on, as the system numbers them."""
    try:
        return os.sched_getaffinity(0)
    except (AttributeError, OSError):  # on other systems
        return range(os.cpu_count() or 1)


def fast_cores():
    """The number of physical cores that this process may run on, without those made to save energy."""
    folder = SYSTEM / "devices" / "system" / "cpu"
    speed = {cpu: max(numbers(read(folder / f"cpu{cpu}" / "cpu_capacity")), default=1) for cpu in cpus()}  # on ARM
    fast = {cpu for cpu in speed if speed[cpu] >= max(speed.values()) / 2}
    fast = numbers(read(SYSTEM / "devices" / "cpu_core" / "cpus")) & fast or fast  # on Intel
    return len({read(folder / f"cpu{cpu}" / "topology" / "thread_siblings_list") or cpu for cpu in fast})


def quota():
    """The number of cores (float) that this process may use, by the limits of its control groups."""
    group = re.search(r"^0::/(.+)", read(Path("/proc/self/cgroup")), re.M)
    names, limits = group[1].split("/") if group else [], [math.inf]
    for n in range(len(names) + 1):
        folder = SYSTEM.joinpath("fs", "cgroup", *names[:n])
        if allowed := re.match(r"(\d+) ([1-9]\d*)", read(folder / "cpu.max")):  # microseconds; "max": no limit
            limits.append(int(allowed[1]) / int(allowed[2]))
    return min(limits)


def read(path):
    """The text of a system file; "" if it does not exist."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def numbers(text):
    """The numbers in a list such as "0-3,8": {0, 1, 2, 3, 8}."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {n for first, last in ranges for n in range(int(first), int(last or first) + 1)}
