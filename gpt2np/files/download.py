"""Downloading a file: resumed after an interruption, verified, and moved into place when it is complete.

A file is written to FILE.part, with what the server declared in FILE.part.json, and renamed to FILE in one step once
its size and hash are as declared and its structure is valid. Few servers declare a hash: without one, a wrong byte
among the weights of a safetensors file is not noticed (a TensorFlow checkpoint has checksums of its own).

A failed attempt is repeated, up to three times in a row without progress. Progress is more bytes than ever before, at
a minimum rate, so that no server can keep a download waiting forever.
Leaves out: one request, see transfer.py; which files a model has, see model_files.py.
"""

import errno
import os
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

from .declared import forget, hash_of, size_of
from .errors import CheckpointError, DownloadError
from .transfer import TryAgain, fetch_rest

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

WAITS = (1, 2, 4)  # seconds before each further attempt; progress resets the count
LEAST_RATE = 1000  # bytes per second, since the last progress
POLL = 0.1  # seconds between two looks at whether another process is done


def download_file(url, path, check):
    """Download `url` to `path`, unless that exists.

    Parameters
    ----------
    url : str
    path : Path
    check : callable
        check(path of the complete download) raises CheckpointError if it is not a file of the expected kind.

    Raises
    ------
    DownloadError
        What went wrong, in words that can follow "URL: ". What was downloaded so far stays in FILE.part.
    """
    if path.exists():
        return
    part = path.with_name(path.name + ".part")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fetch(url, part, check)
            os.replace(part, path)
        finally:
            if not size_of(part):
                forget(part)


def fetch(url, part, check):
    """Try until the part is the complete file, or until all WAITS have passed without progress."""
    waits, mended, most, since = list(WAITS), False, size_of(part), time.monotonic()
    while True:
        try:
            declared = fetch_rest(url, part)
        except TryAgain as error:
            gained, now = size_of(part) - most, time.monotonic()
            if gained > LEAST_RATE * (now - since):
                waits, most, since = list(WAITS), most + gained, now
            if error.begin_again:
                forget(part)
            if not waits:
                raise DownloadError(str(error)) from None
            time.sleep(max(waits.pop(0), error.wait))
            continue
        damage = complaint(verify, part, declared, check)
        if damage is None:
            return
        forget(part)
        if mended:
            raise DownloadError(damage)
        mended = True  # once more from the start: the part that was resumed may have been another file


def verify(part, declared, check):
    """Raise CheckpointError unless the download is what the server declared and what `check` expects."""
    if declared.size is not None and size_of(part) != declared.size:
        raise CheckpointError(f"the file has {size_of(part)} bytes, and the server declares {declared.size}")
    if declared.hash:
        algorithm, digest = declared.hash
        found = hash_of(part, algorithm)
        if found != digest:
            raise CheckpointError(f"the file's hash ({algorithm}) is {found}, and the server declares {digest}")
    check(part)


def complaint(check, *arguments):
    """What is wrong (str) if `check` raises, otherwise None.

    It returns text, not the exception: that would keep the file open through its frames, and Windows could not delete
    it.
    """
    try:
        check(*arguments)
    except (OSError, MemoryError):
        raise
    except CheckpointError as error:
        return str(error)
    except Exception as error:  # a damaged file may make a reader raise anything
        return f"the file cannot be read ({type(error).__name__}: {error})"


@contextmanager
def disk_errors(path):
    """Turn errors of the disk into DownloadError."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(f"the disk of {path.parent} is full: make room") from None
        raise DownloadError(f"{path} cannot be written ({error.strerror or error})") from None


# ------------------------------------------------------------------------------------------------ one process at a time


@contextmanager
def workplace(folder):
    """A folder for one process at a time; at the end, it and the folders made for it are removed if they are empty."""
    made, lock = {folder}, None
    while lock is None:
        made |= {place for place in folder.parents if not place.exists()}
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_lock(folder / "lock")
    with lock:
        try:
            yield
        finally:
            if not fcntl:
                lock.close()  # Windows deletes no open file; so one that another process waits for stays
            with suppress(OSError):
                (folder / "lock").unlink()
            for place in sorted(made, reverse=True):  # the innermost first
                with suppress(OSError):
                    place.rmdir()


def take_lock(path):
    """The locked file, or None if another process has deleted it meanwhile. The lock ends with its process."""
    with ExitStack() as unless_taken:
        file = unless_taken.enter_context(path.open("a+b"))
        if not try_lock(file):
            print(f"another process is downloading into {path.parent.parent}: waiting for it", file=sys.stderr)
            while not try_lock(file):
                time.sleep(POLL)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                unless_taken.pop_all()
                return file
    return None


def try_lock(file):
    """Whether the open file is locked by this process now; an OSError where it cannot be locked."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if not isinstance(error, BlockingIOError if fcntl else PermissionError):  # those are of a lock that is taken
            raise OSError(error.errno, f"{error.strerror}: it cannot be locked") from None
        return False
    return True
