"""Faults of servers, drawn at random: `a_fault(rng, ...)` gives one response that must not mislead a client.

What no client can detect is left out: another weight in a safetensors file from a server that declares no hash, and
another file under the same ETag.
"""

import base64
import gzip
import hashlib

from file_server import answer, closing, cut_after, partial, redirect, status, with_headers

CODES = (204, 304, 400, 403, 404, 408, 410, 416, 429, 500, 502, 503, 999)
RAW = (
    b"HTTP/1.1 404 \x1b[2J\r\nContent-Length: 0\r\n\r\n",
    b"SSH-2.0-OpenSSH\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nrubbish",
    b"",
)
TARGETS = ("http://[::1", "http://..", "file:///etc/passwd", "http://\xff/", "/round", "http://127.0.0.1:9/f")
RANGES = ("bytes {start}-{last}/{n}", "bytes 0-{last}/{n}", "bytes 100-{last}/{n}", "bytes {start}-{last}/*", None)
PAGES = (b"<html>log in</html>", b'{"error": 404}', b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", b"")
HEADERS = (
    *({}, {"Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"}, {"X_Linked_ETag": '"no hash"'}),
    *({"Content_MD5": text} for text in ("_" * 22 + "==", "rubbish", "====")),
    *({"X_Linked_Size": text} for text in ("-3", "1e9", "9" * 40, "0x10")),
    {"Content_Disposition": 'attachment; filename="../../evil"'},
)


def a_fault(rng, name, body, other, server):
    """A fault of the file `name` with the content `body`; `other` is another version of it."""
    kinds = [answers, breaks, parts, declares, disguises, damages, is_redirected]
    shares = [0.15, 0.22, 0.25, 0.12, 0.12, 0.1, 0.04]
    return kinds[rng.choice(len(kinds), p=shares)](rng, name, body, other, server)


def answers(rng, name, body, other, server):
    """A response without the file."""
    raw = pick(rng, *RAW)
    retry = answer(b"", 503, Retry_After=pick(rng, "0", "-1", "soon"))
    unread = closing(lambda handler, _: handler.connection.sendall(raw))
    return pick(rng, status(pick(rng, *CODES)), retry, unread, redirect(pick(rng, *TARGETS)))


def breaks(rng, name, body, other, server):
    """The start of the file, then nothing more."""
    etag = pick(rng, '"v1"', '"v1"', None, 'W/"v1"')
    return cut_after(int(rng.integers(len(body) + 1)), etag, reset=pick(rng, True, False))


def parts(rng, name, body, other, server):
    """A part of the file that is not the rest of what is there."""
    content, etag = pick(rng, (other, '"v2"'), (other, None), (body + b"more", '"v1"'), (body, '"v1"'))
    ranges = RANGES[1:] if content == body else RANGES
    return partial(content, etag=etag, start=int(rng.integers(len(body))), range=pick(rng, *ranges))


def declares(rng, name, body, other, server):
    """The right file under wrong headers."""
    tag = pick(rng, hashlib.sha1(body).hexdigest(), "0" * 32, "0" * 64, "\xe9", "")
    return with_headers(etag=f'"{tag}"', **pick(rng, *HEADERS))


def disguises(rng, name, body, other, server):
    """Something else in place of the file."""
    kind = pick(rng, "text/html", "TEXT/HTML", "application/xhtml+xml", "text/plain", None, None)
    page = answer(pick(rng, *PAGES), Content_Type=kind)
    return pick(rng, page, page, *(answer(sent, Content_Encoding="gzip") for sent in (gzip.compress(body), body)))


def hashes(body):
    """Headers with a hash of the file, one for each of the kinds that are known."""
    git = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
    return {
        "sha256, of the hub's large files": {"X_Linked_ETag": f'"{hashlib.sha256(body).hexdigest()}"'},
        "git, of the hub's small files": {"etag": f'"{git}"', "X_Repo_Commit": "abc"},
        "git, weak": {"etag": f'W/"{git}"', "X_Repo_Commit": "abc"},
        "md5, of the bucket": {"Content_MD5": base64.b64encode(hashlib.md5(body).digest()).decode()},
    }


def damages(rng, name, body, other, server):
    """The file with a wrong bit, under its hash or with its own checksums; or truncated, without a hash."""
    declared = pick(rng, *hashes(body).values())
    shorter = body[: int(rng.integers(len(body)))]
    return pick(
        rng,
        with_headers(with_a_wrong_bit(rng, body), **({} if name.startswith("model.ckpt") else declared)),
        answer(shorter),
        answer(body + b"more", **declared),
        closing(lambda handler, _: handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + shorter)),
    )


def with_a_wrong_bit(rng, body):
    at = int(rng.integers(len(body)))
    return body[:at] + bytes([body[at] ^ 1 << int(rng.integers(8))]) + body[at + 1 :]


def is_redirected(rng, name, body, other, server):
    """Redirects to a store that has a wrong bit; one of them, or the store, declares the hash."""
    n, place, declared = int(rng.integers(3)), f"/store/{rng.integers(10**9)}", [{}, {}, {}]
    declared[n] = pick(rng, *hashes(body).values()) if n == 2 else next(iter(hashes(body).values()))
    server.files[f"{place}/1"], server.files[f"{place}/2"] = b"", with_a_wrong_bit(rng, body)
    store = f"{server.url.replace('127.0.0.1', 'localhost')}{place}/2"
    server.faults[f"{place}/1"] = redirect(store, **declared[1])
    server.faults[f"{place}/2"] = with_headers(**{"etag": '"of the store"'} | declared[2])
    return redirect(f"{place}/1", 307, **declared[0])


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]
