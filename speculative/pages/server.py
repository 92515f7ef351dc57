"""The page live.html served to a browser on this machine, with this process as its Python; nothing else is fetched.

Only 127.0.0.1 listens, and the address contains a secret. Other hosts in the header, as in DNS rebinding, and requests
from other origins are refused. An answer is a JSON message per line, as speculative/pages/live.py says them; it ends
when the page drops the request. Texts take turns, a round each: a model compares each call with its cache.
"""

import json
import secrets
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import linked, live

FOLDER = Path(__file__).parent
MOST = 1_000_000  # bytes of a request
ALLOWED = "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'"


class Server(ThreadingHTTPServer):
    """`make` is that of `live.answer`, `settings` are the form's first values; `in_words` describes an exception."""

    daemon_threads = True

    def __init__(self, make, settings, in_words=str):
        super().__init__(("127.0.0.1", 0), Handler)
        self.make, self.lock, self.path = make, threading.Lock(), f"/{secrets.token_urlsafe(12)}/"
        self.in_words = in_words
        self.address = f"http://127.0.0.1:{self.server_port}{self.path}"
        there = "live.html", "explore.html"
        self.files = {
            "": ("text/html", linked(live.live_page(served=True, **settings), there)),
            "explore.html": ("text/html", linked((FOLDER / "explore.html").read_text(encoding="utf-8"), there)),
            "live.js": ("text/javascript", (FOLDER / "live.js").read_text(encoding="utf-8")),
        }
        self.files["live.html"] = self.files[""]


class Handler(BaseHTTPRequestHandler):
    timeout = 60  # seconds, for a client that stops reading

    def log_message(self, *_):
        pass

    def name(self):
        """What is asked for; None if it is refused."""
        hosts = [f"{host}:{self.server.server_port}" for host in ("127.0.0.1", "localhost")]
        host, path = self.headers.get("Host"), self.server.path
        origin = self.headers.get("Origin", f"http://{host}")
        if host in hosts and origin == f"http://{host}" and self.path.startswith(path):
            return self.path.removeprefix(path).partition("?")[0]
        self.send_error(403)

    def start(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", ALLOWED)
        self.end_headers()

    def do_GET(self):
        name = self.name()
        if name in self.server.files:
            kind, text = self.server.files[name]
            self.start(kind)
            self.wfile.write(text.encode())
        elif name is not None:
            self.send_error(404)

    def do_POST(self):
        if self.name() is None:
            return
        try:
            size = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(size)) if 0 < size < MOST else None
        except (TypeError, ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return self.send_error(400)
        self.start("application/x-ndjson")
        with suppress(OSError):  # the page has dropped the request
            try:
                with closing(live.answer(self.say, self.server.make, request)) as rounds:
                    while self.more(rounds):
                        pass
            except OSError:
                raise
            except Exception as error:  # in the request, or in a drafter of one's own
                self.say({"kind": "error", "words": self.server.in_words(error)})

    def say(self, message):
        self.wfile.write(json.dumps(message).encode() + b"\n")

    def more(self, rounds):
        """Run one round; whether there was one."""
        with self.server.lock:
            return next(rounds, self) is not self
