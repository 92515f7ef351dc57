"""The number of threads: of the cores, the limits of a container, and GPT2NP_THREADS."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

from gpt2np.kernels import cores


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A function that writes files of a system with some CPUs, and gives the number of threads there, for prompts.

    A product of a few rows has the same number, or four.
    """

    def n_threads(n_cpus, files, cgroup="0::/\n"):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        read = cores.read
        monkeypatch.setattr(cores, "SYSTEM", tmp_path)
        monkeypatch.setattr(cores, "read", lambda path: cgroup if "proc" in path.parts else read(path))
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(n_cpus)), raising=False)
        monkeypatch.delenv("GPT2NP_THREADS", raising=False)
        n_threads = cores.n_threads_for_prompts.__wrapped__()
        assert cores.n_threads.__wrapped__() == min(4, n_threads)
        return n_threads

    return n_threads


def cpu(n, name):
    return f"devices/system/cpu/cpu{n}/{name}"


CASES = {
    "no files, as on other systems": (3, {}, 3),
    "more than four": (6, {}, 6),
    "at most sixteen": (64, {}, 16),
    "two threads on a core": (
        4,
        {cpu(i, "topology/thread_siblings_list"): f"{i % 2},{i % 2 + 2}\n" for i in range(4)},
        2,
    ),
    "Intel's two kinds": (12, {"devices/cpu_core/cpus": "0-2\n", "devices/cpu_atom/cpus": "3-11\n"}, 3),
    "pinned to the slow kind": (3, {"devices/cpu_core/cpus": "8-11\n"}, 3),
    "ARM's two kinds": (4, {cpu(i, "cpu_capacity"): f"{1024 if i < 2 else 400}\n" for i in range(4)}, 2),
    "quota of one and a half": (4, {"fs/cgroup/cpu.max": "150000 100000\n"}, 2),
    "quota of a half": (4, {"fs/cgroup/cpu.max": "50000 100000\n"}, 1),
    "no quota": (4, {"fs/cgroup/cpu.max": "max 100000\n"}, 4),
}


@pytest.mark.parametrize(("n_cpus", "files", "expected"), CASES.values(), ids=CASES.keys())
def test_number_of_threads(system, n_cpus, files, expected):
    assert system(n_cpus, files) == expected


def test_the_limit_of_a_group_above(system):
    files = {"fs/cgroup/a/cpu.max": "200000 100000\n", "fs/cgroup/a/b/cpu.max": "max 100000\n"}
    assert system(4, files, cgroup="0::/a/b\n") == 2


def test_the_first_version_of_control_groups(system):
    files = {"fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}
    limited = {"fs/cgroup/cpu/a/cpu.cfs_quota_us": "300000\n", "fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n"}
    groups = "3:cpuset:/\n1:cpu,cpuacct:/a\n0::/\n"
    assert system(4, files, groups) == 4
    assert system(4, files | limited, groups) == 3


def test_the_environment_decides():
    names = "('n_threads', 'n_threads_for_prompts')"
    code = f"from gpt2np.kernels import matmul; print(*map(matmul.describe().get, {names}))"

    def run(text):
        environment = os.environ | {"GPT2NP_THREADS": text, "GPT2NP_MATMUL": "rows"}
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert run("7").stdout.split() == ["7", "7"]
    for text in ("0", "two", "-1", "1.5", "9999"):
        message = f"GPT2NP_THREADS: expected a number of threads from 1 to 1024, got '{text}'"
        assert run(text).stderr.splitlines()[-1] == f"ValueError: {message}"
    assert run("9" * 5000).stderr.splitlines()[-1] == f"ValueError: {message[:-6]}'{'9' * 39}"


@pytest.mark.parametrize(
    "files",
    [
        {"devices/cpu_core/cpus": "(null)\n"},
        {cpu(0, "cpu_capacity"): "none\n"},
        {"fs/cgroup/cpu.max": "100000 0\n"},
        {"fs/cgroup/cpu.max": "some 100000\n"},
    ],
)
def test_files_that_say_nothing(system, files):
    assert system(3, files) == 3


@pytest.mark.parametrize("cgroup", ["\n", "0\n", "0:\n", "0::\n", ""])
def test_lines_of_control_groups_that_say_nothing(system, cgroup):
    assert system(3, {}, cgroup) == 3


def test_one_thread_at_least(system, monkeypatch):
    assert system(0, {}) == 1 and system(4, {"fs/cgroup/cpu.max": "0 100000\n"}) == 1


def test_a_system_that_does_not_tell_the_affinity(monkeypatch):
    def refused(pid):
        raise PermissionError

    monkeypatch.setattr(os, "sched_getaffinity", refused, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.fast_cores() == 1
