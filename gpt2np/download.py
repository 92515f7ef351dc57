"""Fetching files: resumed where they were cut off, verified, and moved in place when they are whole.

A file is written to FILE.part. Beside it FILE.part.json keeps what the server declared at the beginning: a validator
(ETag or date), the size, and a hash if there is one. A later try asks for the rest, provided that the validator still
holds (`Range` with `If-Range`); otherwise it begins again. Only a file of the right size, hash and structure is renamed
to FILE, in one step, so what stands under its own name is whole. A lock makes a second process wait for the first.

Servers declare hashes in different ways: the Hugging Face hub as X-Linked-ETag (SHA-256) before it redirects, or as
ETag (the SHA-1 of a git blob) for small files; OpenAI's bucket as Content-MD5.
Leaves out: what files a model has and where they are, see loading.py.
"""

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager

from tqdm import tqdm

from .errors import CheckpointError, DownloadError

TIMEOUT = (10, 30)  # seconds: to connect, and between two pieces of the answer
WAITS = (1, 2, 4)  # seconds before each further try; a try that brought data starts the count anew
CHUNK = 2**16  # bytes
MAX_SIZE = 10**10  # bytes; the largest file of these models has 6.5e9


class TryAgain(Exception):
    """Something that may be gone in a moment; the message says what."""


def download_file(url, path, check):
    """Fetch `url` into `path`, unless it is there.

    Parameters
    ----------
    url : str
    path : Path
    check : callable
        check(path of the whole download); raises CheckpointError if it is not a file of the kind expected.

    Raises
    ------
    DownloadError
        What went wrong, in words that go on from "URL: ". What was fetched so far stays in FILE.part.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with only_one(path):
            if not path.exists():
                fetch(url, path, check)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(f"the disk of {path.parent} is full: make room") from None
        raise DownloadError(f"{path} cannot be written ({error.strerror or error})") from None


def fetch(url, path, check):
    """Try until the file is whole, or WAITS is used up without progress."""
    part, waits, mended = path.with_name(path.name + ".part"), list(WAITS), False
    while True:
        size_before = size_of(part)
        try:
            declared = fetch_rest(url, part)
            verify(part, declared, check)
        except TryAgain as error:
            if size_of(part) > size_before:
                waits = list(WAITS)
            if not waits:
                raise DownloadError(str(error)) from None
            time.sleep(waits.pop(0))
        except CheckpointError as error:
            forget(part)
            if mended:
                raise DownloadError(str(error)) from None
            mended = True  # once more from the beginning: what was resumed may have been another file
        else:
            os.replace(part, path)
            forget(part)
            return


def fetch_rest(url, part):
    """Append to `part` what it lacks. Returns what the server declared, a dict with "validator", "size" and "hash"."""
    import requests  # here, since most runs download nothing, and it takes as long to import as NumPy

    declared, have = read_declared(part), size_of(part)
    headers = {"Accept-Encoding": "identity"}
    if have and declared.get("validator"):
        headers |= {"Range": f"bytes={have}-", "If-Range": declared["validator"]}
    else:
        have = 0
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == 416 and have == declared.get("size"):
                return declared  # nothing is lacking
            check_status(response, part)
            resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if response.status_code != 206 or not resumed:
                have, declared = 0, what_is_declared(response)
                write_declared(part, declared)
            check_room(part, (declared["size"] or 0) - have)
            write(response, part, have, declared["size"])
    except requests.Timeout:
        raise TryAgain(f"no answer within {TIMEOUT[1]} seconds") from None
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        raise TryAgain(f"the connection failed ({reason(error)})") from None
    except requests.RequestException as error:
        raise DownloadError(f"the request failed ({reason(error)})") from None
    if declared["size"] is not None and size_of(part) < declared["size"]:
        raise TryAgain(f"the answer ended after {size_of(part)} of {declared['size']} bytes")
    return declared


def check_status(response, part):
    status = response.status_code
    if status == 416:
        forget(part)
        raise TryAgain("the server has another file by now")
    if status >= 500 or status == 429:
        raise TryAgain(f"the server answered {status} {response.reason}")
    if status not in (200, 206):
        raise DownloadError(f"the server answered {status} {response.reason}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise DownloadError("the server sent a web page instead of the file")


def write(response, part, have, size):
    """Write the answer behind the first `have` bytes of `part`."""
    with (
        part.open("r+b" if have else "wb") as file,
        tqdm(
            desc=part.stem, total=size, initial=have, unit="B", unit_scale=True, disable=not sys.stderr.isatty()
        ) as bar,
    ):
        file.seek(have)
        for chunk in response.iter_content(CHUNK):
            file.write(chunk)
            bar.update(len(chunk))
            if file.tell() > (MAX_SIZE if size is None else size):
                raise CheckpointError(f"the server sends more than {size or MAX_SIZE} bytes")


def what_is_declared(response):
    """The validator, size and hash of an answer; where there were redirects, the first may know more than the last."""
    first, last = [*response.history, response][0].headers, response.headers
    length, tag = first.get("X-Linked-Size") or last.get("Content-Length"), last.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else last.get("Last-Modified")
    size = int(length) if length and re.fullmatch(r"\d{1,15}", length) else None
    return {"validator": validator, "size": size, "hash": declared_hash(first, last)}


def declared_hash(first, last):
    """[algorithm, hexadecimal digest], or None where nothing declared is a hash."""
    if re.fullmatch(r"[\w+/]{22}==", last.get("Content-MD5", "")):
        return ["md5", base64.b64decode(last["Content-MD5"]).hex()]
    tag = (first.get("X-Linked-ETag") or first.get("ETag", "")).removeprefix("W/").strip('"').lower()
    algorithm = {64: "sha256", 40: "git", 32: "md5"}.get(len(tag))
    return [algorithm, tag] if algorithm and re.fullmatch("[0-9a-f]+", tag) else None


def verify(part, declared, check):
    """Raise CheckpointError unless the download is what the server declared and what `check` expects."""
    if declared["size"] is not None and size_of(part) != declared["size"]:
        raise CheckpointError(f"the file has {size_of(part)} bytes, and the server declares {declared['size']}")
    if declared["hash"]:
        algorithm, digest = declared["hash"]
        found = hash_of(part, algorithm)
        if found != digest:
            raise CheckpointError(f"the file's hash ({algorithm}) is {found}, and the server declares {digest}")
    check(part)


def hash_of(path, algorithm):
    """The hexadecimal digest of a file; "git" is git's own hash of a file's content."""
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(b"blob %d\0" % size_of(path))
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_room(part, n_bytes):
    free = shutil.disk_usage(part.parent).free
    if n_bytes > free:
        raise DownloadError(
            f"{n_bytes / 1e9:.2f} GB are needed, and the disk of {part.parent} has {free / 1e9:.2f} GB left: make room"
        )


def reason(error):
    """The innermost cause of an error of requests, in a few words."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    inner = getattr(error, "reason", None) or error
    return re.sub(r"^<.*?>: |^.*?object at 0x\w+>: ", "", str(inner))[:200]


# ------------------------------------------------------------------------------------------------ files beside the part


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def declared_file(part):
    return part.with_name(part.name + ".json")


def read_declared(part):
    try:
        declared = json.loads(declared_file(part).read_text(encoding="utf-8"))
        return declared if declared.keys() == {"validator", "size", "hash"} else {}
    except (OSError, ValueError, AttributeError):
        return {}


def write_declared(part, declared):
    part.unlink(missing_ok=True)
    declared_file(part).write_text(json.dumps(declared), encoding="utf-8")


def forget(part):
    """Remove the part, and what was declared of it."""
    part.unlink(missing_ok=True)
    declared_file(part).unlink(missing_ok=True)


@contextmanager
def only_one(path):
    """Wait while another process fetches the same file. The lock goes with its process, however that ends."""
    lock = path.with_name(path.name + ".lock")
    with lock.open("a+b") as file:
        if not take_lock(file, wait=False):
            print(f"another process is downloading {path.name}: waiting for it", file=sys.stderr)
            take_lock(file, wait=True)
        yield
        if path.exists():  # nobody needs the lock any more
            lock.unlink(missing_ok=True)


def take_lock(file, wait):
    try:
        import fcntl
    except ImportError:  # Windows: no lock, but the rename in the end is still one step
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
