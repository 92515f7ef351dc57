"""Damaged copies of good files: bytes changed, cut, moved and repeated, and values of JSON replaced by nasty ones."""

import json
import random

NASTY = (
    None, True, -1, 0, 1, 2, 255, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5, -0.5, 1e308, 1e999,
    -1e999, float("nan"), "", "a", "Ġ", "\x1b[2J\x07", "\u202e\u2028", "\ud83d", "x" * 10_000, [], [0], [[]], {},
    {"a": 1}, [0] * 100, [2**62] * 9, {"toString": 1}, "F32", "correction", "gpt2",
)  # fmt: skip
WORDS = b'" { } , - NaN 1e999 \xef\xbb\xbf \xed\xa0\x80 \\ud800 \x1b[2J'.split() + [b"\n", b" "]


def damaged(data, rng):
    """Bytes with one to four changes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        short, other = min(to, at + rng.choice([1, 2, 4, 9, 50])), rng.randrange(len(data) + 1)
        match rng.choice(["byte", "bit", "bit", "cut", "drop", "repeat", "big", "swap", "insert", "zero", "text"]):
            case "byte":
                data[at : at + 1] = bytes([rng.randrange(256)])
            case "bit" if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case "cut":
                del data[at:]
            case "drop":
                del data[at : rng.choice([short, to])]
            case "repeat":
                data[other:other] = data[at : rng.choice([short, min(to, at + 5000)])]
            case "big":
                data[at : at + 8] = b"\xff" * 8
            case "swap":
                data[at:short], data[other : other + short - at] = data[other : other + short - at], data[at:short]
            case "insert":
                data[at:at] = rng.randbytes(rng.choice([1, 3, 30]))
            case "zero":
                data[at:short] = bytes(short - at)
            case "text":
                many = b"[" * rng.choice([1, 2000]), b"9" * rng.choice([1, 30, 5000])
                data[at:at] = rng.choice([*many, *WORDS])
        if not data:
            break
    return bytes(data)


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


def source(seed):
    return random.Random(seed)
