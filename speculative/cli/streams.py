"""Standard streams and Ctrl-C: output that cannot be written, and interruptions."""

import contextlib
import os
import signal
import sys
import threading


class Output:
    """Standard output or error. The first failure is stored in `error`, and everything after it is discarded.

    The failure is also raised, unless results go to a file: then the measurement continues without a page.
    """

    def __init__(self, stream, is_patient=False):
        self.stream, self.error, self.is_patient = stream, None, is_patient

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, text):
        self.attempt(self.stream.write, text)
        return len(text)

    def flush(self):
        self.attempt(self.stream.flush)

    def attempt(self, action, *arguments):
        try:
            action(*arguments)
        except OSError as error:
            self.error = self.error or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
            if not self.is_patient:
                raise


def open_streams():
    """Open closed standard streams on the null device, so that no file opened later takes their numbers.

    A character that the terminal cannot show becomes a question mark.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="replace")
        setattr(sys, name, Output(getattr(sys, name), is_patient=name == "stderr"))


def be_patient():
    """Results go to a file from here on: continue even if the page cannot be written."""
    if isinstance(sys.stdout, Output):
        sys.stdout.is_patient = True


# ------------------------------------------------------------------------------------------------ interruptions


def interrupt(number, frame):
    """The first Ctrl-C ends the command in a sentence, the second at once."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    raise KeyboardInterrupt


@contextlib.contextmanager
def uninterrupted():
    """Delay Ctrl-C until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = []
    before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        signal.raise_signal(signal.SIGINT)
