"""What not every system has. A test that needs it is skipped elsewhere, and says why."""

import os
import shutil
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


def has_links():
    """Windows asks for a privilege, or for developer mode; Wine makes none and reports success."""
    with TemporaryDirectory() as folder:
        link = os.path.join(folder, "link")
        try:
            os.symlink("elsewhere", link)
        except (OSError, NotImplementedError):
            return False
        return os.path.islink(link)


def needs(what, is_here):
    return pytest.mark.skipif(not is_here, reason=f"{what}: not on this system, or not for this user")


HAS_FORK = hasattr(os, "fork")


def opening_a_folder():
    """The system's words for it: on Windows, permission denied."""
    try:
        Path().read_bytes()
    except OSError as error:
        return error.strerror


def slashes(text):
    """A text with paths, as other systems than Windows write them."""
    return text.replace(os.sep, "/")


needs_links = needs("symbolic links", has_links())
needs_any_name = needs("control characters and 255 characters in names", os.name != "nt")
needs_shell = needs("bash and what it can do to a process", HAS_FORK and shutil.which("bash"))
needs_ctrl_c = needs("Ctrl-C for another process", HAS_FORK)  # elsewhere it reaches a whole console, with these tests
needs_full_device = needs("/dev/full, a device without room", os.name != "nt" and os.path.exists("/dev/full"))
needs_proc = needs("/proc", os.name != "nt" and os.path.exists("/proc/self/mem"))  # Wine shows the host's
# Accelerate, which NumPy calls while it is imported on macOS, may crash in a forked process
needs_safe_fork = needs("a fork after NumPy was imported", HAS_FORK and sys.platform != "darwin")


def hears_ctrl_c():
    """Options of Popen: in a process started in the background of a shell, Ctrl-C would be ignored."""
    return {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
