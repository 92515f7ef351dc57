"""One request for a file, or for the rest of it, and the checks of the response.

A partial response (status 206) is appended to the part only if it has the range that was asked for, the same validator
and the same total size. It overlaps the part: the last bytes of the part are requested again and must be the same.
Otherwise the download starts over: two versions of a file are never joined.

There are two time limits. `requests` limits the wait for the next bytes, but not for a whole header or piece, so a
server that sends a byte now and then could block it forever. So each of its calls runs in a thread, which is abandoned
when it takes too long.
"""

import re
import shutil
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime

from tqdm import tqdm

from .declared import forget, read_declared, size_of, what_is_declared, with_hash_of, write_declared
from .errors import DownloadError

TIMEOUT = (10, 30)  # seconds: to connect, and between two reads of the response
PATIENCE = 60  # seconds until the headers are complete, and for each piece
PIECE = 2**20  # bytes
READ = 2**16  # bytes of one read; an incomplete read is lost when the connection breaks
FIRST_READS = 2**12  # bytes of one read in the first piece, so that little of a short response is lost
OVERLAP = 2**10  # bytes that are requested again
MAX_SIZE = 10**10  # bytes; the largest file of these models has 6.5e9
MAX_WAIT = 60  # seconds, whatever Retry-After says


class TryAgain(Exception):
    """A transient error; the message says what happened."""

    def __init__(self, message, *, wait=0, begin_again=False):
        super().__init__(message)
        self.wait = wait  # seconds that the server asks for
        self.begin_again = begin_again  # the part cannot be used


def fetch_rest(url, part):
    """Append the missing rest to `part`. Returns what the server declared about the file."""
    declared, have = read_declared(part), size_of(part)
    if part.exists() and have == declared.size:
        return declared
    start = max(0, have - OVERLAP) if declared.validator and have < (declared.size or 0) else 0
    with response_to(url, rest_of(declared, start)) as response:
        check_status(response)
        limit = MAX_SIZE
        if response.status_code == 206:
            limit, declared = end_of_range(response, declared, start), with_hash_of(response, declared)
        else:
            start, declared = 0, what_is_declared(response)
            forget(part)
        write_declared(part, declared)
        limit = limit if declared.size is None else min(limit, declared.size)
        check_room(part, (declared.size or 0) - start)
        write(response, part, start, limit, declared.size)
    if declared.size is not None and size_of(part) < declared.size:
        raise TryAgain(f"the response ended after {size_of(part)} of {declared.size} bytes")
    return declared


def rest_of(declared, start):
    """The headers that request a file from byte `start` on, or all of it if it has changed."""
    condition = {"Range": f"bytes={start}-", "If-Range": declared.validator} if start else {}
    return {"Accept-Encoding": "identity", **condition}


def check_status(response):
    """Raise unless the response has the file, or a part of it."""
    status = response.status_code
    if status == 416:
        raise TryAgain("the server has another version of the file now", begin_again=True)
    if status >= 500 or status in (408, 429):
        raise TryAgain(f"the server answered {status} {response.reason}", wait=retry_after(response))
    if status not in (200, 206):
        raise DownloadError(f"the server answered {status} {response.reason}")
    if "html" in response.headers.get("Content-Type", "").lower():
        raise DownloadError("the server sent a web page instead of the file")
    encoding = response.headers.get("Content-Encoding", "")
    if re.search("gzip|deflate|compress|br|zstd", encoding.lower()):
        raise TryAgain(f"the server sent the file encoded ({encoding:.40}), which it was asked not to do")


def retry_after(response):
    """Seconds that the server asks to wait, given as a number or as a date; at most MAX_WAIT."""
    value = response.headers.get("Retry-After", "")
    try:
        seconds = int(value) if value.isdigit() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):  # neither a number nor a date
        return 0
    return min(max(seconds, 0), MAX_WAIT)


def end_of_range(response, declared, start):
    """Where a partial response ends, if it continues the declared file at byte `start`; otherwise raise TryAgain."""
    answered = response.headers.get("Content-Range", "none")
    numbers = re.fullmatch(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})", answered)
    if not start or not numbers or (int(numbers[1]), int(numbers[3])) != (start, declared.size):
        asked = f"bytes {start}-{declared.size - 1}/{declared.size}" if start else "all of it"
        raise TryAgain(f"asked for {asked}, and the server sent the range {answered:.60}", begin_again=True)
    if response.headers.get("ETag") != declared.validator:
        raise TryAgain("the server continued with another version of the file", begin_again=True)
    return int(numbers[2]) + 1


def write(response, part, start, limit, size):
    """Write the response into `part` from byte `start` up to `limit`; where they overlap, they must agree."""
    with (
        part.open("r+b" if start else "wb") as file,
        tqdm(
            desc=part.stem, total=size, initial=start, unit="B", unit_scale=True, disable=not sys.stderr.isatty()
        ) as bar,
    ):
        file.seek(start)
        known = file.read(OVERLAP) if start else b""
        file.seek(start)
        for piece in pieces(response):
            if piece[: len(known)] != known[: len(piece)]:
                raise TryAgain("the server continued with another file under the same ETag", begin_again=True)
            known = known[len(piece) :]
            if file.tell() + len(piece) > limit:
                raise TryAgain(f"the server sends more than {limit} bytes", begin_again=True)
            file.write(piece)
            bar.update(len(piece))


def check_room(part, n_bytes):
    free = shutil.disk_usage(part.parent).free
    if n_bytes > free:
        raise DownloadError(f"{n_bytes:,} bytes are needed, and the disk of {part.parent} has {free:,} left: make room")


# ------------------------------------------------------------------------------------------------ with a time limit


@contextmanager
def response_to(url, headers):
    """The response to a GET: its headers have arrived, its body is still to be read."""
    import requests  # here, since most runs download nothing and its import takes as long as NumPy's

    received = []  # with those of redirects, which requests leaves open if it cannot follow them

    def note(one, **_):
        received.append(one)
        if one.is_redirect:
            one.raw.close()  # requests would read its body, of any length, into memory

    options = {"stream": True, "timeout": TIMEOUT, "hooks": {"response": note}}
    try:
        try:
            response = within(PATIENCE, requests.get, url, headers=headers, **options)
        except requests.Timeout:
            raise TryAgain(f"no response within {TIMEOUT[1]} seconds") from None
        except TimeoutError:
            raise TryAgain(f"no complete response within {PATIENCE} seconds") from None
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise TryAgain(f"the connection failed ({reason(error)})") from None
        except Exception as error:  # of many types: a URL can be wrong in many ways
            raise DownloadError(f"the request failed ({reason(error)})") from None
        yield response
    finally:
        for response in received:
            hang_up(response)


def pieces(response):
    """The body in pieces: PIECE bytes, or as much as arrives in a second; before an error, what had arrived."""
    n_bytes, piece = FIRST_READS, True
    while piece:
        piece, problem = bytearray(), None
        try:
            within(PATIENCE, fill, piece, response.raw, n_bytes)
        except TimeoutError:
            problem = f"the server sent fewer than {n_bytes} bytes in {PATIENCE} seconds"
        except Exception as error:
            problem = f"the connection failed ({reason(error)})"
        yield bytes(piece)
        if problem:
            raise TryAgain(problem)
        n_bytes = READ


def fill(piece, body, n_bytes):
    """Read n_bytes at a time into a bytearray until it has PIECE bytes, a second is over, or the body ends."""
    end = time.monotonic() + 1
    while len(piece) < PIECE and time.monotonic() < end and (data := body.read(n_bytes, decode_content=False)):
        piece += data


def within(seconds, function, *arguments, **options):
    """Call the function: return or raise what it does, or raise TimeoutError if it takes longer than `seconds`.

    A response that comes later is closed.
    """
    outcome = {}  # "first": (value, error) of the call, or of the time limit, whichever is first

    def work():
        try:
            found = function(*arguments, **options), None
        except BaseException as error:
            found = None, error
        if outcome.setdefault("first", found) is not found and hasattr(found[0], "close"):
            found[0].close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    deadline = time.monotonic() + seconds
    while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
        thread.join(min(left, 1))  # at most a second, since on Windows Ctrl-C waits for join
    value, error = outcome.setdefault("first", (None, TimeoutError()))
    if error:
        raise error
    return value


def hang_up(response):
    """Close the connection, even if a thread is still reading from it."""
    with (
        suppress(OSError, ValueError, AttributeError),  # already closed
        socket.fromfd(response.raw.fileno(), socket.AF_INET, socket.SOCK_STREAM) as connection,
    ):
        connection.shutdown(socket.SHUT_RDWR)
    response.close()


def reason(error):
    """The innermost cause of an error raised by requests, at most 150 characters."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    inner = getattr(error, "reason", None) or error
    return re.sub(r"^(<.*?>|\w+\(.*?\)|.*?object at 0x\w+>): ", "", str(inner))[:150]
