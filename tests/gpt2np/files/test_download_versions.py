"""One file, one version: the checks of partial responses, hashes and redirects."""

import base64
import hashlib
import json

import pytest
from file_server import (
    BODY,
    closing,
    cut_after,
    fetch,
    left_over,
    partial,
    redirect,
    send,
    serve,
    status,
    with_headers,
)

from gpt2np import DownloadError

GIT = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()
HASHES = {
    "sha256, of the hub's large files": {"X_Linked_ETag": f'"{hashlib.sha256(BODY).hexdigest()}"'},
    "git, of the hub's small files": {"etag": f'"{GIT}"', "X_Repo_Commit": "abc"},
    "git, weak": {"etag": f'W/"{GIT}"', "X_Repo_Commit": "abc"},
    "md5, of the bucket": {"Content_MD5": base64.b64encode(hashlib.md5(BODY).digest()).decode()},
}


@pytest.mark.parametrize("name", HASHES)
def test_a_declared_hash_is_checked(server, tmp_path, name):
    server.faults["/f"] = [with_headers(**HASHES[name])]
    assert fetch(server, tmp_path / "f") == BODY
    server.files["/f"] = BODY[:-1] + b"?"
    server.faults["/f"] = [with_headers(**HASHES[name])] * 2
    with pytest.raises(DownloadError, match=r"the file's hash \(\w+\) is \w+, and the server declares \w+"):
        fetch(server, tmp_path / "g")
    assert not (tmp_path / "g").exists() and not (tmp_path / "g.part").exists()


def test_after_a_wrong_hash_there_is_one_more_attempt(server, tmp_path):
    headers = HASHES["sha256, of the hub's large files"]
    server.faults["/f"] = [
        lambda handler, body: serve(handler, bytes(len(body)), **headers),
        with_headers(**headers),
    ]
    assert fetch(server, tmp_path / "f") == BODY


OPAQUE = [
    '"5f-61b2"',
    f'"{hashlib.sha1(BODY).hexdigest()}"',  # as some artifact stores have it: no hash of git's
    f'"{"d" * 32}"',  # of a store that encrypts
    f'"{"0" * 64}"',
    f'W/"{"e" * 40}"',
    "unquoted",
]


@pytest.mark.parametrize(
    "headers",
    [*({"etag": tag} for tag in OPAQUE), {"Content_MD5": "rubbish"}, {"Content_MD5": "_" * 22 + "=="}]
    + [{"Content_MD5": "===="}, {"X_Linked_ETag": '"not a hash"'}, {"X_Linked_ETag": '"zz' + "z" * 38 + '"'}],
)
def test_other_headers_are_not_mistaken_for_a_hash(server, tmp_path, headers):
    server.faults["/f"] = [with_headers(**headers)]
    assert fetch(server, tmp_path / "f") == BODY and len(server.requests) == 1


SHA256 = HASHES["sha256, of the hub's large files"]
CHAINS = {  # what the answers on the way declare, the store last
    "the first of two": [SHA256, {}],
    "one": [SHA256],
    "the last of three": [{}, {}, SHA256],
    "an older one, then the right one": [{"X_Linked_ETag": f'"{"0" * 64}"'}, SHA256],
    "git": [{}, {"ETag": f'"{GIT}"', "X_Repo_Commit": "abc"}],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_every_response_in_a_chain_of_redirects_may_declare_the_hash(server, tmp_path, chain):
    """The store at the end of the redirects is another host with an ETag of its own."""

    def begin():
        for i, declared in enumerate(CHAINS[chain]):
            path, following = ("/f" if i == 0 else f"/hop{i}"), f"{local}/hop{i + 1}"
            server.files[path] = b""
            server.faults[path] = redirect(following, (302, 307, 301)[i], **declared)
        server.files[f"/hop{len(CHAINS[chain])}"] = body

    local, body = server.url.replace("127.0.0.1", "localhost"), BODY
    begin()
    assert fetch(server, tmp_path / "f") == BODY
    body = BODY[:-1] + b"?"
    begin()
    with pytest.raises(DownloadError, match=r"the file's hash \((sha256|git)\)"):
        fetch(server, tmp_path / "g")


def test_a_hash_that_the_redirect_to_the_rest_declares(server, tmp_path):
    """Nothing was declared when the download started; the rest has a wrong bit."""
    server.faults["/f"] = [cut_after(200_000), redirect("/store", **SHA256), redirect("/store", **SHA256)]
    server.files["/store"] = BODY[:-1] + b"?"
    with pytest.raises(DownloadError, match=r"the file's hash \(sha256\)"):
        fetch(server, tmp_path / "f")
    assert server.ranges()[2].startswith("bytes=") and server.ranges()[-1] is None


# ------------------------------------------------------------------------------------------------ two versions

OLD = bytes(reversed(BODY))  # the version of which 200,000 bytes are there already
NEXT = OLD[:200_000] + BODY[200_000:]  # another one, which agrees with it until there


def old_part(path, validator='"v0"', size=len(OLD)):
    (path.parent / "f.part").write_bytes(OLD[:200_000])
    (path.parent / "f.part.json").write_text(json.dumps({"validator": validator, "size": size, "hash": None}))
    return path


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (partial(NEXT, etag='"v1"'), "ignores If-Range, and says so"),
        (partial(NEXT, etag=None), "does not say which version"),
        (partial(NEXT, etag='W/"v0"'), "says a weaker validator"),
        (partial(BODY, etag='"v0"'), "gives another file the same ETag"),
        (partial(NEXT + b"more", etag='"v0"'), "has another total"),
        (partial(NEXT[:250_000], etag='"v0"'), "has another total"),
        (partial(NEXT, etag='"v0"', range="bytes {start}-{last}/*"), "does not know the total"),
        (partial(NEXT, etag='"v0"', range="bytes 0-{last}/{n}"), "sends another range"),
        (partial(NEXT, etag='"v0"', range="bytes 199999-{last}/{n}"), "sends another range"),
        (partial(NEXT, etag='"v0"', range="{start}-{last}/{n}"), "sends no range"),
        (partial(NEXT, etag='"v0"', range=None), "sends no range"),
        (status(416), "has a shorter file by now"),
    ],
)
def test_two_versions_are_never_joined(server, tmp_path, fault, why):
    server.faults["/f"] = [fault]
    assert fetch(server, old_part(tmp_path / "f")) == BODY
    assert server.ranges() == ["bytes=198976-", None], why


@pytest.mark.parametrize("validator", [None, "Thu, 01 Jan 1970 00:00:01 GMT", 'W/"v0"'])
def test_a_part_without_a_strong_validator_is_not_resumed(server, tmp_path, validator):
    assert fetch(server, old_part(tmp_path / "f", validator)) == BODY
    assert server.ranges() == [None]


def test_a_date_that_never_changes_is_no_validator(server, tmp_path):
    dated = {"etag": None, "Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"}
    server.faults["/f"] = [
        closing(lambda handler, body: send(handler, OLD[:200_000], length=len(OLD), **dated)),
        lambda handler, body: partial(BODY)(handler, body) if handler.headers.get("Range") else send(handler, BODY),
    ]
    assert fetch(server, tmp_path / "f") == BODY and server.ranges() == [None, None]


@pytest.mark.parametrize("range", ["bytes 0-{last}/{n}", "bytes 100-{last}/{n}", "bytes 0-99/{n}", "rubbish", None])
def test_a_partial_response_to_a_request_for_the_whole_file(server, tmp_path, range):
    server.faults["/f"] = [partial(BODY, start=100, range=range)]
    assert fetch(server, tmp_path / "f") == BODY
    server.faults["/f"] = partial(BODY, start=100, range=range)
    with pytest.raises(DownloadError, match="asked for all of it, and the server sent the range"):
        fetch(server, tmp_path / "g")
    assert left_over(tmp_path / "f") == []


def test_a_part_that_ends_early_is_followed_by_the_next(server, tmp_path):
    """A server may send less than the range that was asked for."""

    def some(handler, body):
        first = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        last = min(first + 50_000, len(body)) - 1
        send(handler, body[first : last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(body)}")

    server.faults["/f"] = [cut_after(100_000), *[some] * 8]
    assert fetch(server, tmp_path / "f") == BODY


def test_a_part_that_is_longer_than_its_range(server, tmp_path):
    def too_much(handler, body):
        first = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        send(handler, body[first:], 206, Content_Range=f"bytes {first}-{first + 9999}/{len(body)}")

    server.faults["/f"] = [cut_after(100_000), too_much]
    assert fetch(server, tmp_path / "f") == BODY and server.ranges()[2] is None
