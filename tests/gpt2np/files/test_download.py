"""One file over a real server on the loopback address: the file, or one sentence, and never a wrong file."""

import base64
import hashlib
import json
import os
import socket
import threading
import time

import fake_msvcrt
import pytest
from file_server import (
    BODY,
    closing,
    cut_after,
    fetch,
    ignores_ranges,
    is_body,
    left_over,
    partial,
    redirect,
    send,
    status,
    with_headers,
)
from systems import needs_full_device, needs_links

from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download
from gpt2np.files.download import Declared, declared_hash, download_file, read_declared

pytestmark = pytest.mark.usefixtures("hurry")


def test_a_file_arrives_and_nothing_else_is_left(server, tmp_path):
    assert fetch(server, tmp_path / "f") == BODY
    assert left_over(tmp_path / "f") == []
    fetch(server, tmp_path / "f")
    assert len(server.requests) == 1  # what is there is not fetched again


# ------------------------------------------------------------------------------------------------ interruptions


@pytest.mark.parametrize("reset", [True, False])
def test_an_interrupted_download_resumes_where_it_stopped(server, tmp_path, reset):
    server.faults["/f"] = [cut_after(200_000, reset=reset)] * 2
    assert fetch(server, tmp_path / "f") == BODY
    first, *others = server.ranges()
    assert first is None and 1 <= len(others) <= 3 and all(range.startswith("bytes=") for range in others)
    assert all(headers["If-Range"] == '"v1"' for _, headers in server.requests[1:])
    assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)


def test_an_interrupted_download_resumes_in_a_later_call(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), *[status(503)] * 4]
    with pytest.raises(DownloadError, match="503"):
        fetch(server, tmp_path / "f")
    n_bytes = (tmp_path / "f.part").stat().st_size
    assert n_bytes > 0 and not (tmp_path / "f").exists()
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges()[-1] == f"bytes={n_bytes}-" and left_over(tmp_path / "f") == []


def test_attempts_with_progress_are_not_counted(server, tmp_path):
    def some_more(handler, body):
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        send(handler, body[start : start + 70_000], 206 if start else 200, length=len(body) - start, **part)
        handler.close_connection = True

    server.faults["/f"] = [some_more] * 9
    assert fetch(server, tmp_path / "f") == BODY
    assert len(server.requests) == 5


def test_fewer_bytes_than_ever_before_are_no_progress(server, tmp_path):
    """Without ranges, each attempt starts over."""
    server.faults["/f"] = [cut_after(n, etag=None, reset=False) for n in (290_000, *[200_000] * 9)]
    with pytest.raises(DownloadError, match="the connection failed"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 1 + len(download.WAITS)


def test_a_server_that_stops_in_the_middle(server, tmp_path):
    def stalls(handler, body):
        send(handler, body[:100_000], length=len(body))
        time.sleep(1)

    server.faults["/f"] = [stalls]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges()[-1] is not None


def test_a_range_that_ends_early_is_followed_by_the_next(server, tmp_path):
    def some(handler, body):
        first = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        last = min(first + 80_000, len(body)) - 1
        send(handler, body[first : last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(body)}")

    server.faults["/f"] = [cut_after(100_000), *[some] * 5]
    assert fetch(server, tmp_path / "f") == BODY


def test_a_part_that_is_complete_already(server, tmp_path):
    old_part(tmp_path / "f", BODY)
    assert fetch(server, tmp_path / "f") == BODY and server.requests == []


@pytest.mark.parametrize("note", [b"", b"[]", b"{", b'{"size": 3, "more": 1}', b"\xff"])
def test_a_damaged_note_makes_the_download_start_over(server, tmp_path, note):
    old_part(tmp_path / "f", b"something else")
    (tmp_path / "f.part.json").write_bytes(note)
    assert fetch(server, tmp_path / "f") == BODY and server.ranges() == [None]


# ------------------------------------------------------------------------------------------------ versions of a file


OLD = bytes(reversed(BODY))  # the version of which 200,000 bytes are there already
MD5 = base64.b64encode(hashlib.md5(BODY).digest()).decode()
SHA256 = hashlib.sha256(BODY).hexdigest()
GIT = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()


def old_part(path, content=OLD[:200_000], **declared):
    path.with_name("f.part").write_bytes(content)
    declared = {"etag": '"v0"', "size": len(BODY), "hash": None} | declared
    path.with_name("f.part.json").write_text(json.dumps(declared))
    return path


def test_a_file_that_changed_is_downloaded_again(server, tmp_path):
    assert fetch(server, old_part(tmp_path / "f")) == BODY
    assert server.ranges() == ["bytes=200000-"] and server.requests[0][1]["If-Range"] == '"v0"'


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (partial(BODY, etag='"v1"'), "ignores If-Range, and says so"),
        (partial(BODY, etag=None), "does not say which version"),
        (partial(BODY, etag='W/"v0"'), "says a weaker validator"),
        (partial(BODY + b"more", etag='"v0"'), "has another total"),
        (partial(BODY, etag='"v0"', range="bytes {start}-{last}/*"), "does not know the total"),
        (partial(BODY, etag='"v0"', range="bytes 0-{last}/{n}"), "sends another range"),
        (partial(BODY, etag='"v0"', range=None), "sends no range"),
        (status(416), "has a shorter file by now"),
    ],
)
def test_two_versions_are_never_joined(server, tmp_path, fault, why):
    server.faults["/f"] = [fault]
    assert fetch(server, old_part(tmp_path / "f")) == BODY
    assert server.ranges() == ["bytes=200000-", None], why


def test_without_ranges_the_download_starts_over(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), ignores_ranges]
    assert fetch(server, tmp_path / "f") == BODY


@pytest.mark.parametrize("etag", [None, 'W/"v1"', "v1", '"\xe9"'])
def test_without_a_strong_validator_or_a_hash_nothing_is_resumed(server, tmp_path, etag):
    dated = {"Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"}
    server.faults["/f"] = [
        closing(lambda handler, body: send(handler, body[:200_000], length=len(body), etag=etag, **dated))
    ]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges() == [None, None]


@pytest.mark.parametrize("content", [BODY[:200_000], OLD[:200_000]], ids=["same", "changed"])
def test_with_a_hash_alone_a_download_resumes_and_the_whole_file_is_checked(server, tmp_path, content):
    path = old_part(tmp_path / "f", content, etag=None, hash=["sha256", SHA256])
    if content == OLD[:200_000]:
        with pytest.raises(DownloadError, match="does not have the hash"):
            fetch(server, path)
    assert fetch(server, path) == BODY
    assert server.ranges() == ["bytes=200000-", None][: 1 if content == BODY[:200_000] else 2]
    assert "If-Range" not in server.requests[0][1]


def test_another_file_under_the_same_etag_is_noticed_by_the_check_of_the_whole(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: cut_after(200_000)(handler, OLD)]
    with pytest.raises(DownloadError, match="not the body"):
        fetch(server, tmp_path / "f", is_body)
    assert list(tmp_path.iterdir()) == []  # so the next call starts from the beginning
    assert fetch(server, tmp_path / "f", is_body) == BODY


@pytest.mark.parametrize("range", ["bytes 0-{last}/{n}", "bytes 100-{last}/{n}", "rubbish", None])
def test_a_partial_response_to_a_request_for_the_whole_file(server, tmp_path, range):
    server.faults["/f"] = [partial(BODY, start=100, range=range)]
    assert fetch(server, tmp_path / "f") == BODY


# ------------------------------------------------------------------------------------------------ sizes and hashes


HASHES = {
    "sha256, of the hub's large files": {"X_Linked_ETag": f'"{SHA256}"'},
    "git, of the hub's small files": {"etag": f'"{GIT}"', "X_Repo_Commit": "abc"},
    "git, weak": {"etag": f'W/"{GIT}"', "X_Repo_Commit": "abc"},
    "md5, of the bucket": {"Content_MD5": MD5},
}


@pytest.mark.parametrize("name", HASHES)
def test_a_declared_hash_is_checked(server, tmp_path, name):
    server.faults["/f"] = [with_headers(**HASHES[name])]
    assert fetch(server, tmp_path / "f") == BODY
    server.files["/f"] = BODY[:-1] + b"?"
    server.faults["/f"] = [with_headers(**HASHES[name])]
    with pytest.raises(DownloadError, match=r"the file does not have the hash \(\w+\) that the server declares"):
        fetch(server, tmp_path / "g")
    assert left_over(tmp_path / "f") == [] and not server.faults["/f"]


@pytest.mark.parametrize(
    "headers",
    [{"ETag": f'"{GIT}"'}, {"ETag": "0" * 64}, {"X-Linked-ETag": '"none"'}, {"Content-MD5": "rubbish"}, {}],
)
def test_other_headers_are_not_mistaken_for_a_hash(headers):
    assert declared_hash([headers]) is None


def test_the_hash_is_that_of_the_last_response_that_declares_one(server, tmp_path):
    """The store at the end of the redirects is another host with an ETag of its own."""
    sha, old = {"X-Linked-ETag": f'"{SHA256}"'}, {"X-Linked-ETag": f'"{"0" * 64}"'}
    for answers in ([sha, {}], [old, sha, {}], [{}, sha]):
        assert declared_hash(answers) == ["sha256", SHA256]
    store = server.url.replace("127.0.0.1", "localhost")
    server.files["/store"] = BODY[:-1] + b"?"
    server.faults["/f"] = redirect(f"{store}/store", **HASHES["sha256, of the hub's large files"])
    with pytest.raises(DownloadError, match="hash"):
        fetch(server, tmp_path / "f")


def test_a_length_that_is_too_large(server, tmp_path):
    server.faults["/f"] = closing(lambda handler, body: send(handler, body, length=len(body) + 5))
    with pytest.raises(DownloadError, match=r"5 more expected|ended after 300000 of 300005|IncompleteRead"):
        fetch(server, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_length_that_is_too_small(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, body[:-5])]
    with pytest.raises(DownloadError, match="not the body"):
        fetch(server, tmp_path / "f", is_body)
    server.faults["/f"] = [with_headers(X_Linked_Size="1000")]
    with pytest.raises(DownloadError, match="the file has 300000 bytes, and the server declares 1000"):
        fetch(server, tmp_path / "f")
    assert left_over(tmp_path / "f") == []


def until_the_end(handler, body):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    handler.close_connection = True


def in_chunks(handler, body):
    pieces = b"".join(b"%x\r\n%b\r\n" % (50_000, body[i : i + 50_000]) for i in range(0, len(body), 50_000))
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")


@pytest.mark.parametrize("fault", [until_the_end, in_chunks, with_headers(X_Linked_Size="no number")])
def test_a_body_without_a_length_arrives(server, tmp_path, fault):
    server.faults["/f"] = [fault]
    assert fetch(server, tmp_path / "f") == BODY
    assert len(server.requests) == 1 and left_over(tmp_path / "f") == []


def test_an_empty_file_arrives(server, tmp_path):
    server.files["/f"] = b""
    assert fetch(server, tmp_path / "f") == b"" and left_over(tmp_path / "f") == []


def test_what_is_declared_is_saved(server, tmp_path):
    server.faults["/f"] = [closing(with_headers(Content_MD5=MD5, X_Linked_Size="300001")), *[status(503)] * 4]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path / "f")
    declared = Declared('"v1"', 300_001, ["md5", hashlib.md5(BODY).hexdigest()])
    assert read_declared(tmp_path / "f.part") == declared and read_declared(tmp_path / "g.part") == Declared()


# ------------------------------------------------------------------------------------------------ failures


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_permanent_error_is_not_retried(server, tmp_path, code):
    server.faults["/f"] = [status(code)]
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 1 and left_over(tmp_path / "f") == []


@pytest.mark.parametrize("code", [408, 429, 500, 503])
def test_a_transient_error_is_retried(server, tmp_path, code):
    server.faults["/f"] = [status(code), status(code)]
    assert fetch(server, tmp_path / "f") == BODY
    server.faults["/f"] = [status(code)] * 9
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "g")
    assert len(server.requests) == 3 + 4 and left_over(tmp_path / "f") == []


def test_no_server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/f"
    with pytest.raises(DownloadError, match=r"^the connection failed \(.*refused\)$"):
        download_file(url, tmp_path / "f", lambda path: None)


def test_a_server_that_does_not_answer(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", (2, 0.05))
    server.faults["/f"] = [lambda *_: time.sleep(0.3)] * 4
    with pytest.raises(DownloadError, match=r"the connection failed \(.*timed out"):
        fetch(server, tmp_path / "f")


@pytest.mark.parametrize("target", ["http://[::1", "http://..", "file:///etc/passwd", "http://127.0.0.1:99999/", "/f"])
def test_a_redirect_to_nowhere(server, tmp_path, target):
    server.faults["/f"] = redirect(target)
    with pytest.raises(DownloadError, match=r"^the (request|connection) failed \("):
        fetch(server, tmp_path / "f")
    assert left_over(tmp_path / "f") == []


def test_a_web_page_instead_of_the_file(server, tmp_path):
    server.faults["/f"] = with_headers(Content_Type="text/html; charset=utf-8")
    with pytest.raises(DownloadError, match="the server sent a web page instead of the file"):
        fetch(server, tmp_path / "f")


def test_what_a_server_says_is_one_short_line(server, tmp_path):
    def rude(handler, body):
        handler.connection.sendall(b"HTTP/1.1 404 \x1b[2J" + b"x" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n")

    server.faults["/f"] = rude
    with pytest.raises(DownloadError) as caught:
        fetch(server, tmp_path / "f")
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 500


def test_a_name_from_the_server_is_not_used(server, tmp_path):
    server.faults["/f"] = [with_headers(Content_Disposition='attachment; filename="../../evil"')]
    assert fetch(server, tmp_path / "f") == BODY
    assert [path.name for path in tmp_path.rglob("*")] == ["f"]


# ------------------------------------------------------------------------------------------------ the disk


@needs_full_device
@needs_links
def test_a_full_disk(server, tmp_path, monkeypatch):
    (tmp_path / "f.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    monkeypatch.setattr(download, "forget", lambda part: None)
    message = r"124M cannot be written \(No space left on device\)"
    with pytest.raises(DownloadError, match=message), download.disk_errors(tmp_path / "124M"):
        fetch(server, tmp_path / "f")


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way of a folder")
    with pytest.raises(DownloadError, match="124M cannot be written"), download.disk_errors(tmp_path / "124M"):
        (tmp_path / "file" / "124M").mkdir(parents=True)


@pytest.mark.parametrize("system", ["Windows", "others"])
def test_one_download_at_a_time(tmp_path, capsys, monkeypatch, system):
    if system == "Windows":
        monkeypatch.setattr(download, "fcntl", None)
        monkeypatch.setattr(download, "msvcrt", fake_msvcrt, raising=False)
    order, inside, seen, said = [], threading.Event(), threading.Event(), ""

    def work(name):
        with download.one_at_a_time(tmp_path):
            order.append(name)
            inside.set()
            seen.wait(20)
            order.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    threads[0].start()
    assert inside.wait(20)
    threads[1].start()
    for _ in range(2000):  # the first stays inside until the second has said that it waits
        said += capsys.readouterr().err
        if "waiting" in said:
            break
        time.sleep(0.01)
    seen.set()
    for thread in threads:
        thread.join()
    assert order == list("aabb")
    assert f"another process is downloading into {tmp_path}: waiting for it" in said


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
        fetch(server, tmp_path / "f", check)
