"""Faults of servers, drawn at random: `a_fault(rng, ...)` gives one response that must not mislead a client.

What no client can detect is left out: another weight in a safetensors file from a server that declares no hash, and
another file under the same ETag.
"""

import base64
import gzip
import hashlib
import json

from file_server import closing, cut_after, partial, redirect, send, serve, status, with_headers


def a_fault(rng, name, body, other, server):
    """A fault of the file `name` with the content `body`; `other` is another version of it."""
    kinds = [answers, breaks, parts, declares, disguises, damages, is_redirected]
    shares = [0.15, 0.22, 0.25, 0.12, 0.12, 0.1, 0.04]
    return kinds[rng.choice(len(kinds), p=shares)](rng, name, body, other, server)


def answers(rng, name, body, other, server):
    """A response without the file."""
    code = int(rng.choice([204, 304, 400, 403, 404, 408, 410, 416, 429, 500, 502, 503, 999]))
    raw = [
        b"HTTP/1.1 404 \x1b[2J\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nrubbish",
        b"",
    ]
    targets = ["http://[::1", "http://..", "file:///etc/passwd", "http://\xff/", "/round", "http://127.0.0.1:9/f"]
    return pick(
        rng,
        status(code),
        lambda handler, _: send(handler, b"", 503, Retry_After=str(rng.choice(["0", "-1", "soon"]))),
        closing(lambda handler, _: handler.connection.sendall(raw[rng.integers(len(raw))])),
        redirect(targets[rng.integers(len(targets))]),
    )


def breaks(rng, name, body, other, server):
    """The start of the file, then nothing more."""
    n = int(rng.integers(len(body) + 1))
    return cut_after(n, etag=pick(rng, '"v1"', '"v1"', None, 'W/"v1"'), reset=bool(rng.integers(2)))


def parts(rng, name, body, other, server):
    """A part of the file that is not the rest of what is there."""
    ranges = ["bytes {start}-{last}/{n}", "bytes 0-{last}/{n}", "bytes 100-{last}/{n}", "bytes {start}-{last}/*", None]
    content, known = pick(rng, (other, '"v2"'), (other, None), (body + b"more", '"v1"'), (body, '"v1"'))
    if known == '"v1"' and content == body:
        return partial(body, start=int(rng.integers(len(body))), range=pick(rng, *ranges[1:]))
    return partial(content, etag=known, start=int(rng.integers(len(body))), range=pick(rng, *ranges))


def declares(rng, name, body, other, server):
    """The right file under wrong headers."""
    tag = pick(rng, hashlib.sha1(body).hexdigest(), "0" * 32, "0" * 64, "\xe9", "")
    return with_headers(
        etag=f'"{tag}"',
        **pick(
            rng,
            {},
            {"Last_Modified": "Thu, 01 Jan 1970 00:00:01 GMT"},
            {"Content_MD5": pick(rng, "_" * 22 + "==", "rubbish", "====")},
            {"X_Linked_ETag": '"no hash"'},
            {"X_Linked_Size": pick(rng, "-3", "1e9", "9" * 40, "0x10")},
            {"Content_Disposition": 'attachment; filename="../../evil"'},
        ),
    )


def disguises(rng, name, body, other, server):
    """Something else in place of the file."""
    page = b"<html>log in</html>"
    return pick(
        rng,
        lambda handler, _: send(
            handler, page, Content_Type=pick(rng, "text/html", "TEXT/HTML", "application/xhtml+xml")
        ),
        lambda handler, _: send(handler, page, Content_Type="text/plain"),
        lambda handler, _: send(handler, json.dumps({"error": 404}).encode()),
        lambda handler, _: send(handler, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        lambda handler, _: send(handler, gzip.compress(body), Content_Encoding="gzip"),
        lambda handler, _: send(handler, body, Content_Encoding="gzip"),
        lambda handler, _: send(handler, b""),
        lambda handler, _: send(handler, b"{}"),
    )


def hashes(rng, body):
    """The headers with a hash of the file, of one of the kinds that are known."""
    git = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
    return pick(
        rng,
        {"X_Linked_ETag": f'"{hashlib.sha256(body).hexdigest()}"'},
        {"X_Linked_ETag": f'"{git}"', "X_Repo_Commit": "abc"},
        {"Content_MD5": base64.b64encode(hashlib.md5(body).digest()).decode()},
    )


def with_a_wrong_bit(rng, body):
    at = int(rng.integers(len(body)))
    return body[:at] + bytes([body[at] ^ 1 << int(rng.integers(8))]) + body[at + 1 :]


def damages(rng, name, body, other, server):
    """The file with a wrong bit, under its hash or with its own checksums; or truncated, without a hash."""
    wrong, declared = with_a_wrong_bit(rng, body), {} if name.startswith("model.ckpt") else hashes(rng, body)
    shorter = body[: int(rng.integers(len(body)))]
    return pick(
        rng,
        lambda handler, _: serve(handler, wrong, **declared),
        lambda handler, _: send(handler, shorter),
        lambda handler, _: send(handler, body + b"more", **hashes(rng, body)),
        closing(lambda handler, _: handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + shorter)),
    )


def is_redirected(rng, name, body, other, server):
    """Redirects to a store that has a wrong bit; one of them, or the store, declares the hash."""
    n, place = int(rng.integers(3)), f"/store/{rng.integers(10**9)}"
    declared = [{}, {}, {}]
    declared[n] = hashes(rng, body) if n == 2 else {"X_Linked_ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
    server.files[f"{place}/1"], server.files[f"{place}/2"] = b"", with_a_wrong_bit(rng, body)
    server.faults[f"{place}/1"] = redirect(
        f"{server.url.replace('127.0.0.1', 'localhost')}{place}/2", 302, **declared[1]
    )
    server.faults[f"{place}/2"] = with_headers(etag='"of the store"', **declared[2])
    return redirect(f"{place}/1", 307, **declared[0])


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]
