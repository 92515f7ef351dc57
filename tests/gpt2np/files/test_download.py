"""One file over a real server on the loopback address: what breaks off, stops, or is another file."""

import json
import re
import socket
import time

import pytest
from file_server import BODY, cut_after, fetch, ignores_ranges, is_body, left_over, send, status, with_headers
from systems import needs_full_device, needs_links

from gpt2np import DownloadError
from gpt2np.files import download, transfer
from gpt2np.files.download import download_file

pytestmark = pytest.mark.usefixtures("hurry")


def test_a_file_arrives_and_nothing_else_is_left(server, tmp_path):
    assert fetch(server, tmp_path / "new" / "f") == BODY
    assert left_over(tmp_path / "new" / "f") == []
    fetch(server, tmp_path / "new" / "f")
    assert len(server.requests) == 1  # what is there is not fetched again


@pytest.mark.parametrize("reset", [True, False])
def test_an_interrupted_download_resumes_where_it_stopped(server, tmp_path, reset):
    server.faults["/f"] = [cut_after(200_000, reset=reset)] * 2
    assert fetch(server, tmp_path / "f") == BODY
    first, *others = server.ranges()
    assert first is None and 1 <= len(others) <= 3 and all(range.startswith("bytes=") for range in others)
    assert all(headers["If-Range"] == '"v1"' for _, headers in server.requests[1:])
    assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)


def test_attempts_with_progress_are_not_counted(server, tmp_path):
    def some_more(handler, body):
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        send(handler, body[start : start + 70_000], 206 if start else 200, length=len(body) - start, **part)
        handler.close_connection = True

    server.files["/f"] = BODY * 3
    server.faults["/f"] = [some_more] * 12
    assert fetch(server, tmp_path / "f") == BODY * 3
    assert len(server.requests) > 1 + len(download.WAITS) + 1


def test_an_interrupted_download_resumes_in_a_later_call(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), *[status(503)] * 4]
    with pytest.raises(DownloadError, match="503"):
        fetch(server, tmp_path / "f")
    n_bytes = (tmp_path / "f.part").stat().st_size
    assert n_bytes > 0 and not (tmp_path / "f").exists()
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges()[-1] == f"bytes={n_bytes - transfer.OVERLAP}-" and left_over(tmp_path / "f") == []


def test_without_ranges_the_download_starts_over(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), ignores_ranges]
    assert fetch(server, tmp_path / "f") == BODY


def test_without_a_validator_nothing_is_resumed(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000, etag=None)]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges() == [None, None]


def test_a_file_that_changed_between_two_attempts_is_downloaded_again(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000, etag='"v0"')]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.requests[1][1]["If-Range"] == '"v0"'


def test_a_file_that_changed_under_the_same_etag_is_downloaded_again(server, tmp_path):
    """The server continues with other content under the same ETag: the check of the whole file detects it."""
    other = bytes(len(BODY))
    server.faults["/f"] = [lambda handler, body: cut_after(200_000)(handler, other)]
    assert fetch(server, tmp_path / "f", is_body) == BODY
    assert server.ranges()[0] is None and server.ranges()[-1] is None


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_permanent_error_is_not_retried(server, tmp_path, code):
    server.faults["/f"] = [status(code)]
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [500, 502, 503, 429])
def test_a_transient_error_is_retried(server, tmp_path, code):
    server.faults["/f"] = [status(code), status(code)]
    assert fetch(server, tmp_path / "f") == BODY
    server.faults["/f"] = [status(code)] * 9
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "g")
    assert len(server.requests) == 3 + 4


def test_no_server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/f"
    with pytest.raises(DownloadError, match=r"the connection failed \(.*refused"):
        download_file(url, tmp_path / "f", lambda path: None)


def test_a_slow_server(server, tmp_path):
    server.faults["/f"] = [lambda *_: time.sleep(1.5)] * 4
    with pytest.raises(DownloadError, match=r"no response within 0\.5 seconds|the connection failed \(.*timed out"):
        fetch(server, tmp_path / "f")


def test_a_server_that_stops_in_the_middle(server, tmp_path):
    def stalls(handler, body):
        send(handler, body[:100_000], length=len(body))
        time.sleep(1.5)

    server.faults["/f"] = [stalls]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges()[-1] is not None


def test_a_content_length_that_is_too_large(server, tmp_path):
    def too_large(handler, body):
        send(handler, body, length=len(body) + 5)
        handler.close_connection = True

    server.faults["/f"] = [too_large] * 9
    with pytest.raises(
        DownloadError, match=r"connection failed \(.*(5 more expected|300000)|ended after 300000 of 300005"
    ):
        fetch(server, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_content_length_that_is_too_small(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, body[:-5])] * 2
    with pytest.raises(DownloadError, match="not the body"):
        fetch(server, tmp_path / "f", is_body)
    assert left_over(tmp_path / "f") in ([], ["f.lock"])


@pytest.mark.parametrize("declared", ["1000", None])
def test_more_than_was_declared(server, tmp_path, monkeypatch, declared):
    """Ten megabytes where 1000 bytes were declared, or nothing but the limit holds."""

    def much(handler, body):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        if declared:
            handler.send_header("X-Linked-Size", declared)
        handler.end_headers()
        try:
            for _ in range(160):
                handler.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
            handler.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            handler.close_connection = True

    monkeypatch.setattr(transfer, "MAX_SIZE", 2000)
    server.faults["/f"] = [much] * 4
    with pytest.raises(DownloadError, match=f"the server sends more than {declared or 2000} bytes"):
        fetch(server, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_size_larger_than_the_disk(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, b"", length=10**14)]
    with pytest.raises(DownloadError, match=r"100,000,000,000,000 bytes are needed, and the disk of .* has .* left"):
        fetch(server, tmp_path / "f")
    server.faults["/f"] = [lambda handler, body: send(handler, BODY, X_Linked_Size=str(2**70))]
    assert fetch(server, tmp_path / "g") == BODY  # no number that a file could have: not believed


def test_a_web_page_instead_of_the_file(server, tmp_path):
    server.faults["/f"] = [
        lambda handler, body: send(handler, b"<html>log in", Content_Type="text/html; charset=utf-8")
    ]
    with pytest.raises(DownloadError, match="the server sent a web page instead of the file"):
        fetch(server, tmp_path / "f")


def test_a_redirect_that_never_ends(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, b"", 302, Location="/f")] * 50
    with pytest.raises(DownloadError, match="the request failed"):
        fetch(server, tmp_path / "f")


def test_a_name_from_the_server_is_not_used(server, tmp_path):
    server.faults["/f"] = [with_headers(Content_Disposition='attachment; filename="../../evil"')]
    assert fetch(server, tmp_path / "folder" / "f") == BODY
    assert [p.name for p in tmp_path.rglob("*")] == ["folder", "f"]


@needs_full_device
@needs_links
def test_a_full_disk(server, tmp_path, monkeypatch):
    (tmp_path / "f.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    monkeypatch.setattr(transfer, "forget", lambda part: None)
    with pytest.raises(DownloadError, match=f"the disk of {re.escape(str(tmp_path))} is full: make room"):
        fetch(server, tmp_path / "f")


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("in the way of a folder")
    with pytest.raises(DownloadError, match=r"f cannot be written"):
        download_file(f"{server.url}/f", tmp_path / "file" / "models" / "f", lambda path: None)


def test_a_part_that_is_complete_already(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY)
    declared = {"validator": '"v1"', "size": len(BODY), "hash": None}
    (tmp_path / "f.part.json").write_text(json.dumps(declared))
    assert fetch(server, tmp_path / "f") == BODY


@pytest.mark.parametrize("rubbish", [b"", b"[]", b"{", b'{"size": 3}', b"\xff"])
def test_damaged_metadata_of_the_part_makes_the_download_start_over(server, tmp_path, rubbish):
    (tmp_path / "f.part").write_bytes(b"something else")
    (tmp_path / "f.part.json").write_bytes(rubbish)
    assert fetch(server, tmp_path / "f") == BODY


def test_a_part_longer_than_the_file(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    (tmp_path / "f.part.json").write_text(json.dumps({"validator": '"v1"', "size": 5, "hash": None}))
    assert fetch(server, tmp_path / "f") == BODY
