"""The command line: from options to models, drafters and rules, from these to a report, and to a page.

`run` is what main.py and, where the package is installed, `speculative-decoding` call.
Next: main.py
"""

import signal
import sys


def run():
    """Run the command that the process was started with, and leave with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored, in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # half a second of imports, with nothing to lose: it ends at once
    from .main import run_safely

    sys.exit(run_safely(sys.argv[1:]))
