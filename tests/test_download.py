"""Downloads over a real HTTP server on the loopback address, with every fault that it can have."""

import base64
import hashlib
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import safetensors.numpy
from conftest import ROOT, random_tensors
from write_tf import write_checkpoint

import gpt2np
from gpt2np import CheckpointError, DownloadError, HParams, download
from gpt2np.download import download_file
from gpt2np.loading import SOURCES, find_folder, url_of

BODY = np.random.default_rng(0).bytes(300_000)
SHAPE = HParams(n_vocab=2048, n_ctx=64, n_embd=3 * 7, n_head=3, n_layer=2)


class Server:
    """Serves `files` (path -> bytes), with ranges and an ETag; `faults` (path -> functions) come first, in turn."""

    def __init__(self):
        self.files, self.faults, self.requests = {}, {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                faults = outer.faults.get(self.path, [])
                (faults.pop(0) if faults else serve)(self, outer.files.get(self.path))

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def ranges(self):
        return [headers.get("Range") for _, headers in self.requests]


def send(handler, body, status=200, length=None, etag='"v1"', **headers):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    if etag:
        handler.send_header("ETag", etag)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    try:
        handler.wfile.write(body)
    except ConnectionError:  # the other side has gone
        handler.close_connection = True


def serve(handler, body, etag='"v1"', **headers):
    """An ordinary answer, whole or in part."""
    if body is None:
        return send(handler, b"no such file", 404)
    asked, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
    if not asked or (condition and condition != etag):
        return send(handler, body, etag=etag, **headers)
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    if start >= len(body):
        return send(handler, b"", 416, etag=etag, Content_Range=f"bytes */{len(body)}")
    part = f"bytes {start}-{len(body) - 1}/{len(body)}"
    return send(handler, body[start:], 206, etag=etag, Content_Range=part, **headers)


def with_headers(**headers):
    return lambda handler, body: serve(handler, body, **headers)


def status(code):
    return lambda handler, body: send(handler, b"an error", code)


def cut_after(n_bytes, etag='"v1"', reset=True):
    """Begins an ordinary answer and breaks the connection."""

    def fault(handler, body):
        send(handler, body[:n_bytes], length=len(body), etag=etag)
        if reset:  # an RST instead of a FIN
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.1)
        handler.close_connection = True

    return fault


def ignores_ranges(handler, body):
    send(handler, body)


@pytest.fixture
def server():
    server = Server()
    server.files["/f"] = BODY
    yield server
    server.close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch, tmp_path):
    monkeypatch.setattr(download, "WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(download, "TIMEOUT", (2, 0.5))
    for name in ("GPT2NP_MODELS_URL", "HF_ENDPOINT", "HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "no cache"))


def fetch(server, path, check=lambda path: None):
    download_file(f"{server.url}/f", path, check)
    return path.read_bytes()


def left_over(path):
    return sorted(p.name for p in path.parent.iterdir() if p != path)


def is_body(path):
    if path.read_bytes() != BODY:
        raise CheckpointError("not the body")


# ------------------------------------------------------------------------------------------------ one file


def test_a_file_arrives_and_nothing_else_is_left(server, tmp_path):
    assert fetch(server, tmp_path / "new" / "f") == BODY
    assert left_over(tmp_path / "new" / "f") == []
    fetch(server, tmp_path / "new" / "f")
    assert len(server.requests) == 1  # what is there is not fetched again


@pytest.mark.parametrize("reset", [True, False])
def test_what_broke_off_goes_on_where_it_stopped(server, tmp_path, reset):
    server.faults["/f"] = [cut_after(200_000, reset=reset)] * 2
    assert fetch(server, tmp_path / "f") == BODY
    first, *others = server.ranges()
    assert first is None and 1 <= len(others) <= 3 and all(range.startswith("bytes=") for range in others)
    assert all(headers["If-Range"] == '"v1"' for _, headers in server.requests[1:])
    assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)


def test_tries_that_bring_something_are_not_counted(server, tmp_path):
    def some_more(handler, body):
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        send(handler, body[start : start + 70_000], 206 if start else 200, length=len(body) - start, **part)
        handler.close_connection = True

    server.files["/f"] = BODY * 3
    server.faults["/f"] = [some_more] * 12
    assert fetch(server, tmp_path / "f") == BODY * 3
    assert len(server.requests) > 1 + len(download.WAITS) + 1


def test_what_broke_off_goes_on_in_a_later_call(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), *[status(503)] * 4]
    with pytest.raises(DownloadError, match="503"):
        fetch(server, tmp_path / "f")
    n_bytes = (tmp_path / "f.part").stat().st_size
    assert n_bytes > 0 and not (tmp_path / "f").exists()
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges()[-1] == f"bytes={n_bytes}-" and left_over(tmp_path / "f") == []


def test_a_server_without_ranges_is_asked_again_from_the_beginning(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000), ignores_ranges]
    assert fetch(server, tmp_path / "f") == BODY


def test_without_a_validator_nothing_is_resumed(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000, etag=None)]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.ranges() == [None, None]


def test_a_file_that_changed_between_two_tries_is_fetched_anew(server, tmp_path):
    server.faults["/f"] = [cut_after(200_000, etag='"v0"')]
    assert fetch(server, tmp_path / "f") == BODY
    assert server.requests[1][1]["If-Range"] == '"v0"'


def test_a_file_that_changed_behind_the_servers_back_is_fetched_anew(server, tmp_path):
    """The server goes on with other content under the same ETag: the check of the whole sees it."""
    other = bytes(len(BODY))
    server.faults["/f"] = [lambda handler, body: cut_after(200_000)(handler, other)]
    assert fetch(server, tmp_path / "f", is_body) == BODY
    assert server.ranges()[0] is None and server.ranges()[-1] is None


@pytest.mark.parametrize("code", [403, 404, 410])
def test_an_answer_that_will_not_change_is_not_asked_for_again(server, tmp_path, code):
    server.faults["/f"] = [status(code)]
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "f")
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [500, 502, 503, 429])
def test_an_answer_that_may_change_is_asked_for_again(server, tmp_path, code):
    server.faults["/f"] = [status(code), status(code)]
    assert fetch(server, tmp_path / "f") == BODY
    server.faults["/f"] = [status(code)] * 9
    with pytest.raises(DownloadError, match=f"the server answered {code}"):
        fetch(server, tmp_path / "g")
    assert len(server.requests) == 3 + 4


def test_nobody_there(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/f"
    with pytest.raises(DownloadError, match=r"the connection failed \(.*refused"):
        download_file(url, tmp_path / "f", lambda path: None)


def test_a_slow_server(server, tmp_path):
    server.faults["/f"] = [lambda *_: time.sleep(1.5)] * 4
    with pytest.raises(DownloadError, match=r"no answer within 0\.5 seconds|the connection failed \(.*timed out"):
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

    monkeypatch.setattr(download, "MAX_SIZE", 2000)
    server.faults["/f"] = [much] * 2
    with pytest.raises(DownloadError, match=f"the server sends more than {declared or 2000} bytes"):
        fetch(server, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_size_beyond_all_disks(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, b"", length=10**14)]
    with pytest.raises(DownloadError, match=r"100000\.00 GB are needed, and the disk of .* has .* left: make room"):
        fetch(server, tmp_path / "f")
    server.faults["/f"] = [lambda handler, body: send(handler, BODY, X_Linked_Size=str(2**70))]
    assert fetch(server, tmp_path / "g") == BODY  # no number that a file could have: not believed


GIT = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()
HASHES = {
    "sha256, of the hub's large files": {"X_Linked_ETag": f'"{hashlib.sha256(BODY).hexdigest()}"'},
    "git, of the hub's small files": {"etag": f'"{GIT}"'},
    "git, weak": {"etag": f'W/"{GIT}"'},
    "md5, of the bucket": {"Content_MD5": base64.b64encode(hashlib.md5(BODY).digest()).decode()},
    "md5, as ETag": {"etag": f'"{hashlib.md5(BODY).hexdigest()}"'},
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


def test_a_web_page_instead_of_the_file(server, tmp_path):
    server.faults["/f"] = [
        lambda handler, body: send(handler, b"<html>log in", Content_Type="text/html; charset=utf-8")
    ]
    with pytest.raises(DownloadError, match="the server sent a web page instead of the file"):
        fetch(server, tmp_path / "f")


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


def test_a_redirect_that_never_ends(server, tmp_path):
    server.faults["/f"] = [lambda handler, body: send(handler, b"", 302, Location="/f")] * 50
    with pytest.raises(DownloadError, match="the request failed"):
        fetch(server, tmp_path / "f")


def test_a_name_from_the_server_is_not_used(server, tmp_path):
    server.faults["/f"] = [with_headers(Content_Disposition='attachment; filename="../../evil"')]
    assert fetch(server, tmp_path / "folder" / "f") == BODY
    assert [p.name for p in tmp_path.rglob("*")] == ["folder", "f"]


def test_a_full_disk(server, tmp_path, monkeypatch):
    (tmp_path / "f.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    monkeypatch.setattr(download, "write_declared", lambda part, declared: None)
    with pytest.raises(DownloadError, match=f"the disk of {tmp_path} is full: make room"):
        fetch(server, tmp_path / "f")


def test_a_folder_that_cannot_be_written(server):
    with pytest.raises(DownloadError, match=r"/proc/models/f cannot be written"):
        download_file(f"{server.url}/f", ROOT.__class__("/proc/models/f"), lambda path: None)


def test_a_part_that_is_complete_already(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY)
    declared = {"validator": '"v1"', "size": len(BODY), "hash": None}
    (tmp_path / "f.part.json").write_text(json.dumps(declared))
    assert fetch(server, tmp_path / "f") == BODY


@pytest.mark.parametrize("rubbish", [b"", b"[]", b"{", b'{"size": 3}', b"\xff"])
def test_a_damaged_note_beside_the_part_costs_a_new_beginning(server, tmp_path, rubbish):
    (tmp_path / "f.part").write_bytes(b"something else")
    (tmp_path / "f.part.json").write_bytes(rubbish)
    assert fetch(server, tmp_path / "f") == BODY


def test_a_part_longer_than_the_file(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    (tmp_path / "f.part.json").write_text(json.dumps({"validator": '"v1"', "size": 5, "hash": None}))
    assert fetch(server, tmp_path / "f") == BODY


# ------------------------------------------------------------------------------------------------ models


def write_model(folder, tensors, hparams, vocabulary_files):
    """The files of both sources, in one folder."""
    h = hparams
    config = {"model_type": "gpt2", "vocab_size": h.n_vocab, "n_positions": h.n_ctx}
    config |= {"n_embd": h.n_embd, "n_head": h.n_head, "n_layer": h.n_layer}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "hparams.json").write_text(json.dumps(vars(hparams)))
    for names in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        for name, path in zip(names, vocabulary_files):
            (folder / name).write_bytes(path.read_bytes())
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    write_checkpoint(folder, tensors)


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """The files of a small random model, dict name -> bytes."""
    folder, bundled = tmp_path_factory.mktemp("small"), find_folder("tiny-target", None)
    write_model(folder, random_tensors(SHAPE), SHAPE, [bundled / "vocab.json", bundled / "merges.txt"])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def model_server(server, small_model, monkeypatch):
    for size in ("124M", "355M"):
        for name, body in small_model.items():
            server.files[f"/{size}/{name}"] = body
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url + "/")
    return server


def documented(folder, url, *more):
    """The documented command, as a process."""
    pair = ("--draft_model_size", "124M", "--target_model_size", "355M", "--K", "4")
    arguments = [sys.executable, ROOT / "main.py", *pair, "--models_dir", folder, "--n_tokens_to_generate", "5", *more]
    environment = {**os.environ, "GPT2NP_MODELS_URL": url, "HF_HOME": "/nowhere"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, env=environment, **pipes)


def test_the_documented_command_fetches_once_and_runs(model_server, tmp_path):
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "target  355M" in output and "same text     yes" in output
    assert len(model_server.requests) == 8
    assert sorted(p.name for p in (tmp_path / "124M").iterdir()) == sorted(SOURCES["hub"])
    with documented(tmp_path, model_server.url) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0 and len(model_server.requests) == 8


def test_a_killed_download_goes_on(model_server, tmp_path):
    """kill -9 while the large file is on its way; the second run asks for the rest, and for nothing it has."""
    weights, killed = "/355M/model.safetensors", threading.Event()

    def half(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("ETag", '"v1"')
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        killed.wait(20)
        handler.close_connection = True

    model_server.faults[weights] = [half]
    with documented(tmp_path, model_server.url) as process:
        part = tmp_path / "355M" / "model.safetensors.part"
        deadline = time.time() + 30
        while not (part.exists() and part.stat().st_size > 0) and time.time() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    killed.set()
    n_bytes = part.stat().st_size
    assert n_bytes > 0
    n_before = len(model_server.requests)
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "same text     yes" in output
    asked = [(path, headers.get("Range")) for path, headers in model_server.requests[n_before:]]
    assert asked[0] == (weights, f"bytes={n_bytes}-") and len(asked) == 1 + 4


def test_an_interrupted_download_ends_in_one_sentence(model_server, tmp_path):
    done = threading.Event()

    def waits(handler, body):
        done.wait(20)
        handler.close_connection = True

    model_server.faults["/355M/merges.txt"] = [waits]
    with documented(tmp_path, model_server.url) as process:
        while not any(path == "/355M/merges.txt" for path, _ in list(model_server.requests)):
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    done.set()
    assert process.returncode == 130 and output == "" and errors.count("\n") == 1 and "interrupted" in errors


def test_two_processes_at_once_fetch_each_file_once(model_server, tmp_path):
    def slow(handler, body):
        time.sleep(0.5)
        serve(handler, body)

    for name in SOURCES["hub"]:
        model_server.faults[f"/355M/{name}"] = [slow]
    processes = [documented(tmp_path, model_server.url) for _ in range(2)]
    results = [process.communicate(timeout=60) for process in processes]
    for process, (output, _) in zip(processes, results):
        assert process.returncode == 0 and "same text     yes" in output
    assert len(model_server.requests) == 8
    assert any("another process is downloading" in errors for _, errors in results)
    assert sorted(p.name for p in (tmp_path / "355M").iterdir()) == sorted(SOURCES["hub"])


def test_a_failure_ends_in_one_sentence_with_three_ways_on(model_server, tmp_path):
    del model_server.files["/355M/model.safetensors"]
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and output == "" and errors.count("\n") == 1
    url, folder = f"{model_server.url}/355M/model.safetensors", tmp_path / "355M"
    assert errors.startswith(
        f"main.py: {url}: the server answered 404 Not Found; try again (it goes on where it stopped)"
    )
    assert "--source openai, or a mirror in GPT2NP_MODELS_URL" in errors and "python main.py" in errors
    assert f"put config.json, vocab.json, merges.txt, model.safetensors into {folder} by hand" in errors


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("config.json", b"<html>", "config.json.part is not JSON"),
        ("config.json", b'{"vocab_size": 3}', "expected positive whole numbers"),
        ("vocab.json", b"[]", "vocab.json.part is not a JSON object"),
        ("merges.txt", b"\xff", "merges.txt.part is not UTF-8"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "not a safetensors file"),
    ],
)
def test_a_file_of_another_kind_is_not_put_in_place(model_server, tmp_path, name, body, message):
    model_server.files[f"/124M/{name}"] = body
    with pytest.raises(DownloadError, match=message):
        gpt2np.load("124M", tmp_path)
    assert not (tmp_path / "124M" / name).exists()


def test_only_what_lacks_is_fetched(model_server, tmp_path):
    gpt2np.load("124M", tmp_path)
    (tmp_path / "124M" / "merges.txt").unlink()
    gpt2np.load("124M", tmp_path)
    assert [path for path, _ in model_server.requests[4:]] == ["/124M/merges.txt"]


def test_the_openai_source_gives_the_same_model(model_server, tmp_path):
    """As the bucket serves it, with Content-MD5 and an ETag that is no hash."""
    for name in SOURCES["openai"]:
        body = model_server.files[f"/124M/{name}"]
        md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
        model_server.faults[f"/124M/{name}"] = [with_headers(etag='"0x8D7B5F5AA5B2B2B"', Content_MD5=md5)]
    ours, tokenizer = gpt2np.load("124M", tmp_path / "a", source="openai")
    assert sorted(p.name for p in (tmp_path / "a" / "124M").iterdir()) == sorted(SOURCES["openai"])
    theirs, _ = gpt2np.load("124M", tmp_path / "b")
    tokens = tokenizer.encode("Once upon a time")
    assert ours(tokens, n_last=3).tobytes() == theirs(tokens, n_last=3).tobytes()
    n_requests = len(model_server.requests)
    gpt2np.load("124M", tmp_path / "a")  # what is there is used, whatever the source
    assert len(model_server.requests) == n_requests
    (tmp_path / "a" / "124M" / "config.json").write_text("{}")  # a stray file of the other layout does no harm
    gpt2np.load("124M", tmp_path / "a")


def test_a_tensor_damaged_on_its_way_is_seen_by_its_checksum(server, tmp_path, monkeypatch):
    folder = ROOT / "tests" / "golden_tf" / "model"
    data = bytearray((folder / "model.ckpt.data-00000-of-00001").read_bytes())
    data[4000] ^= 1
    (tmp_path / "model.ckpt.index").write_bytes((folder / "model.ckpt.index").read_bytes())
    server.files["/f"] = bytes(data)
    name = "model.ckpt.data-00000-of-00001"
    with pytest.raises(DownloadError, match="does not have its checksum"):
        download_file(f"{server.url}/f", tmp_path / name, SOURCES["openai"][name])


def test_a_folder_in_hugging_faces_cache_is_read_in_place(model_server, tmp_path, monkeypatch):
    gpt2np.load("124M", tmp_path / "elsewhere")
    snapshot = tmp_path / "cache" / "models--openai-community--gpt2" / "snapshots" / "abc123"
    (tmp_path / "elsewhere" / "124M").rename(snapshot.parent.mkdir(parents=True) or snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("abc123\n")
    n_requests = len(model_server.requests)
    for variable, value in (("HF_HUB_CACHE", "cache"), ("HF_HOME", ""), ("XDG_CACHE_HOME", "xdg")):
        monkeypatch.delenv("HF_HUB_CACHE", raising=False)
        monkeypatch.delenv("HF_HOME", raising=False)
        if variable == "HF_HOME":
            (tmp_path / "hub").symlink_to(tmp_path / "cache")
        if variable == "XDG_CACHE_HOME":
            (tmp_path / "xdg" / "huggingface").mkdir(parents=True)
            (tmp_path / "xdg" / "huggingface" / "hub").symlink_to(tmp_path / "cache")
        monkeypatch.setenv(variable, str(tmp_path / value))
        assert find_folder("124M", tmp_path / "models").resolve() == snapshot
        gpt2np.load("124M", tmp_path / "models")
    assert len(model_server.requests) == n_requests and not (tmp_path / "models").exists()
    (snapshot / "merges.txt").unlink()  # no longer complete: downloaded instead
    gpt2np.load("124M", tmp_path / "models")
    assert len(model_server.requests) == n_requests + 4


def test_a_version_in_the_cache_that_is_a_path_is_not_followed(model_server, tmp_path, monkeypatch):
    refs = tmp_path / "cache" / "models--openai-community--gpt2" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("../../../elsewhere/124M")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    gpt2np.load("124M", tmp_path / "elsewhere")
    assert find_folder("124M", tmp_path / "models") == tmp_path / "models" / "124M"


def test_where_the_files_are(monkeypatch):
    assert url_of("355M", "f", "hub") == "https://huggingface.co/openai-community/gpt2-medium/resolve/main/f"
    assert url_of("355M", "f", "openai") == "https://openaipublic.blob.core.windows.net/gpt-2/models/355M/f"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror/")
    assert url_of("124M", "f", "hub") == "http://mirror/openai-community/gpt2/resolve/main/f"
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://class:8000")
    assert url_of("1558M", "f", "hub") == url_of("1558M", "f", "openai") == "http://class:8000/1558M/f"


def test_a_mirror_address_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("GPT2NP_MODELS_URL", "nonsense")
    with pytest.raises(DownloadError, match=r"nonsense/124M/config\.json: the request failed"):
        gpt2np.load("124M", tmp_path)


# ------------------------------------------------------------------------------------------------ true shapes


@pytest.mark.slow
@pytest.mark.parametrize("source", ["hub", "openai"])
def test_the_documented_command_at_the_true_shapes(server, tmp_path, gpt2_vocabulary_files, source):
    """Random models of 124M and 355M: download, kill -9 on the way, resume, verify, load, run; and the memory."""
    shapes = {"124M": HParams(50257, 1024, 768, 12, 12), "355M": HParams(50257, 1024, 1024, 16, 24)}
    for size, shape in shapes.items():
        folder = tmp_path / "served" / size
        folder.mkdir(parents=True)
        write_model(folder, random_tensors(shape, scale=0.02), shape, gpt2_vocabulary_files)
        for name in SOURCES[source]:
            server.files[f"/{size}/{name}"] = np.memmap(folder / name, mode="r")
    large = list(SOURCES[source])[-1]
    with documented(tmp_path / "models", server.url, "--source", source) as process:
        part = tmp_path / "models" / "355M" / f"{large}.part"
        while not (part.exists() and part.stat().st_size > 3e8):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert part.exists()
    with documented(tmp_path / "models", server.url, "--source", source) as process:
        output, errors = process.communicate()
    assert process.returncode == 0 and errors == "" and "same text     yes" in output
    assert [r for r in server.ranges() if r] and not part.exists()

    code = f"""if True:
        import sys, time
        sys.path.insert(0, {str(ROOT)!r})
        import gpt2np

        def peak():  # bytes
            return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

        before = peak()
        started = time.perf_counter()
        model, tokenizer = gpt2np.load("355M", {str(tmp_path / "models")!r})
        seconds = time.perf_counter() - started
        model([1, 2, 3])
        print(seconds, (peak() - before) / (4 * model.n_params))"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, share = map(float, printed.split())
    print(f"{source}: loaded in {seconds:.2f} s, peak memory {share:.3f} times the weights")
    assert 0.9 < share < 1.25
