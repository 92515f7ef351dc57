"""What a server declares about a file before it sends it: a validator, the size, and sometimes a hash.

validator   a strong ETag, which changes whenever the file does. Dates are not used: their unit is whole seconds, and
            some packagers set them all to 1970.
size        X-Linked-Size from the Hugging Face hub, or Content-Length
hash        X-Linked-ETag (SHA-256) or ETag (SHA-1 of a git blob) from the hub, before it redirects to a store;
            Content-MD5 from OpenAI's bucket. The ETag of any other server is opaque, even if it looks like a hash.

`Declared` is saved next to an unfinished download as FILE.part.json, so that a later attempt can ask for the rest.
"""

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace

CHUNK = 2**16  # bytes


@dataclass(frozen=True)
class Declared:
    """What is declared about a file; None means "not declared". `hash` is [algorithm, hexadecimal digest]."""

    validator: str | None = None
    size: int | None = None
    hash: list[str] | None = None

    def is_well_formed(self):
        return (
            (self.validator is None or is_strong(self.validator))
            and (self.size is None or (type(self.size) is int and 0 <= self.size < 10**15))
            and (self.hash is None or is_hash(self.hash))
        )


def what_is_declared(response):
    """The Declared of a full response (status 200) and of the redirects that led to it."""
    chain = chain_of(response)
    length = last(chain, "X-Linked-Size") or response.headers.get("Content-Length", "")
    tag = response.headers.get("ETag", "")
    return Declared(
        validator=tag if is_strong(tag) else None,
        size=int(length) if re.fullmatch(r"[0-9]{1,15}", length) else None,
        hash=hash_of_the_hub(chain) or md5_in(response.headers.get("Content-MD5", "")),
    )


def with_hash_of(response, declared):
    """`declared`, with the hash that the redirects of a partial response (status 206) declare, if they do.

    Its Content-MD5 is not used: that is the hash of the part, not of the file.
    """
    return replace(declared, hash=hash_of_the_hub(chain_of(response)) or declared.hash)


def chain_of(response):
    """The headers of the redirects that led to a response, then its own."""
    return [answer.headers for answer in (*response.history, response)]


def last(chain, name):
    """The header of the last response that has it, or None."""
    return next((headers[name] for headers in reversed(chain) if name in headers), None)


def is_strong(tag):
    """Whether a text is a strong ETag: in quotes, without the prefix W/."""
    return isinstance(tag, str) and re.fullmatch(r'"[!#-~]+"', tag) is not None


def tag_of_the_hub(headers):
    """The hub's ETag of a file, or ""; a response that names a commit is the hub's."""
    tag = headers.get("X-Linked-ETag") or ("X-Repo-Commit" in headers and headers.get("ETag")) or ""
    return tag.removeprefix("W/").strip('"').lower()


def hash_of_the_hub(chain):
    """[algorithm, digest] of the last response that declares a SHA-256 or a git hash; None if there is no such hash."""
    tags = [tag_of_the_hub(headers) for headers in reversed(chain)]
    candidates = [[{64: "sha256", 40: "git"}.get(len(tag), ""), tag] for tag in tags]
    return next(filter(is_hash, candidates), None)


def is_hash(value):
    """Whether a value of any type is [algorithm, hexadecimal digest]."""
    known = "sha256 [0-9a-f]{64}|git [0-9a-f]{40}|md5 [0-9a-f]{32}"
    return isinstance(value, list) and re.fullmatch(known, " ".join(map(str, value))) is not None


def md5_in(text):
    """["md5", digest] of a Content-MD5 header; None if it is not 16 bytes in Base64."""
    return ["md5", base64.b64decode(text).hex()] if re.fullmatch(r"[A-Za-z0-9+/]{22}==", text) else None


def hash_of(path, algorithm):
    """The hexadecimal digest of a file; "git" is the hash that git gives a blob with this content."""
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(b"blob %d\0" % size_of(path))
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------ files of a download


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def declared_file(part):
    return part.with_name(part.name + ".json")


def read_declared(part):
    """What was declared about a partly downloaded file; Declared() if that was not saved, or is damaged."""
    try:
        declared = Declared(**json.loads(declared_file(part).read_text(encoding="utf-8")))
        return declared if declared.is_well_formed() else Declared()
    except (OSError, ValueError, TypeError, RecursionError):
        return Declared()


def write_declared(part, declared):
    """Save what is declared about a partly downloaded file."""
    declared_file(part).write_text(json.dumps(asdict(declared)), encoding="utf-8")


def forget(part):
    """Delete the part and what was declared about it."""
    part.unlink(missing_ok=True)
    declared_file(part).unlink(missing_ok=True)
