"""One file, one version: what a part, a hash and a redirect must say before they are believed."""

import base64
import hashlib

import pytest
from file_server import BODY, Server, fetch, send, serve, with_headers

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


def test_a_wrong_hash_is_tried_once_more(server, tmp_path):
    headers = HASHES["sha256, of the hub's large files"]
    server.faults["/f"] = [
        lambda handler, body: serve(handler, bytes(len(body)), **headers),
        with_headers(**headers),
    ]
    assert fetch(server, tmp_path / "f") == BODY


@pytest.mark.parametrize(
    "headers",
    [
        {"etag": '"5f-61b2"'},
        {"Content_MD5": "rubbish"},
        {"X_Linked_ETag": '"not a hash"'},
        {"etag": '"zz' + "z" * 38 + '"'},
    ],
)
def test_what_is_no_hash_is_not_taken_for_one(server, tmp_path, headers):
    server.faults["/f"] = [with_headers(**headers)]
    assert fetch(server, tmp_path / "f") == BODY


def test_a_redirect_to_another_host_as_the_hub_does_it(server, tmp_path):
    """The size and hash are declared before the redirect; the store behind it has an ETag of its own."""
    store = Server()
    store.files["/blob"] = BODY
    store.faults["/blob"] = [with_headers(etag=f'"{"0" * 64}"')]

    def redirect(handler, body):
        declared = {"X_Linked_Size": str(len(BODY)), **HASHES["sha256, of the hub's large files"]}
        send(handler, b"", 302, etag=None, Location=f"http://localhost:{store.http.server_port}/blob", **declared)

    server.faults["/f"] = [redirect]
    assert fetch(server, tmp_path / "f") == BODY
    store.files["/blob"] = BODY[:-1] + b"?"
    server.faults["/f"] = [redirect] * 2
    with pytest.raises(DownloadError, match=r"the file's hash \(sha256\)"):
        fetch(server, tmp_path / "g")
    store.close()
