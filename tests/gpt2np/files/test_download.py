"""One file over a real server on the loopback address: the file, or one sentence, and never a wrong file."""

import base64
import hashlib
import json
import re
import time

import numpy as np
import pytest
from download_faults import a_fault
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
    serve,
    status,
    with_headers,
)

from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download
from gpt2np.files.download import Declared, declared_hash, read_declared

pytestmark = pytest.mark.usefixtures("hurry")
OLD = bytes(reversed(BODY))  # the version of which 200,000 bytes are there already
MD5 = base64.b64encode(hashlib.md5(BODY).digest()).decode()
SHA256 = hashlib.sha256(BODY).hexdigest()
GIT = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()
HASHES = {
    "sha256, of the hub's large files": {"X_Linked_ETag": f'"{SHA256}"'},
    "git, of the hub's small files": {"etag": f'"{GIT}"', "X_Repo_Commit": "abc"},
    "git, weak": {"etag": f'W/"{GIT}"', "X_Repo_Commit": "abc"},
    "md5, of the bucket": {"Content_MD5": MD5},
}
REST, WRONG = "bytes=200000-", BODY[:-1] + b"?"


def a_version(path):
    """Refuses what is no version of the file; nothing may ever be made of two versions."""
    found = np.frombuffer(path.read_bytes(), np.uint8)
    if found.tobytes() not in (BODY, OLD):
        mine, old = (np.frombuffer(version, np.uint8) for version in (BODY, OLD))
        assert len(found) != len(BODY) or not ((found == mine) | (found == old)).all(), "two versions in one file"
        raise CheckpointError("not the body")


def outcome(server, path):
    try:
        return fetch(server, path, a_version)
    except DownloadError as error:
        assert not path.exists() and str(error).isprintable() and len(str(error)) <= 500
        return str(error)


def some_more(handler, body):
    """The next 70,000 bytes, then the end of the connection."""
    start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
    part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
    send(handler, body[start : start + 70_000], 206 if start else 200, length=len(body) - start, **part)
    handler.close_connection = True


def a_range_that_ends_early(handler, body):
    first = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    last = min(first + 80_000, len(body)) - 1
    send(handler, body[first : last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(body)}")


def until_the_end(handler, body):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    handler.close_connection = True


def rude(handler, body):
    handler.connection.sendall(b"HTTP/1.1 404 \x1b[2J" + b"x" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n")


def weak(etag):
    dated = {"Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"}
    return closing(lambda handler, body: send(handler, body[:200_000], length=len(body), etag=etag, **dated))


FROM_OLD = {  # with 200,000 bytes of the old version: the first response, after which the download starts over
    "ignores If-Range, and says so": partial(BODY, etag='"v1"'),
    "does not say which version": partial(BODY, etag=None),
    "says a weaker validator": partial(BODY, etag='W/"v0"'),
    "has another total": partial(BODY + b"more", etag='"v0"'),
    "does not know the total": partial(BODY, etag='"v0"', range="bytes {start}-{last}/*"),
    "sends another range": partial(BODY, etag='"v0"', range="bytes 0-{last}/{n}"),
    "sends no range": partial(BODY, etag='"v0"', range=None),
    "has a shorter file by now": status(416),
}
FAILS, PAGE = "^the connection failed", with_headers(Content_Type="text/html; charset=utf-8")
CASES = {  # what is there before, the faults, the ranges that are asked for (or how many), the file or the sentence
    "nothing goes wrong": (None, [], [None], BODY),
    "progress: attempts are not counted": (None, [some_more] * 9, 5, BODY),
    "no progress: fewer bytes than before": (
        None, [cut_after(n, etag=None, reset=False) for n in (290_000, *[200_000] * 9)], 4, FAILS,
    ),
    "ranges that end early": (None, [cut_after(100_000), *[a_range_that_ends_early] * 5], None, BODY),
    "no ranges": (None, [cut_after(200_000), ignores_ranges], 2, BODY),
    "complete already": (BODY, [], [], BODY),
    "the file has changed": (OLD[:200_000], [], [REST], BODY),
    **{why: (OLD[:200_000], [fault], [REST, None], BODY) for why, fault in FROM_OLD.items()},
    **{f"the validator {etag}": (None, [weak(etag)], [None, None], BODY) for etag in (None, 'W/"v1"', "v1", '"\xe9"')},
    **{
        f"a part that was not asked for, {range}": (None, [partial(BODY, start=100, range=range)], [None] * 2, BODY)
        for range in ("bytes 0-{last}/{n}", "bytes 100-{last}/{n}", "rubbish", None)
    },
    **{name: (None, [with_headers(**declared)], [None], BODY) for name, declared in HASHES.items()},
    **{
        f"wrong {name}": (
            None, [lambda handler, _, declared=declared: serve(handler, WRONG, **declared)], [None],
            r"^the file does not have the hash \(\w+\) that the server declares$",
        )
        for name, declared in HASHES.items()
    },
    "a length that is too small": (None, [lambda handler, body: send(handler, body[:-5])], [None], "not the body"),
    "another size": (
        None, [with_headers(X_Linked_Size="1000")], [None], "the file has 300000 bytes, and the server declares 1000",
    ),
    "until the end": (None, [until_the_end], [None], BODY),
    "a size that is no number": (None, [with_headers(X_Linked_Size="no number")], [None], BODY),
    "a name from the server": (
        None, [with_headers(Content_Disposition='attachment; filename="../../evil"')], [None], BODY,
    ),
    **{f"{n}, permanent": (None, [status(n)], [None], f"^the server answered {n}") for n in (403, 404, 410)},
    **{f"{code}, transient": (None, [status(code)] * 2, [None] * 3, BODY) for code in (408, 429, 500, 503)},
    **{f"{n}, again": (None, [status(n)] * 9, [None] * 4, f"^the server answered {n}") for n in (408, 429, 500, 503)},
    **{
        f"redirect to {url}": (None, redirect(url), None, r"^the (request|connection) failed \(")
        for url in ("http://[::1", "http://..", "file:///etc/passwd", "http://127.0.0.1:99999/", "/f")
    },
    "a web page": (None, PAGE, [None], "the server sent a web page instead of the file"),
    "a rude server": (None, rude, [None], "^the server answered 404"),
    "a length that is too large": (
        None, closing(lambda handler, body: send(handler, body, length=len(body) + 5)), None,
        r"5 more expected|ended after 300000 of 300005|IncompleteRead",
    ),
}  # fmt: skip


def old_part(path, content=OLD[:200_000], **declared):
    path.with_name("f.part").write_bytes(content)
    declared = {"etag": '"v0"', "size": len(BODY), "hash": None} | declared
    path.with_name("f.part.json").write_text(json.dumps(declared))
    return path


@pytest.mark.parametrize("case", CASES)
def test_a_fault_and_what_is_asked_for(server, tmp_path, case):
    before, server.faults["/f"], ranges, expected = CASES[case]
    path = tmp_path / "f"
    if before:
        old_part(path, before)
    found = outcome(server, path)
    is_right = found == BODY if expected is BODY else isinstance(found, str) and re.search(expected, found)
    assert is_right, str(found)[:200]
    if ranges is not None:
        assert server.ranges() == ranges or len(server.ranges()) == ranges
    for _, headers in server.requests:
        assert not headers.get("Range") or headers["If-Range"] in ('"v0"', '"v1"')
    if found == BODY:
        assert [one.name for one in tmp_path.rglob("*")] == ["f"]


@pytest.mark.parametrize("reset", [True, False])
def test_an_interrupted_download_resumes_where_it_stopped_also_in_a_later_call(server, tmp_path, reset):
    server.faults["/f"] = [cut_after(200_000, reset=reset)] * 2
    assert fetch(server, tmp_path / "f") == BODY
    first, *others = server.ranges()
    assert first is None and 1 <= len(others) <= 3 and all(range.startswith("bytes=") for range in others)
    server.faults["/f"] = [cut_after(200_000, reset=reset), *[status(503)] * 4]
    assert outcome(server, tmp_path / "g").startswith("the server answered 503")
    n_bytes = (tmp_path / "g.part").stat().st_size
    assert n_bytes > 0 and fetch(server, tmp_path / "g") == BODY
    assert server.ranges()[-1] == f"bytes={n_bytes}-" and left_over(tmp_path / "f") == ["g"]
    fetch(server, tmp_path / "g")
    assert server.ranges()[-1] == f"bytes={n_bytes}-"  # what is there is not fetched again


def test_a_server_that_stops_in_the_middle_or_does_not_answer(server, tmp_path, monkeypatch):
    def stalls(handler, body):
        send(handler, body[:100_000], length=len(body))
        time.sleep(1)

    server.faults["/f"] = [stalls]
    assert fetch(server, tmp_path / "f") == BODY and server.ranges()[-1] is not None
    monkeypatch.setattr(download, "TIMEOUT", (2, 0.05))
    server.faults["/f"] = [lambda *_: time.sleep(0.3)] * 4
    assert re.fullmatch(r"the connection failed \(.*timed out.*", outcome(server, tmp_path / "g"))


@pytest.mark.parametrize("note", [b"", b"[]", b"{", b'{"size": 3, "more": 1}', b"\xff"])
def test_a_damaged_note_makes_the_download_start_over(server, tmp_path, note):
    old_part(tmp_path / "f", b"something else")
    (tmp_path / "f.part.json").write_bytes(note)
    assert fetch(server, tmp_path / "f") == BODY and server.ranges() == [None]


@pytest.mark.parametrize("content", [BODY[:200_000], OLD[:200_000]], ids=["same", "changed"])
def test_with_a_hash_alone_a_download_resumes_and_the_whole_file_is_checked(server, tmp_path, content):
    path, same = old_part(tmp_path / "f", content, etag=None, hash=["sha256", SHA256]), content == BODY[:200_000]
    if not same:
        with pytest.raises(DownloadError, match="does not have the hash"):
            fetch(server, path)
    assert fetch(server, path) == BODY and "If-Range" not in server.requests[0][1]
    assert server.ranges() == ([REST] if same else [REST, None])


def test_another_file_under_the_same_etag_is_noticed_by_the_check_of_the_whole(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: cut_after(200_000)(handler, OLD)]
    with pytest.raises(DownloadError, match="not the body"):
        fetch(server, tmp_path / "f", is_body)
    assert list(tmp_path.iterdir()) == []  # so the next call starts from the beginning
    assert fetch(server, tmp_path / "f", is_body) == BODY


def test_what_is_declared_is_saved_also_of_an_empty_file(server, tmp_path):
    server.faults["/f"] = [closing(with_headers(Content_MD5=MD5, X_Linked_Size="300001")), *[status(503)] * 4]
    outcome(server, tmp_path / "f")
    declared = Declared('"v1"', 300_001, ["md5", hashlib.md5(BODY).hexdigest()])
    assert read_declared(tmp_path / "f.part") == declared and read_declared(tmp_path / "g.part") == Declared()
    server.files["/f"] = b""
    server.faults.clear()
    assert fetch(server, tmp_path / "h") == b""


def test_the_hash_is_that_of_the_last_response_that_declares_one():
    """The store at the end of the redirects is another host with an ETag of its own."""
    sha, old = {"X-Linked-ETag": f'"{SHA256}"'}, {"X-Linked-ETag": f'"{"0" * 64}"'}
    for answers in ([sha, {}], [old, sha, {}], [{}, sha], [sha, {"ETag": f'"{GIT}"'}]):
        assert declared_hash(answers) == ["sha256", SHA256]
    for other in (
        {"ETag": f'"{GIT}"'},
        {"ETag": "0" * 64},
        {"X-Linked-ETag": '"none"'},
        {"Content-MD5": "rubbish"},
        {},
    ):
        assert declared_hash([other]) is None


# ------------------------------------------------------------------------------------------------ random faults


@pytest.mark.parametrize("n", [25, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_sequence_of_faults_gives_a_wrong_file(server, tmp_path, n):
    """And the next call gets the file, whatever is left of the first."""
    outcomes = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        path, server.requests = tmp_path / str(seed), []
        path.mkdir()
        server.faults["/f"] = [a_fault(rng, "f", BODY, OLD, server) for _ in range(rng.integers(6))]
        outcomes.append(outcome(server, path / "f"))
        assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)
        (path / "f").unlink(missing_ok=True)
        server.faults["/f"] = lambda handler, body: serve(handler, body, etag='"v2"')
        second = outcome(server, path / "f")
        if isinstance(second, str):  # a damaged part was there before: it is deleted now
            second = outcome(server, path / "f")
        assert second in (BODY, OLD), f"seed {seed}"
        assert left_over(path / "f") == []
    assert min(outcomes.count(BODY), sum(isinstance(one, str) for one in outcomes)) > n / 10
