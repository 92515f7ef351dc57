"""A round as a line in a terminal: the draft tokens, which of them were accepted, and the token that follows."""

import os
import re
import sys

from ..tree import is_chain

COLOURS = {  # ANSI: 2 faint, 9 struck out, 31 red, 32 green, 34 blue
    "prompt": "2", "accepted": "32", "rejected": "9;31", "dropped": "2;9", "correction": "31", "bonus": "34",
    "plain": "",
}  # fmt: skip
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CONTROL_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}
MARKS = {"rejected": "~{}~", "dropped": "~{}~", "correction": "[{}]", "bonus": "({})"}  # without colours


def round_line(record, coloured=False):
    """One record as text: the draft tokens, then the token that follows the accepted ones.

    In a tree, the tokens tested for one position are separated by a slash; those that were not tested are left out.

    >>> drafted = [
    ...     {"text": " so", "parent": -1, "decision": "accepted"},
    ...     {"text": " happy", "parent": 0, "decision": "rejected"},
    ... ]
    >>> round_line({"drafted": drafted, "next": {"text": " sad", "origin": "correction"}, "texts": [" so", " sad"]})
    '1/2 accepted  | so|~ happy~|[ sad]'
    """
    drafted = record["drafted"]
    tested = [draft for draft in drafted if draft["decision"] != "dropped"]
    parts, parent = [], None
    for draft in drafted if is_chain(draft["parent"] for draft in drafted) else tested:
        separator = "/" if draft["parent"] == parent else "|"
        parts += separator, piece(draft["text"], draft["decision"], coloured)
        parent = draft["parent"]
    if record["next"]:
        parts += "|", piece(record["texts"][-1], record["next"]["origin"], coloured)
    counts = f"{sum(draft['decision'] == 'accepted' for draft in drafted)}/{len(drafted)} accepted"
    return f"{counts:12}  " + ("".join(parts) or "|")


def legend(coloured=False, kinds=("accepted", "rejected", "correction", "bonus", "dropped")):
    """The kinds of tokens, each in its own style."""
    return ", ".join(piece(kind, kind, coloured) for kind in kinds)


def piece(text, kind, coloured):
    text = visible(text.replace("\n", "\u23ce"))
    return colour(text, kind) if coloured else MARKS.get(kind, "{}").format(text)


def visible(text):
    """The text, with pictures or escapes for characters that control a terminal or reverse its lines.

    >>> visible("\\x1b[2J \\x07")
    '␛[2J ␇'
    """
    return STEERING.sub(lambda match: CONTROL_PICTURES.get(match[0]) or repr(match[0])[1:-1], text)


def colour(text, kind):
    """The text between the codes of its colour; unchanged if its kind has none."""
    return f"\033[{COLOURS[kind]}m{text}\033[0m" if text and COLOURS[kind] else text


def has_colours():
    """Whether standard output is a terminal that should show colours (see https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
