"""The number of threads for a matmul, ours (threads.py) and the BLAS's: at most one for each useful core.

Only physical cores count, because two threads of one core share its arithmetic units. Where a processor has two kinds
of cores, only the fast ones count. A container often gets only a share of the processor's time, which is also a limit.
A BLAS does not know it: in a container with 2 of 64 cores it starts 64 threads, which wait for each other. So its
number of threads is lowered to the useful cores; a smaller one, such as OPENBLAS_NUM_THREADS=1, stays.

A pass over a few tokens waits for its weights, and four threads of ours keep a laptop's memory busy. A prompt uses each
weight many times and waits for arithmetic, so it gets up to sixteen. GPT2NP_THREADS in the environment overrides all
this, up to the number of processors.
"""

import ctypes
import math
import os
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

MOST, MOST_FOR_PROMPTS = 4, 16
SYSTEM = Path("/sys")  # Linux describes processors and limits here; other systems have no such folder
GROUPS = Path("/proc/self/cgroup")
CFS = "cpu.cfs_quota_us", "cpu.cfs_period_us"  # the files of version 1


@lru_cache
def n_threads(for_prompts=False):
    """The number of our threads: GPT2NP_THREADS, or the useful cores, at most MOST or MOST_FOR_PROMPTS."""
    return min(useful_cores(), MOST_FOR_PROMPTS if for_prompts else MOST) if not asked() else asked()


@lru_cache
def blas_threads():
    """The number of threads of NumPy's BLAS, lowered to the useful cores; 1 if the BLAS does not say."""
    for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        try:
            library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # and what it is linked with
            n_now, most = library[name.format("get")](), asked() or useful_cores()
            if n_now > most:
                library[name.format("set")](most)
            return min(n_now, most)
        except (AttributeError, OSError):  # a different BLAS or system
            pass
    return 1


def asked():
    """GPT2NP_THREADS, at most the number of processors; 0 without it."""
    if not (text := os.environ.get("GPT2NP_THREADS")):
        return 0
    if not (text.isdecimal() and len(text) < 5 and 1 <= int(text) <= 1024):
        raise ValueError(f"GPT2NP_THREADS: expected a number of threads from 1 to 1024, got {text!r:.40}")
    return min(int(text), len(cpus()))


def useful_cores():
    """The number of fast cores within the quota, at least 1."""
    return max(1, math.ceil(min(fast_cores(), quota())))


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
    """The number of cores (float) that this process may use, by the limits of its control groups, version 1 or 2."""
    limits = [math.inf]
    groups = re.findall(r"^\d+:([^:\n]*):(/.*)$", read(GROUPS), re.M) or [("", "/")]
    for controllers, path in groups:
        names = path.strip("/").split("/") if not controllers or "cpu" in controllers.split(",") else []
        for n in range(len(names) + 1):
            folder = SYSTEM.joinpath("fs", "cgroup", controllers, *names[:n])
            # microseconds in a period; "max" or -1: no limit
            allowed = read(folder / "cpu.max") or f"{read(folder / CFS[0])} {read(folder / CFS[1])}"
            if found := re.match(r"(\d+)\s+([1-9]\d*)", allowed):
                limits.append(int(found[1]) / int(found[2]))
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
