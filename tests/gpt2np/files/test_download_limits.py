"""One file, in bounded time, with no errors but this library's, and nothing left on the disk if nothing arrived."""

import gc
import json
import threading
import time
from email.utils import formatdate
from types import SimpleNamespace

import pytest
from file_server import (
    BODY,
    closing,
    cut_after,
    end_with_reset,
    fetch,
    left_over,
    redirect,
    send,
    with_headers,
)

from gpt2np import DownloadError
from gpt2np.files import download, transfer

# ------------------------------------------------------------------------------------------------ time


FINISHED = []  # what was sent to its end


def drip(handler, *, before=b"", chunked=False):
    """One byte now and then, more often than any read would wait."""
    end_with_reset(handler)
    handler.connection.sendall(before)
    try:
        for _ in range(300):
            handler.connection.sendall(b"1\r\nx\r\n" if chunked else b"x")
            time.sleep(0.02)
        FINISHED.append(handler.path)
    except OSError:
        pass
    handler.close_connection = True


SLOW = {
    "a header": lambda handler, body: drip(handler, before=b"HTTP/1.1 200 OK\r\nX-Name: "),
    "a status line": lambda handler, body: drip(handler),
    "a body": lambda handler, body: drip(handler, before=b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"),
    "a body without a length": lambda handler, body: drip(handler, before=b"HTTP/1.1 200 OK\r\n\r\n"),
    "chunks": lambda handler, body: drip(
        handler, before=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunked=True
    ),
}


@pytest.mark.parametrize("what", SLOW)
def test_a_server_that_sends_a_byte_now_and_then_does_not_block_it_forever(server, tmp_path, monkeypatch, what):
    monkeypatch.setattr(transfer, "PATIENCE", 0.2)
    before, FINISHED[:] = threading.enumerate(), []
    server.faults["/f"] = [SLOW[what]]
    assert fetch(server, tmp_path / "f") == BODY and not FINISHED
    if "body" in what:  # the threads that read it have been woken up
        workers = [t for t in threading.enumerate() if t not in before and t.name.endswith("(work)")]
        assert all(worker.join(5) is None and not worker.is_alive() for worker in workers)


@pytest.mark.parametrize(
    ("what", "message"),
    [("a header", "no complete response within"), ("a body", "sent fewer than 4096 bytes in 0.1 seconds")],
)
def test_a_server_that_stays_slow_is_given_up(server, tmp_path, monkeypatch, what, message):
    waited = []  # before each further attempt; on a busy machine an attempt may end before the server hears of it
    monkeypatch.setattr(download, "time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    monkeypatch.setattr(transfer, "PATIENCE", 0.1)
    server.faults["/f"] = SLOW[what]
    with pytest.raises(DownloadError, match=message):
        fetch(server, tmp_path / "f")
    assert waited == [*download.WAITS]


def test_a_response_that_comes_too_late_is_closed():
    closed = threading.Event()

    class Response:
        def close(self):
            closed.set()

    def respond(seconds):
        time.sleep(seconds)
        return Response()

    with pytest.raises(TimeoutError):
        transfer.within(0.05, respond, 0.2)
    assert closed.wait(5)
    closed.clear()
    assert isinstance(transfer.within(5, respond, 0), Response) and not closed.is_set()


def test_more_than_ever_before_is_progress_and_nothing_else(server, tmp_path):
    """Without ranges, each attempt starts over: 200,000 bytes after 290,000 are no progress."""
    cuts = [cut_after(n, etag=None, reset=False) for n in (200_000, 290_000, *[200_000, 290_000] * 9)]
    server.faults["/f"] = cuts
    with pytest.raises(DownloadError, match="the connection failed"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 2 + 3


def test_small_steps_are_progress(server, tmp_path):
    def some(handler, body):
        asked = handler.headers.get("Range")
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        content_range = {"Content_Range": f"bytes {first}-{len(body) - 1}/{len(body)}"} if asked else {}
        send(handler, body[first:][:10_000], 206 if asked else 200, length=len(body) - first, **content_range)

    server.files["/f"] = BODY[:100_000]
    server.faults["/f"] = [closing(some)] * 12
    assert fetch(server, tmp_path / "f") == BODY[:100_000]


def test_progress_has_a_minimum_rate(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LEAST_RATE", 10**9)
    server.faults["/f"] = [cut_after(n) for n in (50_000, 100_000, 150_000, 200_000, 250_000)]
    with pytest.raises(DownloadError, match="the connection failed"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("100000", transfer.MAX_WAIT),
        (lambda: formatdate(time.time() + 20, usegmt=True), 20),
        (lambda: formatdate(time.time() - 20, usegmt=True), 0.01),
        *[(nonsense, 0.01) for nonsense in ("-5", "soon", "1e9", "9" * 5000, "", "Mon, 99 Foo")],
    ],
)
def test_retry_after_is_respected(server, tmp_path, monkeypatch, value, seconds):
    waited = []
    monkeypatch.setattr(download, "time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    value = value() if callable(value) else value
    server.faults["/f"] = [lambda handler, body: send(handler, b"", 503, Retry_After=value)]
    assert fetch(server, tmp_path / "f") == BODY
    assert len(waited) == 1 and abs(waited[0] - seconds) < 5 and waited[0] >= 0.01


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    "target",
    ["http://[::1", "http://..", "http://" + "a" * 70 + ".x", "http://\xff/", "file:///etc/passwd", "ftp://127.0.0.1/f"]
    + ["http://127.0.0.1:99999/", "http://127.0.0.1:-1/", "http://\x00/", "//", "http:///x", "data:,x", "http://a\tb/"],
)
def test_a_redirect_to_nowhere_is_an_error_of_this_library(server, tmp_path, target):
    server.faults["/f"] = redirect(target)
    with pytest.raises(DownloadError, match=r"the request failed|the connection failed|the server answered"):
        fetch(server, tmp_path / "f")
    gc.collect()
    assert left_over(tmp_path / "f") == []


@pytest.mark.parametrize("reason", ["\x1b[2J\x1b[1;1H gone", "x" * 60_000, "\xff\x85\x9b31m"])
def test_what_a_server_says_is_one_short_line(server, tmp_path, reason):
    def rude(handler, body):
        handler.connection.sendall(f"HTTP/1.1 404 {reason}\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))

    server.faults["/f"] = rude
    with pytest.raises(DownloadError) as caught:
        fetch(server, tmp_path / "f")
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 500


NOTES = [
    {"validator": 5, "size": 300_000, "hash": None},
    {"validator": '"v0"\r\nX-Evil: 1', "size": 300_000, "hash": None},
    {"validator": '"\u2603"', "size": 300_000, "hash": None},
    {"validator": '"v0"', "size": "300000", "hash": None},
    {"validator": '"v0"', "size": -1, "hash": None},
    {"validator": '"v0"', "size": True, "hash": None},
    {"validator": '"v0"', "size": 300_000, "hash": ["shake_128", "00"]},
    {"validator": '"v0"', "size": 300_000, "hash": "md5"},
    {"validator": '"v0"', "size": 300_000, "hash": [["md5"], {}]},
    {"validator": '"v0"', "size": 300_000, "hash": None, "more": 1},
]


@pytest.mark.parametrize("note", [*map(json.dumps, NOTES), "[" * 100_000, "null", '"text"', "\ud800"])
def test_nonsense_in_the_metadata_of_the_part_makes_the_download_start_over(server, tmp_path, note):
    (tmp_path / "f.part").write_bytes(BODY[:200_000])
    (tmp_path / "f.part.json").write_text(note, "utf-8", "surrogatepass")
    assert fetch(server, tmp_path / "f") == BODY and server.ranges() == [None]


@pytest.mark.parametrize("encoding", ["gzip", "br", "X-GZIP"])
def test_an_encoding_that_was_not_asked_for(server, tmp_path, encoding):
    server.faults["/f"] = [with_headers(Content_Encoding=encoding)]
    assert fetch(server, tmp_path / "f") == BODY
    server.faults["/f"] = with_headers(Content_Encoding=encoding)
    with pytest.raises(DownloadError, match=rf"sent the file encoded \({encoding}\)"):
        fetch(server, tmp_path / "g")


@pytest.mark.parametrize("encoding", ["identity", "", "aws-chunked"])
def test_an_encoding_that_changes_nothing(server, tmp_path, encoding):
    server.faults["/f"] = [with_headers(Content_Encoding=encoding)]
    assert fetch(server, tmp_path / "f") == BODY and len(server.requests) == 1


@pytest.mark.parametrize("kind", ["TEXT/HTML", "application/xhtml+xml; charset=x"])
def test_web_pages_of_other_kinds(server, tmp_path, kind):
    server.faults["/f"] = with_headers(Content_Type=kind)
    with pytest.raises(DownloadError, match="a web page instead of the file"):
        fetch(server, tmp_path / "f")


def test_the_reason_of_an_error_is_its_innermost_one():
    assert transfer.reason(TimeoutError()) == "" and transfer.reason(ValueError(5)) == "5"
    inner = ConnectionError(ValueError(OSError("x" * 200)))
    inner.args[0].args[0].reason = "what went wrong"
    assert transfer.reason(inner) == "what went wrong"
    del inner.args[0].args[0].reason
    assert transfer.reason(inner) == "x" * 150


def test_whatever_a_check_raises_is_an_error_of_this_library(server, tmp_path):
    def confused(path):
        raise KeyError("no such thing")

    with pytest.raises(DownloadError, match=r"the file cannot be read \(KeyError"):
        fetch(server, tmp_path / "f", confused)
