"""Files that are written in one step, and digests of contents."""

import os
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
