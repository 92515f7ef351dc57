"""What a server declares or leaves out: bodies without a length, and what is saved next to an unfinished download."""

import hashlib
import json

import pytest
from file_server import BODY, fetch, left_over, serve

from gpt2np.files.declared import Declared, read_declared, write_declared

SHA256 = hashlib.sha256(BODY).hexdigest()


def in_chunks(handler, body):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for begin in range(0, len(body), 50_000):
        piece = body[begin : begin + 50_000]
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    handler.wfile.write(b"0\r\n\r\n")


def until_the_end(handler, body):
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body)
    handler.close_connection = True


@pytest.mark.parametrize("fault", [in_chunks, until_the_end])
def test_a_body_without_a_length_arrives(server, tmp_path, fault):
    server.faults["/f"] = [fault]
    assert fetch(server, tmp_path / "f") == BODY
    assert len(server.requests) == 1 and left_over(tmp_path / "f") == []


def test_the_body_of_a_redirect_is_not_read(server, tmp_path):
    """It could have any length, and `requests` would keep it in memory."""
    sent = []

    def long(handler, body):
        handler.send_response(302)
        handler.send_header("Location", "/g")
        handler.send_header("Content-Length", str(10**12))
        handler.end_headers()
        handler.close_connection = True
        try:
            for _ in range(64):
                handler.wfile.write(bytes(2**20))
                sent.append(2**20)
        except OSError:  # the other side has gone
            pass

    server.files["/g"], server.faults["/f"] = BODY, [long]
    assert fetch(server, tmp_path / "f") == BODY and sum(sent) < 2**25
    assert [path for path, _ in server.requests] == ["/f", "/g"]


def test_an_empty_file_arrives(server, tmp_path):
    server.files["/f"] = b""
    path = tmp_path / "folders" / "that are" / "new" / "f"
    assert fetch(server, path) == b""
    assert len(server.requests) == 1 and left_over(path) == []


@pytest.mark.parametrize("last", [BODY[-1:], b"?"], ids=["right", "wrong"])
def test_a_saved_hash_is_that_of_the_whole_file(server, tmp_path, last):
    """It was declared when the download began; what sends the rest, in a later run, declares none."""
    (tmp_path / "f.part").write_bytes(BODY[:200_000])
    note = {"validator": '"v1"', "size": len(BODY), "hash": ["sha256", SHA256]}
    (tmp_path / "f.part.json").write_text(json.dumps(note))
    server.faults["/f"] = [lambda handler, body: serve(handler, body[:-1] + last)]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges() == ["bytes=198976-", None][: 1 if last == BODY[-1:] else 2]


GOOD = [
    {},
    {"size": 0},
    {"size": 10**15 - 1},
    {"validator": '"v"'},
    *({"hash": [name, "0a" * (n // 2)]} for name, n in (("sha256", 64), ("git", 40), ("md5", 32))),
]
BAD = [
    *({"size": size} for size in (-1, 10**15, True, 5.0, "5", [])),
    *({"validator": tag} for tag in ('W/"v"', "v", '"v', '""', '"a b"', '"v"\n', 5, [], {})),
    *({"hash": value} for value in ("md5", [], ["md5"], ["md5", "0A" * 16], ["md5", "0a" * 20], {"md5": "0a" * 16})),
    {"hash": ["sha1", "0a" * 20]},
    {"hash": ["md5", "0a" * 16, ""]},
]


@pytest.mark.parametrize("values", GOOD)
def test_what_is_saved_comes_back(tmp_path, values):
    write_declared(tmp_path / "f", Declared(**values))
    assert read_declared(tmp_path / "f") == Declared(**values)


@pytest.mark.parametrize("values", BAD)
def test_what_no_server_declares_is_nothing(tmp_path, values):
    write_declared(tmp_path / "f", Declared(**{"validator": '"v"', "size": 5, "hash": None} | values))
    assert read_declared(tmp_path / "f") == Declared()
