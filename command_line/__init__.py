"""The command line: from options to models, drafters and rules, from these to a report, and to a page.

`run` is what main.py and, where the package is installed, `speculative-decoding` call.
Next: main.py
"""

import os
import signal
import sys


def run():
    """Run the command that the process was started with, and leave with its exit code."""
    signal.signal(signal.SIGINT, leave)  # before the imports, which take half a second
    from .main import run_safely

    sys.exit(run_safely(sys.argv[1:]))


def leave(number, frame):
    """Ctrl-C while there is nothing to lose."""
    try:
        os.write(2, b"interrupted before anything was begun\n")
    finally:
        os._exit(130)
