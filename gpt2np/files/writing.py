"""Replacing a file in one step."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from shutil import copymode


@contextmanager
def replacing(name, keep=True):
    """The path of a new file, which replaces the file of this name in one step when it is complete."""
    path = Path(os.path.realpath(name))
    new = path.with_name(f".{token_hex(8)}.part")
    try:
        new.open("x").close()
        if path.exists():
            copymode(path, new)
        yield new
        if keep:
            os.replace(new, path)
    except OSError as error:
        if not keep:
            raise
        raise OSError(f"cannot write {name} ({error.strerror or error}): the previous file is unchanged") from error
    finally:
        with suppress(OSError):
            new.unlink()
