"""One file over a real server on the loopback address: the file, or one sentence, and never a wrong file.

Random sequences of faults: test_loading.py; locks: test_processes.py.
"""

import hashlib
import json
import os
import re
import time
from pathlib import Path

import download_faults
import numpy as np
import pytest
from download_faults import hashes
from file_server import BODY, closing, names_in, send, start_of, status, with_headers
from refusals import answered
from systems import needs_full_device, needs_links

from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download
from gpt2np.files.download import Declared, declared_hash, download_file, read_declared

pytestmark = pytest.mark.usefixtures("hurry")
OLD = bytes(reversed(BODY))  # the version of which 200,000 bytes are there already
HASHES, SHA256 = hashes(BODY), hashlib.sha256(BODY).hexdigest()


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


def each(answers):
    """The different ones."""
    return "; ".join(sorted({*answers}))


def test_what_is_asked_for_and_the_file_or_the_sentence(server, tmp_path, golden):
    """In downloads.txt, which `pytest --update` writes; and without the fault, the next call gets the file."""
    path = tmp_path / "f"

    def get(*faults, always=None, before=()):
        server.requests, server.faults["/f"] = [], always or [*faults]
        path.unlink(missing_ok=True)
        for name, content in zip(("f.part", "f.part.json"), before):
            (tmp_path / name).write_bytes(content)
        found, asked = outcome(server, path), [headers for _, headers in server.requests]
        assert all(headers["Accept-Encoding"] == "identity" for headers in asked)
        server.faults.clear()
        assert outcome(server, path) == BODY and names_in(tmp_path) == ["f"]
        assert found != BODY or len(server.requests) == len(asked)  # what is there is not fetched again
        ranges = [f"the rest, if {headers.get('If-Range')}" if "Range" in headers else "all" for headers in asked]
        return f"{'; '.join(ranges) or 'nothing'} -> {'the file' if found == BODY else found}"

    data = Path(__file__).with_name("downloads.txt")
    golden(data, answered(data, {**vars(download_faults), **globals(), **locals()}))


def test_a_server_that_stops_in_the_middle_or_does_not_answer(server, tmp_path, monkeypatch):
    def stalls(handler, body):
        send(handler, body[:100_000], length=len(body))
        time.sleep(1)

    server.faults["/f"] = [stalls]
    assert outcome(server, tmp_path / "f") == BODY and server.ranges()[-1] is not None
    monkeypatch.setattr(download, "TIMEOUT", (2, 0.05))
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


def test_a_server_that_cannot_be_reached_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(DownloadError, match="the connection failed"):
        download_file("http://localhost:9/f", tmp_path / "f", a_version)
