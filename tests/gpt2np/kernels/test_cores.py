"""The number of threads: of the cores, the limits of a container, and GPT2NP_THREADS."""

import os

import pytest

from gpt2np.kernels import cores

n_threads = cores.n_threads.__wrapped__  # not cached


def cpu(n, name):
    return f"devices/system/cpu/cpu{n}/{name}"


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


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("GPT2NP_THREADS", "7")
    assert n_threads() == n_threads(for_prompts=True) == 7


def test_a_system_that_does_not_tell_the_affinity(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: os.stat("/does not exist"), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.fast_cores() == 1
