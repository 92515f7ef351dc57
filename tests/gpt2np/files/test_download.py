"""One file over a real server on the loopback address: the file, or one sentence, and never a wrong file.

Random sequences of faults: test_loading.py; locks: test_processes.py.
"""

import hashlib
import json
import os
import re
import time

import numpy as np
import pytest
from download_faults import HEADERS, RANGES, hashes
from file_server import (
    BODY,
    answer,
    closing,
    cut_after,
    names_in,
    partial,
    redirect,
    send,
    start_of,
    status,
    with_headers,
)
from systems import needs_full_device, needs_links

from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download
from gpt2np.files.download import Declared, declared_hash, download_file, read_declared

pytestmark = pytest.mark.usefixtures("hurry")
OLD = bytes(reversed(BODY))  # the version of which 200,000 bytes are there already
HASHES, SHA256 = hashes(BODY), hashlib.sha256(BODY).hexdigest()
REST = "bytes=200000-"


def a_version(path):
    """Refuses what is no version of the file; nothing may ever be made of two versions."""
    found = np.frombuffer(path.read_bytes(), np.uint8)
    if found.tobytes() not in (BODY, OLD):
        mine, old = (np.frombuffer(version, np.uint8) for version in (BODY, OLD))
        assert len(found) != len(BODY) or not ((found == mine) | (found == old)).all(), "two versions in one file"
        raise CheckpointError("not the body")


def outcome(server, path):
    """The file, or the sentence."""
    try:
        download_file(f"{server.url}/f", path, a_version)
        return path.read_bytes()
    except DownloadError as error:
        assert not path.exists() and str(error).isprintable() and len(str(error)) <= 500
        return str(error)


def some_more(handler, body):
    """The next 70,000 bytes, then the end of the connection."""
    start = start_of(handler)
    part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
    send(handler, body[start : start + 70_000], 206 if start else 200, length=len(body) - start, **part)
    handler.close_connection = True


def a_range_that_ends_early(handler, body):
    first = start_of(handler)
    last = min(first + 80_000, len(body)) - 1
    send(handler, body[first : last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(body)}")


def part(content=OLD[:200_000], **note):
    """What an earlier call has left: the bytes, and the note about them."""
    return content, json.dumps({"etag": '"v0"', "size": len(BODY), "hash": None} | note).encode()


FROM_OLD = {  # with 200,000 bytes of the old version: the first response, after which the download starts over
    "ignores If-Range, and says so": partial(BODY, etag='"v1"'),
    "does not say which version": partial(BODY, etag=None),
    "says a weaker validator": partial(BODY, etag='W/"v0"'),
    "has another total": partial(BODY + b"more", etag='"v0"'),
    **{f"says {range}": partial(BODY, etag='"v0"', range=range) for range in RANGES if range != RANGES[0]},
    "has a shorter file by now": status(416),
}
DATED = {"Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"}  # no promise that the rest fits
FAILS = "^the connection failed"
WRONG_HASH = r"^the file does not have the hash \(\w+\) that the server declares$"
CASES = {  # what is there before, the faults, the ranges that are asked for (or how many), the file or the sentence
    "nothing goes wrong": (None, [], [None], BODY),
    "progress: attempts are not counted": (None, [some_more] * 9, 5, BODY),
    "no progress: fewer bytes than before": (
        None, [cut_after(n, etag=None, reset=False) for n in (290_000, *[200_000] * 9)], 4, FAILS,
    ),
    "ranges that end early": (None, [cut_after(100_000), *[a_range_that_ends_early] * 5], None, BODY),
    "no ranges": (None, [cut_after(200_000), answer(BODY)], 2, BODY),
    "complete already": (part(BODY), [], [], BODY),
    "the file has changed": (part(), [], [REST], BODY),
    "a hash alone": (part(BODY[:200_000], etag=None, hash=["sha256", SHA256]), [], [REST], BODY),
    "a hash alone, of a changed file": (part(etag=None, hash=["sha256", SHA256]), [], [REST], WRONG_HASH),
    **{f"a damaged note {note}": ((b"something else", note), [], [None], BODY)
       for note in (b"", b"[]", b"{", b'{"size": 3, "more": 1}', b"\xff")},
    **{f"old, and the server {why}": (part(), [fault], [REST, None], BODY) for why, fault in FROM_OLD.items()},
    **{f"the validator {etag}": (None, [cut_after(200_000, etag, False, **DATED)], [None, None], BODY)
       for etag in (None, 'W/"v1"', "v1", '"\xe9"')},
    **{f"a part that was not asked for, {range}": (None, [partial(BODY, start=100, range=range)], [None] * 2, BODY)
       for range in (*RANGES, "rubbish")},
    **{name: (None, [with_headers(**declared)], [None], BODY) for name, declared in HASHES.items()},
    **{f"wrong {name}": (None, [with_headers(BODY[:-1] + b"?", **declared)], [None], WRONG_HASH)
       for name, declared in HASHES.items()},
    **{f"nothing declared, {headers}": (None, [with_headers(**headers)], [None], BODY) for headers in HEADERS},
    "no length": (None, [closing(answer(BODY, Content_Length=None))], [None], BODY),
    "a length that is too small": (None, [answer(BODY[:-5])], [None], "not the body"),
    "a length that is too large": (
        None, closing(answer(BODY, length=len(BODY) + 5)), None,
        r"5 more expected|ended after 300000 of 300005|IncompleteRead",
    ),
    "another size": (
        None, [with_headers(X_Linked_Size="1000")], [None], "the file has 300000 bytes, and the server declares 1000",
    ),
    **{f"{n}, permanent": (None, [status(n)], [None], f"^the server answered {n}") for n in (403, 404, 410)},
    **{f"{n}, again": (None, [status(n)] * 9, [None] * 4, f"^the server answered {n}") for n in (408, 429, 500, 503)},
    **{f"redirect to {url}": (None, redirect(url), None, r"^the (request|connection) failed \(")
       for url in ("http://[::1", "http://..", "file:///etc/passwd", "http://127.0.0.1:99999/", "/f")},
    "a web page": (
        None, with_headers(Content_Type="text/html; charset=utf-8"), [None],
        "the server sent a web page instead of the file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fault_and_what_is_asked_for(server, tmp_path, case):
    """And without the fault, the next call gets the file."""
    before, server.faults["/f"], ranges, expected = CASES[case]
    path = tmp_path / "f"
    if before:
        for name, content in zip(("f.part", "f.part.json"), before):
            (tmp_path / name).write_bytes(content)
    found = outcome(server, path)
    assert found == BODY if expected is BODY else re.search(expected, str(found)), str(found)[:200]
    assert ranges is None or server.ranges() == ranges or len(server.ranges()) == ranges
    for _, headers in server.requests:
        assert headers["Accept-Encoding"] == "identity"
        if headers.get("Range"):
            assert headers.get("If-Range") in ([None] if "hash alone" in case else ['"v0"', '"v1"'])
    server.faults.clear()
    asked = [*server.requests]
    assert outcome(server, path) == BODY and names_in(tmp_path) == ["f"]
    assert found != BODY or server.requests == asked  # what is there is not fetched again


@pytest.mark.parametrize("reset", [True, False])
def test_an_interrupted_download_resumes_where_it_stopped_also_in_a_later_call(server, tmp_path, reset):
    server.faults["/f"] = [cut_after(200_000, reset=reset)] * 2
    assert outcome(server, tmp_path / "f") == BODY
    first, *others = server.ranges()
    assert first is None and 1 <= len(others) <= 3 and all(range.startswith("bytes=") for range in others)
    server.faults["/f"] = [cut_after(200_000, reset=reset), *[status(503)] * 4]
    assert outcome(server, tmp_path / "g").startswith("the server answered 503")
    n_bytes = (tmp_path / "g.part").stat().st_size
    assert n_bytes > 0 and outcome(server, tmp_path / "g") == BODY and server.ranges()[-1] == f"bytes={n_bytes}-"


def test_a_server_that_stops_in_the_middle_or_does_not_answer(server, tmp_path, monkeypatch):
    def stalls(handler, body):
        send(handler, body[:100_000], length=len(body))
        time.sleep(0.3)

    monkeypatch.setattr(download, "TIMEOUT", (2, 0.05))
    server.faults["/f"] = [stalls]
    assert outcome(server, tmp_path / "f") == BODY and server.ranges()[-1] is not None
    server.faults["/f"] = [lambda *_: time.sleep(0.3)] * 4
    assert re.fullmatch(r"the connection failed \(.*timed out.*", outcome(server, tmp_path / "g"))


def test_what_is_declared_is_saved_also_of_an_empty_file(server, tmp_path):
    md5 = HASHES["md5, of the bucket"]
    server.faults["/f"] = [closing(with_headers(X_Linked_Size="300001", **md5)), *[status(503)] * 4]
    outcome(server, tmp_path / "f")
    declared = Declared('"v1"', 300_001, ["md5", hashlib.md5(BODY).hexdigest()])
    assert read_declared(tmp_path / "f.part") == declared and read_declared(tmp_path / "g.part") == Declared()
    server.files["/f"], server.faults = b"", {}
    download_file(f"{server.url}/f", tmp_path / "h", lambda path: None)
    assert (tmp_path / "h").read_bytes() == b""


def test_the_hash_is_that_of_the_last_response_that_declares_one():
    """The store at the end of the redirects is another host with an ETag of its own."""
    sha, old, store = {"X-Linked-ETag": f'"{SHA256}"'}, {"X-Linked-ETag": f'"{"0" * 64}"'}, {"ETag": f'"{"1" * 40}"'}
    for answers in ([sha, {}], [old, sha, {}], [{}, sha], [sha, store]):
        assert declared_hash(answers) == ["sha256", SHA256]
    for other in (store, {"ETag": "0" * 64}, {"X-Linked-ETag": '"none"'}, {"Content-MD5": "rubbish"}, {}):
        assert declared_hash([other]) is None


# ------------------------------------------------------------------------------------------------ the disk


@needs_full_device
@needs_links
def test_a_disk_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "f.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setattr(download, "forget", lambda part: None)
    message = r"124M cannot be written \(No space left on device\)"
    with pytest.raises(DownloadError, match=message), download.disk_errors(tmp_path / "124M"):
        download_file(f"{server.url}/f", tmp_path / "f", lambda path: None)
    with pytest.raises(DownloadError, match="124M cannot be written"), download.disk_errors(tmp_path / "124M"):
        (tmp_path / "file" / "124M").mkdir(parents=True)


def test_a_damaged_file_that_its_check_holds_open_can_be_deleted(server, tmp_path, monkeypatch):
    """As on Windows: an open file cannot be deleted, and the frames of a traceback may hold one."""
    opened = []

    class Held:
        def __init__(self):
            opened.append("one")

        def __del__(self):
            opened.clear()

    def check(path):
        held = Held()
        raise CheckpointError(f"damaged: {held}")

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda *path, **options: unlink(*path, **options) if not opened else 1 / 0)
    with pytest.raises(DownloadError, match="damaged"):
        download_file(f"{server.url}/f", tmp_path / "f", check)
