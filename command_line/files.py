"""Files that options name: texts to read, and files to write, which are checked before anything is measured.

Next: registry.py
"""

import os
import sys
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile

STDIN = "-"  # as the name of a file


def read_text(name, option="corpus"):
    """The text of a file in UTF-8."""
    try:
        return standard_input() if name == STDIN and option == "prompt_file" else Path(name).read_bytes().decode()
    except UnicodeDecodeError:
        raise ValueError(f"--{option}: expected a text in UTF-8, and {name} is not one") from None
    except OSError as error:
        raise ValueError(f"--{option}: cannot read {name} ({error.strerror}): give a text file") from None


@cache
def standard_input():
    """All of it, which can be read only once."""
    if sys.stdin is None:
        raise ValueError("--prompt_file -: standard input is closed: give a file, or pipe a text into the command")
    return sys.stdin.buffer.read().decode()


def check_file(option, name, suffixes=()):
    """Raise ValueError unless a file of that name, with one of these suffixes if any, can be written."""
    path = Path(name)
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"--{option}: expected a name that ends in {' or '.join(suffixes)}, got {str(name)!r}")
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is not a regular file")
        if path.exists():
            path.open("ab").close()
        TemporaryFile(dir=path.parent).close()  # a new file takes the place of the old one at once
    except OSError as error:
        raise ValueError(
            f"--{option}: cannot write {path} ({error.strerror or error}): name a file in a folder that is there and "
            "yours to write"
        ) from None


@contextmanager
def replacing(option, name):
    """The path of a new file, which takes the place of the one of that name at once when it is whole."""
    new = Path(f"{name}.part")
    try:
        yield new
        os.replace(new, name)
    except OSError as error:
        raise OSError(
            f"--{option}: cannot write {name} ({error.strerror or error}): what was there before is still there"
        ) from error
    finally:
        new.unlink(missing_ok=True)


def digest(*paths):
    """16 digits of the SHA-256 of the files' names and contents: a second a gigabyte or two."""
    found = sha256()
    for path in paths:
        found.update(path.name.encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
    return found.hexdigest()[:16]


def deliver(*steps):
    """Take every step, each a function; the others are taken after an OSError of one, too, and then it is raised.

    So a full disk, or a reader that has left, costs no more than its own part of the results.
    """
    errors = []
    for step in steps:
        try:
            step()
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]
