"""Reading the file of a trace: each line has the form described in __init__.py, or the file is refused.

Extra fields, which a later version may add, are accepted.
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
    value = json.loads(line.decode("utf-8"), parse_constant=int)  # int("NaN") is a ValueError, as NaN is in JSON
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

    A form is a function that returns whether; {value, ...}, one of these; [form], a list of such values; (form, ...), a
    row of so many; or a dict of the names that an object must have. Under the name "together" it has those that are all
    present, or none.
    """
    if type(form) is set:
        return type(value) in (int, str) and value in form
    if type(form) is list:
        return type(value) is list and all(fits(v, form[0]) for v in value)
    if type(form) is tuple:
        return type(value) is list and len(value) == len(form) and all(map(fits, value, form))
    if type(form) is dict:
        if type(value) is not dict:
            return False
        together = form.get("together", {})
        form = form | together if together.keys() & value.keys() else form
        return all(name in value and fits(value[name], form[name]) for name in form.keys() - {"together"})
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


def is_drawn(value):
    return value is None or is_number(value)


def is_next(value):
    return value is None or fits(value, NEXT)


ORIGIN = {"accepted", "correction", "bonus", "plain"}
TOKEN = {"token": is_id, "text": is_text, "u": is_drawn}
TOP, TOP_OF_BOTH = [(is_id, is_text, is_number)], [(is_id, is_text, is_number, is_number)]  # p; p and q
DRAFTED = TOKEN | {
    "parent": is_index,
    "decision": {"accepted", "rejected", "dropped"},
    "together": {"p": is_number, "q": is_number, "overlap": is_number, "top": TOP_OF_BOTH, "residual": TOP},
}
NEXT = TOKEN | {"origin": ORIGIN, "together": {"p": is_number, "top": TOP}}
RECORD = {
    "at": is_id,
    "tokens": [is_id],
    "texts": [is_text],
    "origins": [ORIGIN],
    "drafted": [DRAFTED],
    "next": is_next,
    "uniforms": [is_number],
    "cache": dict.fromkeys(("reused", "dropped", "computed"), is_number),
    "seconds": dict.fromkeys(("draft", "target", "verify"), is_number),
}
HEADER = {"trace": {VERSION}, "prompt": [is_id], "text": is_text, "about": {}}
