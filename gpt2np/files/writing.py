"""Files to write: whether that is possible, and in one step. The digests of what was read."""

import os
import stat
from contextlib import contextmanager, suppress
from hashlib import sha256
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


def digest(*contents):
    """16 digits of the SHA-256 of texts, or of the contents of paths. A gigabyte or two takes a second."""
    found = sha256()
    for content in contents:
        if isinstance(content, str):
            found.update(content.encode(errors="surrogatepass"))
            continue
        with content.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
    return found.hexdigest()[:16]


def check_writable(name, suffixes=()):
    """The name; ValueError unless a file of that name, with one of these suffixes if any, can be written."""
    path = Path(os.path.realpath(name))  # a link's target
    if suffixes and Path(name).suffix not in suffixes:
        raise ValueError(f"expected a name that ends in {' or '.join(suffixes)}, got {name[:60]!r}")
    try:
        with suppress(FileNotFoundError):  # `exists` would be False for a name that is too long, from Python 3.14 on
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError("it is not a regular file")
        with replacing(name, keep=False):
            if path.exists():
                path.open("ab").close()
    except OSError as error:
        raise ValueError(
            f"cannot write {name} ({error.strerror or error}): name a file in a folder that exists and that you may "
            "write to"
        ) from None
    return name
