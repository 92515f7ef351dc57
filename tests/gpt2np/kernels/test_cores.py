"""The number of threads: of the cores, the limits of a container, and GPT2NP_THREADS."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

from gpt2np.kernels import cores

n_threads = cores.n_threads.__wrapped__  # not cached


def cpu(n, name):
    return f"devices/system/cpu/cpu{n}/{name}"


def version_1(group, quota):
    """The files of a control group of version 1."""
    return {f"fs/cgroup/{group}/cpu.cfs_{name}_us": f"{n}\n" for name, n in (("quota", quota), ("period", 100_000))}


CASES = {
    "no files, as on other systems": (3, {}, 3),
    "no processors": (0, {}, 1),
    "more than four": (6, {}, 6),
    "at most sixteen": (64, {}, 16),
    "two threads on a core": (
        4, {cpu(i, "topology/thread_siblings_list"): f"{i % 2},{i % 2 + 2}\n" for i in range(4)}, 2,
    ),
    "Intel's two kinds": (12, {"devices/cpu_core/cpus": "0-2\n", "devices/cpu_atom/cpus": "3-11\n"}, 3),
    "pinned to the slow kind": (3, {"devices/cpu_core/cpus": "8-11\n"}, 3),
    "no list of a kind": (3, {"devices/cpu_core/cpus": "(null)\n"}, 3),
    "ARM's two kinds": (4, {cpu(i, "cpu_capacity"): f"{1024 if i < 2 else 400}\n" for i in range(4)}, 2),
    "no capacity": (3, {cpu(0, "cpu_capacity"): "none\n"}, 3),
    "quota of one and a half": (4, {"fs/cgroup/cpu.max": "150000 100000\n"}, 2),
    "quota of nothing": (4, {"fs/cgroup/cpu.max": "0 100000\n"}, 1),
    "no quota": (4, {"fs/cgroup/cpu.max": "max 100000\n"}, 4),
    "no period": (3, {"fs/cgroup/cpu.max": "100000 0\n"}, 3),
    "the limit of a group above": (
        4, {"fs/cgroup/a/cpu.max": "200000 100000\n", "fs/cgroup/a/b/cpu.max": "max 100000\n"}, 2,
        "3:cpuset:/\n0::/a/b\n",
    ),
    "version 1": (8, version_1("cpu,cpuacct/a/b", 200_000), 2, "5:memory:/c\n4:cpu,cpuacct:/a/b\n0::/\n"),
    "version 1, inside of a container": (8, version_1("cpu", 50_000), 1, "4:cpu:/a/b\n"),
    "version 1 without a quota": (5, version_1("cpu", -1), 5, "4:cpu:/\n"),
    **{f"control groups that say nothing, {text!r}": (3, {}, 3, text) for text in ("\n", "0\n", "0:\n", "0::\n", "")},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_number_of_threads(tmp_path, monkeypatch, case):
    """For prompts; a product of a few rows has the same number, or four."""
    n_cpus, files, expected, *cgroup = CASES[case]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    read, cgroup = cores.read, (*cgroup, "0::/\n")[0]
    monkeypatch.setattr(cores, "SYSTEM", tmp_path)
    monkeypatch.setattr(cores, "read", lambda path: cgroup if "proc" in path.parts else read(path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(n_cpus)), raising=False)
    monkeypatch.delenv("GPT2NP_THREADS", raising=False)
    assert n_threads(for_prompts=True) == expected and n_threads() == min(4, expected)


def test_the_environment_decides_up_to_the_number_of_processors(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(9)), raising=False)
    for asked, expected in (("7", 7), ("16", 9)):
        monkeypatch.setenv("GPT2NP_THREADS", asked)
        assert n_threads() == n_threads(for_prompts=True) == expected


@pytest.mark.parametrize(
    ("setting", "expected"), [({}, 2), ({"OPENBLAS_NUM_THREADS": "1"}, 1), ({"GPT2NP_THREADS": "1"}, 1)]
)
def test_the_blas_gets_no_more_threads_than_useful_cores(setting, expected):
    """Where it has an interface to ask; in a process of its own, whose number of threads is raised first."""
    code = """
from gpt2np.kernels import cores
cores.useful_cores = lambda: 2
n = cores.blas_threads.__wrapped__()
print(n, cores.blas_threads.__wrapped__())
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "3", **setting}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    if run.stdout.split() == ["1", "1"] and expected > 1:
        pytest.skip("NumPy's BLAS does not tell its number of threads")
    assert run.stdout.split() == [str(expected)] * 2, run.stderr


def test_a_system_that_does_not_tell_the_affinity(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: os.stat("/does not exist"), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.fast_cores() == 1
