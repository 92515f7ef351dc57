"""Reading the file of a trace: each line has the form described in __init__.py, or the file is refused.

A form is a function that returns whether a JSON value has that form; the forms of lists and objects are composed of
others. Extra fields, which a later version may add, are accepted if they are finite and not nested too deeply.
"""

import gc
import json
import re
from contextlib import contextmanager
from sys import float_info

HALF_A_SURROGATE = re.compile("[\ud800-\udfff]")  # not a character: no terminal can show it


def read_trace(path):
    """The header (dict) and the records (list of dict) of a file; a ValueError names the first line that is wrong."""
    header, records, at, number = None, [], 0, 0
    with open(path, "rb") as file, collector_paused():
        try:
            for line in file:  # lines end in \n alone, whatever a text contains
                number += 1
                value = json.loads(line.decode("utf-8"))
                if header is None:
                    header, at = checked(value, HEADER), len(value["prompt"])
                else:
                    records.append(checked(value, RECORD))
                    at = next_place(value, at)
            if header is None:
                raise ValueError("expected a header")
        except (ValueError, RecursionError) as error:
            place = f"{path}, line {max(number, 1)}"
            raise ValueError(
                f"{place}: expected a trace as Trace.save and main.py --trace write it; make it again"
            ) from error
    return header, records


@contextmanager
def collector_paused():
    """Switches off Python's search for cycles, which JSON does not have: two thirds of the time to read 100 MB."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def checked(value, form):
    if not form(value):
        raise ValueError("a value of another form")
    return value


def next_place(record, at):
    """Where the next round begins; ValueError unless this one begins where the previous one ended."""
    parents = [guess["parent"] for guess in record["guesses"] if "parent" in guess]
    if len(parents) not in (0, len(record["guesses"])) or any(not -1 <= p < i for i, p in enumerate(parents)):
        raise ValueError("expected a tree: for every draft token an earlier one that it follows, or -1")
    if record["at"] != at or not len(record["tokens"]) == len(record["texts"]) == len(record["origins"]) > 0:
        raise ValueError("expected the rounds in order, with a text and an origin for each token")
    return at + len(record["tokens"])


# ------------------------------------------------------------------------------------------------ forms


def is_id(value):
    return type(value) is int and 0 <= value < 2**53


def is_whole(value):
    return type(value) is int and -(2**53) < value < 2**53


def is_number(value):
    """A finite number."""
    return type(value) in (int, float) and abs(value) <= float_info.max


def is_text(value):
    return type(value) is str and (value.isascii() or not HALF_A_SURROGATE.search(value))


def is_plain(value, depth=100):
    """A JSON value, finite and not nested too deeply."""
    if type(value) in (list, dict):
        return depth > 0 and all(is_plain(v, depth - 1) for v in (value.values() if type(value) is dict else value))
    return value is None or type(value) in (bool, str) or is_number(value)


def one_of(*values):
    return lambda value: type(value) in (str, int) and value in values


def maybe(form):
    return lambda value: value is None or form(value)


def list_of(form):
    return lambda value: type(value) is list and all(map(form, value))


def row_of(*forms):
    def fits(value):
        return type(value) is list and len(value) == len(forms) and all(form(v) for form, v in zip(forms, value))

    return fits


def object_of(forms, together=None, optional=None):
    """An object with these names; of the names in `together` all are present, or none."""
    everything = forms | (together or {}) | (optional or {})

    def fits(value):
        if type(value) is not dict:
            return False
        expected = forms | together if together and together.keys() & value.keys() else forms
        return expected.keys() <= value.keys() and all(everything.get(name, is_plain)(v) for name, v in value.items())

    return fits


ORIGIN = one_of("accepted", "correction", "bonus", "plain")
DRAWN = {"token": is_id, "text": is_text, "u": maybe(is_number)}
TOP, TOP_OF_BOTH = (list_of(row_of(is_id, is_text, *[is_number] * n)) for n in (1, 2))  # p; p and q
GUESS = object_of(
    {**DRAWN, "decision": one_of("accepted", "rejected", "dropped")},
    optional={"parent": is_whole},
    together={"p": is_number, "q": is_number, "overlap": is_number, "top": TOP_OF_BOTH, "residual": TOP},
)
NEXT = object_of({**DRAWN, "origin": ORIGIN}, together={"p": is_number, "top": TOP})
RECORD = object_of({
    "at": is_id, "tokens": list_of(is_id), "texts": list_of(is_text), "origins": list_of(ORIGIN),
    "guesses": list_of(GUESS), "next": maybe(NEXT),
    "uniforms": list_of(is_number), "cache": object_of(dict.fromkeys(("reused", "dropped", "computed"), is_number)),
    "seconds": object_of(dict.fromkeys(("draft", "target", "verify"), is_number)),
})  # fmt: skip
HEADER = object_of({"trace": one_of(1), "prompt": list_of(is_id), "text": is_text, "about": object_of({})})
