"""Files named by options: texts to read, and files to write, which are checked before anything is measured."""

import errno
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from gpt2np.files.writing import replacing
from speculative.trace import page


def say(note):
    """Print a note on standard error."""
    with suppress(OSError):
        print(f"note: {note}", file=sys.stderr, flush=True)


def read_text(name, option="corpus"):
    """The text of a UTF-8 file, without the byte order mark that some editors put at its beginning."""
    try:
        return (Path(name).read_bytes() if Path(name).is_file() else piped(name)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--{option}: expected a text in UTF-8, and {name} is not one") from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise ValueError(f"--{option}: cannot read {name} ({what}): give a text file") from None


def check_readable(name):
    """The name; ValueError unless there is a file or a pipe of that name."""
    if not name or (os.path.exists(name) and not os.path.isdir(name)):
        return name
    why = os.strerror(errno.EISDIR if os.path.isdir(name) else errno.ENOENT)
    raise ValueError(f"cannot read {name} ({why}): give a text file")


def lines_of(text):
    """The lines of a text that are not blank; a line ends at a line break alone, not at a form feed or the like."""
    return [line for line in text.replace("\r", "\n").split("\n") if line.strip()]


@cache
def piped(name):
    """The bytes of a pipe or, for "-", of standard input, which can be read only once."""
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


def digest(*contents):
    """16 digits of the SHA-256 of texts, or of the contents of paths. A gigabyte or two takes a second."""
    checksum = sha256()
    for content in contents:
        if isinstance(content, str):
            checksum.update(content.encode(errors="surrogatepass"))
            continue
        with content.open("rb") as file:
            while chunk := file.read(1 << 20):
                checksum.update(chunk)
    return checksum.hexdigest()[:16]


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


def check_distinct(written, texts):
    """Raise ValueError if another option names a file to write. Both arguments are dicts option -> text."""
    for option, name in written.items():
        for other, text in texts.items():
            parts = [text, *text.split(",")]  # the text may be a list, FILE.py:NAME, or a folder with a model
            parts += [part.rpartition(":")[0] for part in parts]
            if other not in (option, "models_dir") and any(is_one_file(name, part) for part in parts):
                raise ValueError(
                    f"--{option} and --{other} name the same file, {name}: give the output a different name"
                )


def is_one_file(name, other):
    """Whether two names mean the same file, or the first means a file in the folder of the second name."""
    other, path = {"-": "/dev/stdin"}.get(other, other), Path(os.path.realpath(name))
    with suppress(OSError, ValueError):
        if os.path.isdir(other):
            return path.is_file() and os.path.samefile(path.parent, other)
        return bool(other) and (path == Path(os.path.realpath(other)) or os.path.samefile(path, other))
    return False


def write_trace(trace, name):
    """Write a trace as a page or as JSON lines, depending on the suffix."""
    with replacing(name) as path:
        if name.endswith(".html"):
            path.write_text(page(trace), encoding="utf-8")
        else:
            trace.save(path)
