"""`python main.py ...` as a process of its own, forked from one that has already imported main.py, which saves most of
its time; spawned where a fork is not safe, see systems.py. What depends on the start of a process (a terminal, its
environment) is tested with `python main.py` itself, and what does not depend on a process runs here.
"""

import contextlib
import io
import multiprocessing
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from systems import START_METHOD

import command_line
from command_line.main import main

processes = multiprocessing.get_context(START_METHOD)
if START_METHOD == "forkserver":
    processes.set_forkserver_preload(["command_line.main"])


def run(*arguments, cwd="."):
    """What the command prints and how it ends, as `subprocess.run` would say it."""
    arguments = [os.fsdecode(argument) for argument in arguments]
    with TemporaryDirectory() as folder:
        written = [Path(folder) / name for name in ("out", "err")]
        process = processes.Process(target=started, args=(arguments, os.path.abspath(cwd), *written))
        process.start()
        process.join(timeout=120)
        assert process.exitcode is not None, f"main.py {arguments} is still running"
        return CompletedProcess(arguments, process.exitcode, *(path.read_text(encoding="utf-8") for path in written))


def started(arguments, folder, *written):
    for number, path in enumerate(written, 1):
        with open(path, "wb") as file:
            os.dup2(file.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")
    os.chdir(folder)
    sys.argv = ["main.py", *arguments]
    command_line.run()


def run_here(*arguments):
    """The same, without a process of its own."""
    arguments, argv = [os.fsdecode(argument) for argument in arguments], sys.argv
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            sys.argv = ["main.py", *arguments]
            return CompletedProcess(arguments, main(arguments), out.getvalue(), err.getvalue())
        finally:
            sys.argv = argv
