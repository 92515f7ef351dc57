"""Reading the file of a trace: each line has the form described in __init__.py, or the file is refused.

Extra fields, which a later version may add, are accepted if they are finite and not nested too deeply.
"""

import json
import re
from sys import float_info

VERSION = 2
HALF_A_SURROGATE = re.compile("[\ud800-\udfff]")  # not a character: no terminal can show it


def read_trace(path):
    """The header (dict) and the records (list of dict) of a file; a ValueError names the first line that is wrong."""
    header, records = None, []
    with open(path, "rb") as file:
        try:
            header = parsed(next(file, b""), HEADER)
            at = len(header["prompt"])
            for line in file:  # lines end in \n alone, whatever a text contains
                record = parsed(line, RECORD)
                at = next_place(record, at)
                records.append(record)
        except (ValueError, RecursionError) as error:
            number = len(records) + 2 if header else 1
            raise ValueError(
                f"{path}, line {number}: expected a trace as Trace.save and main.py --trace write it; make it again"
            ) from error
    return header, records


def parsed(line, form):
    value = json.loads(line.decode("utf-8"))
    if not fits(value, form):
        raise ValueError("a value of another form")
    return value


def next_place(record, at):
    """Where the next round begins; ValueError unless this one begins where the previous one ended."""
    if any(not -1 <= draft["parent"] < i for i, draft in enumerate(record["drafted"])):
        raise ValueError("expected a tree: for every draft token an earlier one that it follows, or -1")
    if record["at"] != at or not len(record["tokens"]) == len(record["texts"]) == len(record["origins"]) > 0:
        raise ValueError("expected the rounds in order, with a text and an origin for each token")
    return at + len(record["tokens"])


# ------------------------------------------------------------------------------------------------ forms


def fits(value, form):
    """Whether a JSON value has a form.

    A form is a function that returns whether; [form], a list of such values; (form, ...), a row of so many; or a dict
    of the names that an object must have. Under the name "together" it has those that are all present, or none.
    """
    if type(form) is list:
        return type(value) is list and all(fits(v, form[0]) for v in value)
    if type(form) is tuple:
        return type(value) is list and len(value) == len(form) and all(map(fits, value, form))
    if type(form) is dict:
        if type(value) is not dict:
            return False
        form = dict(form)
        together = form.pop("together", {})
        form |= together if together.keys() & value.keys() else {}
        return form.keys() <= value.keys() and all(fits(v, form.get(name, is_plain)) for name, v in value.items())
    return form(value)


def is_id(value):
    return type(value) is int and 0 <= value < 2**53  # a page's script would round a larger one


def is_index(value):
    return type(value) is int


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
    return lambda value: type(value) is type(values[0]) and value in values


def maybe(form):
    return lambda value: value is None or fits(value, form)


ORIGIN = one_of("accepted", "correction", "bonus", "plain")
TOKEN = {"token": is_id, "text": is_text, "u": maybe(is_number)}
TOP, TOP_OF_BOTH = [(is_id, is_text, is_number)], [(is_id, is_text, is_number, is_number)]  # p; p and q
DRAFTED = TOKEN | {
    "parent": is_index,
    "decision": one_of("accepted", "rejected", "dropped"),
    "together": {"p": is_number, "q": is_number, "overlap": is_number, "top": TOP_OF_BOTH, "residual": TOP},
}
RECORD = {
    "at": is_id,
    "tokens": [is_id],
    "texts": [is_text],
    "origins": [ORIGIN],
    "drafted": [DRAFTED],
    "next": maybe(TOKEN | {"origin": ORIGIN, "together": {"p": is_number, "top": TOP}}),
    "uniforms": [is_number],
    "cache": dict.fromkeys(("reused", "dropped", "computed"), is_number),
    "seconds": dict.fromkeys(("draft", "target", "verify"), is_number),
}
HEADER = {"trace": one_of(VERSION), "prompt": [is_id], "text": is_text, "about": {}}
