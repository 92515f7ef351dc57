"""A server on the loopback address that serves files with ranges and ETags, and with faults that a test names."""

import http.server
import socket
import struct
import threading
import time

import numpy as np
import pytest

from gpt2np import CheckpointError
from gpt2np.files import download
from gpt2np.files.download import download_file

BODY = np.random.default_rng(0).bytes(300_000)


class Server:
    """Serves `files` (path -> bytes), with ranges and an ETag; `faults` (path -> functions) come first, in turn.

    A fault that is a function, not a list, never ends.
    """

    def __init__(self):
        self.files, self.faults, self.requests = {}, {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                faults = outer.faults.get(self.path, [])
                fault = faults if callable(faults) else faults.pop(0) if faults else serve
                fault(self, outer.files.get(self.path))

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a client that has gone
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
    """An ordinary response, full or partial."""
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


def end_with_reset(handler):
    """When the connection is closed, an RST instead of a FIN."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cut_after(n_bytes, etag='"v1"', reset=True):
    """Begins an ordinary response and breaks the connection."""

    def fault(handler, body):
        send(handler, body[:n_bytes], length=len(body), etag=etag)
        if reset:
            end_with_reset(handler)
        time.sleep(0.02)
        handler.close_connection = True

    return fault


def closing(fault):
    """The fault, then the end of the connection."""

    def both(handler, body):
        fault(handler, body)
        handler.close_connection = True

    return both


def ignores_ranges(handler, body):
    send(handler, body)


def partial(body, status=206, etag='"v1"', *, start=0, range="bytes {start}-{last}/{n}"):
    """The rest of `body`, from byte `start` on where no range was asked for, under a Content-Range of any kind."""

    def fault(handler, _):
        asked = handler.headers.get("Range")
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else start
        headers = {"Content_Range": range.format(start=first, last=len(body) - 1, n=len(body))} if range else {}
        send(handler, body[first:], status, etag=etag, **headers)

    return fault


def redirect(url, code=302, **headers):
    return lambda handler, body: send(handler, b"", code, etag=None, Location=url, **headers)


@pytest.fixture
def server(hurry):
    server = Server()
    server.files["/f"] = BODY
    yield server
    server.close()


@pytest.fixture
def hurry(monkeypatch, tmp_path):
    """Short waits, and no trace of the environment's own settings."""
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
