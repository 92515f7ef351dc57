"""A plugin of pytest, for tests/test_systems.py: takes away what Windows does not have, before any test is collected.

Most of it is missing on macOS as well.
"""

import multiprocessing
import os
import signal
import subprocess
import sys

import fake_msvcrt

sys.modules["msvcrt"] = fake_msvcrt
for module in ("fcntl", "pty", "resource", "termios", "tty"):
    sys.modules[module] = None  # as if there were none to import
for name in ("fork", "forkpty", "getloadavg", "sched_getaffinity", "wait"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "setitimer"):
    if hasattr(signal, name):
        delattr(signal, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
multiprocessing.context._concrete_contexts = {"spawn": multiprocessing.get_context("spawn")}


def symlink(*_, **__):
    raise OSError(1314, "A required privilege is not held by the client")


class Popen(subprocess.Popen):
    def __init__(self, command, *arguments, preexec_fn=None, **options):
        if preexec_fn is not None:
            raise ValueError("preexec_fn is not supported on Windows platforms")
        if command[0] in ("bash", "sh"):
            raise FileNotFoundError(2, "The system cannot find the file specified", command[0])
        super().__init__(command, *arguments, **options)

    def send_signal(self, number):
        if number not in (signal.SIGTERM, 9):
            raise ValueError(f"Unsupported signal: {number}")
        super().send_signal(number)

    def kill(self):
        self.send_signal(9)


def is_windows_path(path, exists=os.path.exists):
    return exists(path) and not str(path).startswith(("/dev/", "/proc/"))


os.symlink, subprocess.Popen, os.path.exists = symlink, Popen, is_windows_path
