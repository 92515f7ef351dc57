"""Downloading a file: resumed after an interruption, verified, and renamed into place when it is complete.

The bytes go to FILE.part, and the server's declarations about the file to FILE.part.json:

    etag    a strong ETag, which changes whenever the file does; a weak one or a date does not promise that
    size    X-Linked-Size of the Hugging Face hub, or Content-Length
    hash    X-Linked-ETag (SHA-256) or ETag (SHA-1 of a git blob) of the hub; Content-MD5 of OpenAI's bucket

With an etag or a hash, a later attempt requests only the rest: with `Range`, and with `If-Range`, which makes the
server send the whole file if its etag has changed. Otherwise it starts from the beginning. Without a hash, a wrong byte
among the weights of a safetensors file goes unnoticed (a TensorFlow checkpoint has its own checksums).
"""

import base64
import hashlib
import json
import os
import re
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from tqdm import tqdm

from .errors import CheckpointError, DownloadError, NoSuchFile

try:
    import fcntl
except ImportError:  # on Windows
    import msvcrt

    fcntl = None

TIMEOUT = (3, 30)  # seconds: to connect, and between two reads of the response
WAITS = (1, 2, 4)  # seconds before each further attempt; progress resets the count
CHUNK = 2**16  # bytes; an incomplete chunk is lost when the connection breaks


def download_file(url, path, check):
    """Download `url` to `path`, unless that file exists.

    Parameters
    ----------
    url : str
    path : Path
    check : callable
        check(path of the complete download) raises CheckpointError if it is not a file of the expected kind.

    Raises
    ------
    DownloadError
        The message is worded to follow "URL: ". The bytes downloaded so far stay in FILE.part.
    """
    if path.exists():
        return
    part = path.with_name(path.name + ".part")
    declared = fetch(url, part)
    if damage := damage_of(part, declared, check):
        forget(part)
        raise DownloadError(damage)
    os.replace(part, path)
    forget(part)


class TryAgain(Exception):
    """A transient error; the message says what happened."""


class NoConnection(TryAgain):
    """The server could not be reached at all."""


def fetch(url, part):
    """Try until the part is complete, or until all WAITS have passed without progress."""
    waits, largest = list(WAITS), (before := size_of(part))
    while True:
        try:
            return fetch_rest(url, part)
        except TryAgain as error:
            if size_of(part) > largest:
                waits, largest = list(WAITS), size_of(part)
            is_offline = isinstance(error, NoConnection) and largest == before  # nothing has arrived: say so at once
            if is_offline or not waits:
                raise DownloadError(str(error)) from None
            time.sleep(waits.pop(0))


def fetch_rest(url, part):
    """Make one request for the missing bytes, and append them. Return the `Declared` of the file."""
    import requests  # here, since most runs download nothing and importing it takes as long as importing NumPy

    declared, have = read_declared(part), size_of(part)
    if have and have == declared.size:
        return declared
    headers = {"Accept-Encoding": "identity"}
    if have and (declared.etag or declared.hash):
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": declared.etag} if declared.etag else {})
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            return receive(response, part, declared)
    except DownloadError:
        raise
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
        cause = getattr(next(iter(error.args), None), "reason", None)  # urllib3's
        is_unreachable = type(cause).__name__ in ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")
        raise (NoConnection if is_unreachable else TryAgain)(f"the connection failed ({reason(error)})") from None
    except (requests.RequestException, ValueError) as error:
        raise DownloadError(f"the request failed ({reason(error)})") from None


def receive(response, part, declared):
    """Append the body of a response to the part, if it continues the declared file. Return the file's `Declared`."""
    status, headers = response.status_code, response.headers
    if status >= 500 or status in (408, 429):
        raise TryAgain(f"the server answered {status} {response.reason}")
    if status not in (200, 206, 416):  # 416: the file has become shorter
        raise (NoSuchFile if status == 404 else DownloadError)(f"the server answered {status} {response.reason}")
    if "html" in headers.get("Content-Type", ""):
        raise DownloadError("the server sent a web page instead of the file")
    is_rest = re.fullmatch(rf"bytes {size_of(part)}-\d+/{declared.size}", headers.get("Content-Range", ""))
    is_same_file = not declared.etag or headers.get("ETag") == declared.etag
    if status == 200:  # the whole file
        declared = declared_in(response)
        forget(part)
        note_of(part).write_text(json.dumps(asdict(declared)), encoding="utf-8")
    elif not (is_rest and is_same_file):
        forget(part)
        raise TryAgain("the server continued with a different version of the file")
    progress = tqdm(desc=part.stem, total=declared.size, unit="B", unit_scale=True, disable=not sys.stderr.isatty())
    with part.open("ab") as file, progress:
        progress.update(file.tell())
        for chunk in response.iter_content(CHUNK):
            file.write(chunk)
            progress.update(len(chunk))
    if size_of(part) < (declared.size or 0):
        raise TryAgain(f"the response ended after {size_of(part)} of {declared.size} bytes")
    return declared


def reason(error):
    """The innermost cause of an error raised by requests, in a few words."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    inner = getattr(error, "reason", None) or (error.args or [error])[0]
    return str(inner).rpartition(": ")[2][:150]


# ------------------------------------------------------------------------------------------------ declarations


@dataclass(frozen=True)
class Declared:
    """A server's declarations about a file; None means "not declared"."""

    etag: str | None = None
    size: int | None = None  # bytes
    hash: list[str] | None = None  # [algorithm, hexadecimal digest]


def declared_in(response):
    """The Declared of a full response (status 200) and of the redirects before it, where the hub names the hash."""
    answers = [answer.headers for answer in (*response.history, response)]
    tag, length = (answers[-1].get(name, "") for name in ("ETag", "Content-Length"))
    length = next((headers["X-Linked-Size"] for headers in answers if "X-Linked-Size" in headers), length)
    return Declared(
        etag=tag if re.fullmatch(r'"[!#-~]+"', tag) else None,
        size=int(length) if re.fullmatch(r"[0-9]{1,15}", length) else None,
        hash=declared_hash(answers),
    )


def declared_hash(answers):
    """[algorithm, hexadecimal digest] from these headers, the last answer first; None if no known hash is declared.

    The ETag of a server that is not the hub is opaque, even if it looks like a hash.
    """
    for headers in reversed(answers):
        tag = headers.get("X-Linked-ETag") or ("X-Repo-Commit" in headers and headers.get("ETag")) or ""
        digest = tag.removeprefix("W/").strip('"')
        if re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", digest):
            return ["sha256" if len(digest) == 64 else "git", digest]
    md5 = answers[-1].get("Content-MD5", "")
    return ["md5", base64.b64decode(md5).hex()] if re.fullmatch(r"[A-Za-z0-9+/]{22}==", md5) else None


def damage_of(part, declared, check):
    """The difference (str) from the server's declarations or from the kind that `check` expects; None if they agree.

    It is not raised as an exception, because its frames would keep the file open, and Windows could not delete it.
    """
    if declared.size not in (None, size_of(part)):
        return f"the file has {size_of(part)} bytes, but the server declares {declared.size}"
    if declared.hash and hash_of(part, declared.hash[0]) != declared.hash[1]:
        return f"the file does not have the hash ({declared.hash[0]}) that the server declares"
    try:
        check(part)
    except CheckpointError as error:
        return str(error)
    return None


def hash_of(path, algorithm):
    """The hexadecimal digest of a file; "git" is the hash that git gives a blob with this content."""
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(b"blob %d\0" % size_of(path))
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------ files on the disk


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def note_of(part):
    """The path at which the server's declarations are saved."""
    return part.with_name(part.name + ".json")


def read_declared(part):
    """The declarations about a partly downloaded file; Declared() if they were not saved, or are damaged."""
    try:
        return Declared(**json.loads(note_of(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Declared()


def forget(part):
    """Delete the part and the declarations about it."""
    part.unlink(missing_ok=True)
    note_of(part).unlink(missing_ok=True)


@contextmanager
def disk_errors(path):
    """Turn errors of the disk into DownloadError."""
    try:
        yield
    except OSError as error:
        raise DownloadError(f"{error.filename or path} cannot be written ({error.strerror or error})") from None


@contextmanager
def one_at_a_time(folder):
    """Wait until no other process downloads into this folder. The system releases a lock when its process ends."""
    with (folder / ".lock").open("a+b") as file:
        if not try_lock(file):
            print(f"another process is downloading into {folder}: waiting for it", file=sys.stderr)
            while not try_lock(file):
                time.sleep(0.1)
        yield


def try_lock(file):
    """Try to lock the open file; return whether that succeeded."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # the lock is taken; on Windows this is a PermissionError
        return False
    return True
