"""Files named by options: texts to read, and files to write, which are checked before anything is measured."""

import os
import sys
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from tempfile import TemporaryFile

STDIN = "-"  # as the name of a file
WRITTEN = ("ngram_table", "json", "trace", "log", "spec_bench", "plot", "html")  # options that name a file to write


def read_text(name, option="corpus"):
    """The text of a UTF-8 file, without the byte order mark that some editors put at its beginning."""
    try:
        if name == STDIN and option == "prompt_file":
            return standard_input()
        return (Path(name).read_bytes() if Path(name).is_file() else piped(name)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--{option}: expected a text in UTF-8, and {name} is not one") from None
    except OSError as error:
        raise ValueError(f"--{option}: cannot read {name} ({error.strerror}): give a text file") from None


@cache
def standard_input():
    """All of standard input, which can be read only once."""
    if sys.stdin is None:
        raise ValueError("--prompt_file -: standard input is closed: give a file, or pipe a text into the command")
    return sys.stdin.buffer.read().decode("utf-8-sig")


@cache
def piped(name):
    """The bytes of a pipe, which can be read only once."""
    return Path(name).read_bytes()


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
        else:
            new = Path(os.path.realpath(path))  # of a link, what it points to
            new.open("xb").close()
            new.unlink()
    except OSError as error:
        raise ValueError(
            f"--{option}: cannot write {path} ({error.strerror or error}): name a file in a folder that exists "
            "and that you may write to"
        ) from None


def check_distinct(names):
    """Raise ValueError if a file to write is also named by another option: names is a dict option -> name."""
    found = {}
    for option, name in names.items():
        if isinstance(name, str) and name:
            other = found.setdefault(os.path.realpath(name), option)
            if other != option and other in WRITTEN:
                second = "FILE" if option == "file" else f"--{option}"
                raise ValueError(f"--{other} and {second} name one file, {name}: give the output a name of its own")


@contextmanager
def replacing(option, name):
    """The path of a new file, which replaces the one of that name when it is complete."""
    path = Path(name).resolve()  # of a link, what it points to
    new = path.with_name(f".{token_hex(8)}.part")
    try:
        new.open("x").close()
        if path.exists():
            copymode(path, new)
        yield new
        os.replace(new, path)
    except OSError as error:
        raise OSError(
            f"--{option}: cannot write {name} ({error.strerror or error}): the previous file is unchanged"
        ) from error
    finally:
        with suppress(OSError):
            new.unlink()


def digest(*paths):
    """16 digits of the SHA-256 of the files' names and contents. A gigabyte or two take a second."""
    found = sha256()
    for path in paths:
        found.update(path.name.encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
    return found.hexdigest()[:16]


def deliver(*steps):
    """Run every step (functions), also after one of them has raised an OSError; then raise the first such error.

    So a full disk or a closed pipe costs only its own part of the results.
    """
    errors = []
    for step in steps:
        try:
            step()
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]
