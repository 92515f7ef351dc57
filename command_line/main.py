"""Run a command. An error ends in one sentence and exit code 2, an interruption in exit code 130.

Next: options.py
"""

import contextlib
import errno
import os
import signal
import sys

import gpt2np
from speculative.trace.terminal import visible

from .arguments import call, parse
from .commands import COMMANDS
from .help import help_text
from .streams import interrupt, open_streams

MOST = 480  # characters of a message


def main(arguments):
    """Run the command; returns the exit code."""
    try:
        if {"--help", "-h"} & set(arguments):
            print(help_text(program()), end="")
        elif "--version" in arguments:
            print(f"speculative-decoding-numpy {gpt2np.__version__}")
        else:
            call(*parse(arguments, COMMANDS))
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        say(f"interrupted; {str(error) or 'nothing is kept'}")
        return 130
    except RecursionError:
        say("a file is nested too deeply to be read: is it the right file?")
        return 2
    except (ValueError, OSError, MemoryError) as error:
        if error is not getattr(sys.stdout, "error", None):  # which is reported at the end
            say(str(error) or "not enough memory")
            return 2
    return 0


def run_safely(arguments):
    """`main`, for streams that may be closed or full, and for Ctrl-C at any moment."""
    open_streams()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, interrupt)
        code = main(arguments)
    except KeyboardInterrupt:  # between the commands above
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    closed = {errno.EPIPE} | ({errno.EINVAL} if sys.platform == "win32" else set())  # the reader has left
    if (error := sys.stdout.error) and error.errno not in closed and code == 0:
        say(f"cannot write to standard output ({error.strerror})")
        code = 2
    return code


def say(message):
    """Print one sentence on one line of standard error."""
    message = visible(message.replace("\n", "\u23ce"))
    message = message if len(message) <= MOST else message[: MOST - 3] + "..."
    with contextlib.suppress(OSError):
        print(f"{os.path.basename(program().split()[-1])}: {message}", file=sys.stderr, flush=True)


def program():
    """How the program was started: "python main.py" in a checkout, otherwise the entry point's name."""
    name = os.path.basename(sys.argv[0])
    return "python main.py" if name == "main.py" else "speculative-decoding"
