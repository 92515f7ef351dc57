"""Damaged copies of good files: bytes, entries of a list and values of JSON, changed, cut, moved and repeated."""

import json

NASTY = (
    None, True, -1, 0, 1, 2, 255, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5, -0.5, 1e308, 1e999,
    -1e999, float("nan"), "", "a", "Ġ", "\x1b[2J\x07", "\u202e\u2028", "\ud83d", "x" * 10_000, [], [0], [[]], {},
    {"a": 1}, [0] * 100, [2**62] * 9, {"toString": 1}, "F32", "correction", "gpt2",
)  # fmt: skip
TEXTS = (
    b'"', b"[", b"[" * 2000, b"{", b"}", b",", b"-", b"9", b"9" * 30, b"9" * 5000, b"NaN", b"1e999", b"\n", b" ",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\x1b[2J",
)  # fmt: skip


def damaged(data, rng):
    """Bytes with one to four changes; what a change puts between two places may be nothing."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        short, other = min(to, at + rng.choice([1, 2, 4, 9, 50])), rng.randrange(len(data) + 1)
        changes = [
            (at, at + 1, bytes([rng.randrange(256)])),
            *[(at, at + 1, bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1]))] * 2,
            (at, len(data), b""),
            (at, rng.choice([short, to]), b""),
            (other, other, data[at : rng.choice([short, min(to, at + 5000)])]),
            (other, other + short - at, data[at:short]),
            (at, at + 8, b"\xff" * 8),
            (at, at, rng.randbytes(rng.choice([1, 3, 30]))),
            (at, short, bytes(short - at)),
            (at, at, rng.choice(TEXTS)),
        ]
        begin, end, new = rng.choice(changes)
        data[begin:end] = new
    return bytes(data)


def damaged_list(items, rng, change):
    """A list with an entry dropped, doubled, in place of another or, more often, changed by `change(entry)`."""
    i, j = (rng.randrange(len(items)) for _ in range(2))
    new = rng.choice([[], [items[i], items[i]], [items[j]], *[[change(items[i])]] * 4])
    return [*items[:i], *new, *items[i + 1 :]]


def damaged_json(value, rng):
    """A copy of a value of JSON with one place in it changed."""
    value = json.loads(json.dumps(value))
    nasty, places = rng.choice(NASTY), []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(value)
    node, key = rng.choice(places)
    match rng.choice(["replace", "replace", "remove", "rename", "wrap", "copy"]):
        case "replace":
            node[key] = nasty
        case "remove":
            del node[key]
        case "rename" if isinstance(node, dict):
            node[str(nasty)[:3000]] = node.pop(key)
        case "wrap":
            for _ in range(rng.choice([1, 200, 3000])):
                node[key] = [node[key]]
        case _:
            other, place = rng.choice(places)
            other[place] = json.loads(json.dumps(node[key]))
    return value


def dumped(value):
    """JSON, however deep; half a surrogate is written as one, or as its escape."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 5000
