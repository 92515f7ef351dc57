"""A server on the loopback address that serves files with ranges and ETags, and with faults that a test names."""

import http.server
import socket
import struct
import threading
import time

import numpy as np
import pytest

from gpt2np.files import download

BODY = np.random.default_rng(0).bytes(300_000)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append((self.path, dict(self.headers)))
        faults = self.server.faults.get(self.path, [])
        fault = faults if callable(faults) else faults.pop(0) if faults else serve
        fault(self, self.server.files.get(self.path))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` (path -> bytes); of `faults` (path -> functions), a list is worked off, a function never ends."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.requests = {"/f": BODY}, {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *_):
        """A client that has gone."""

    def ranges(self):
        return [headers.get("Range") for _, headers in self.requests]


def send(handler, body, status=200, length=None, etag='"v1"', **headers):
    headers = {"Content_Length": len(body) if length is None else length, "ETag": etag} | headers
    handler.send_response(status)
    for name, value in headers.items():
        if value is not None:
            handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    try:
        handler.wfile.write(body)
    except ConnectionError:  # the other side has gone
        handler.close_connection = True


def start_of(handler):
    """The first byte that is asked for."""
    return int(handler.headers.get("Range", "0").removeprefix("bytes=").removesuffix("-"))


def serve(handler, body, etag='"v1"', **headers):
    """An ordinary response, full or partial."""
    start = start_of(handler)
    if body is None:
        send(handler, b"no such file", 404)
    elif not start or handler.headers.get("If-Range", etag) != etag:
        send(handler, body, etag=etag, **headers)
    elif start >= len(body):
        send(handler, b"", 416, etag=etag, Content_Range=f"bytes */{len(body)}")
    else:
        partial(body, etag=etag, **headers)(handler, body)


def with_headers(content=None, **headers):
    """An ordinary response, of other content if that is given."""
    return lambda handler, body: serve(handler, body if content is None else content, **headers)


def answer(body, status=200, **how):
    """The same whatever is asked for."""
    return lambda handler, _: send(handler, body, status, **how)


def status(code):
    return answer(b"an error", code)


def redirect(url, status=302, **headers):
    return answer(b"", status, etag=None, Location=url, **headers)


def cut_after(n_bytes, etag='"v1"', reset=True, **headers):
    """Begins an ordinary response and breaks the connection, with an RST or a FIN."""

    def fault(handler, body):
        send(handler, body[:n_bytes], length=len(body), etag=etag, **headers)
        if reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.02)
        handler.close_connection = True

    return fault


def closing(fault):
    """The fault, then the end of the connection."""

    def both(handler, body):
        fault(handler, body)
        handler.close_connection = True

    return both


def partial(body, status=206, etag='"v1"', *, start=0, range="bytes {start}-{last}/{n}", **headers):
    """The rest of `body`, from byte `start` on where no range was asked for, under a Content-Range of any kind."""

    def fault(handler, _):
        first = start_of(handler) or start
        found = range and range.format(start=first, last=len(body) - 1, n=len(body))
        send(handler, body[first:], status, etag=etag, Content_Range=found, **headers)

    return fault


@pytest.fixture
def server(hurry):
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def hurry(monkeypatch, tmp_path):
    """Short waits, and no trace of the environment's own settings."""
    monkeypatch.setattr(download, "WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(download, "TIMEOUT", (2, 0.5))
    for name in ("GPT2NP_MODELS_URL", "HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "no cache"))


def names_in(folder):
    return sorted({path.name for path in folder.rglob("*")} - {".lock"})
