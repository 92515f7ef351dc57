"""The result of somebody's function: the role of each of its parts, found by trials, and the verdict read from it.

A reading names the parts of a result:

    tokens      the tokens that the round adds: the accepted draft tokens, then one more
    padded      the same, but filled up with zeros
    accepted    the accepted draft tokens alone
    mask, flag  whether each draft token was accepted, or the only one
    count       how many were accepted; length: one more than that
    token       the token after them
    _           anything else
"""

import itertools
from dataclasses import dataclass

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution
from .forms import called, likely
from .watch import fail

KINDS = {  # the kinds of a part, as `parts_of` names them
    "tokens": {"ints"}, "padded": {"ints"}, "accepted": {"ints"}, "mask": {"bools", "ints"},
    "flag": {"bool", "bools", "int", "ints"}, "count": {"int", "ints"}, "length": {"int", "ints"},
    "token": {"int", "ints", "none"}, "_": {"int", "ints", "bool", "bools", "none", "other"},
}  # fmt: skip
READINGS = (  # the earlier ones are preferred
    ("tokens",), ("padded",), ("tokens", "count"), ("tokens", "length"), ("padded", "count"), ("padded", "length"),
    ("accepted", "token"), ("accepted", "count", "token"), ("count", "token"), ("mask", "token"),
    ("mask", "count", "token"), ("flag", "token"), ("token",), ("accepted",), ("accepted", "count"), ("mask",),
    ("count",), ("flag",),
)  # fmt: skip
NO_TOKEN = (
    "no token takes the place of a rejected draft token: a round ends with a token drawn from max(0, p - q), normalised"
)
GOES_ON = (
    "the first rejection ends the round: your function goes on after it, with draft tokens that were drafted for "
    "another text"
)
TWICE = "the rejected draft token stays in the text, and its replacement follows it: the replacement takes its place"
LATE = "you count the rejected token as accepted; the count is the number of draft tokens before it (i, not i + 1)"
ALL_THAT_PASS = "you count all draft tokens that pass; the first rejection ends the round"
SHORT = "your count is one too small where all draft tokens are accepted; it is their number K"


class Unreadable(Exception):
    """A result that does not fit; its text is the hint."""


@dataclass(frozen=True)
class Reading:
    names: tuple  # of the parts that are used
    places: tuple  # which parts they are
    n_parts: int  # 0: the result is a tuple of tokens

    def told(self):
        names = dict(zip(self.places, self.names))
        return ", ".join(names.get(i, "_") for i in range(max(self.n_parts, 1)))


def read(reading, parts, drafted, n_real, n_vocab):
    """(number of accepted draft tokens, next token or None); Unreadable if the result is not of this kind.

    `drafted` are the draft tokens that were handed in, of which the first n_real are not certain.
    """
    values = values_of(reading, parts)
    if emitted := [values[name] for name in ("tokens", "padded") if name in values]:
        n, token = of_tokens(emitted[0], "padded" in values, drafted, n_real, n_vocab)
    else:
        n, token = of_parts(values, drafted)
        if token is not None and not 0 <= token < n_vocab:
            token = None
        if not 0 <= n <= n_real:
            raise Unreadable(f"of {n_real} draft tokens your function accepts {n}")
    if "token" not in values:
        more = "length" in values
        count = values.get("length" if more else "count", n + more) - more
        if count != n and not (n == n_real and count == len(drafted)):
            raise Unreadable(f"your count is {count + more}, but {n} draft tokens are accepted")
    return n, token


def values_of(reading, parts):
    """dict name -> value."""
    if reading.n_parts == 0:
        if not all(kind == "int" for kind, _ in parts):
            raise Unreadable("your function returns something else than tokens")
        parts = (("ints", tuple(value for _, value in parts)),)
    elif len(parts) != reading.n_parts:
        raise Unreadable(f"your function returns {len(parts)} parts, and {reading.n_parts} for other draft tokens")
    values = {}
    for name, place in zip(reading.names, reading.places):
        kind, value = parts[place]
        if kind not in KINDS[name]:
            raise Unreadable(f"your function returns something else than it did before for its part {place + 1}")
        if name in ("count", "length", "token", "flag") and kind in ("ints", "bools"):
            if len(value) > 1 or (not value and name != "token"):
                raise Unreadable(f"part {place + 1} of the result is one number, yours has {len(value)}")
            value = value[0] if value else None
        if name == "mask" and kind == "ints" and not {*value} <= {0, 1}:
            raise Unreadable("a mask is made of 0 and 1")
        values[name] = value
    return values


def of_tokens(tokens, is_padded, drafted, n_real, n_vocab):
    emitted = list(itertools.takewhile(lambda token: 0 <= token < n_vocab, tokens))
    if is_padded:
        same = [i for i, token in enumerate(emitted) if i >= len(drafted) or token != drafted[i]]
        if same and any(emitted[same[0] + 1 :]):
            raise Unreadable(GOES_ON)
        emitted = emitted[: same[0] + 1] if same else emitted
    if not emitted:
        raise Unreadable(NO_TOKEN)
    n = len(emitted) - 1
    if n > n_real:
        raise Unreadable(f"a round of {len(drafted)} draft tokens has {len(drafted) + 1} tokens at most, yours {n + 1}")
    if emitted[:n] != list(drafted[:n]):
        raise Unreadable(GOES_ON)
    return n, None if n == n_real < len(drafted) else emitted[n]


def of_parts(values, drafted):
    token = values.get("token")
    if "count" in values:
        n = values["count"]
    elif "accepted" in values:
        accepted = [x for x in values["accepted"] if x >= 0]
        n = len(accepted)
        if accepted != list(drafted[:n]):
            raise Unreadable(GOES_ON)
    elif "mask" in values:
        n = len(list(itertools.takewhile(bool, values["mask"])))
    elif "flag" in values:
        n = int(values["flag"])
    else:
        n = int(token == drafted[0])
    if n and set(values) == {"token"}:
        token = None  # the draft token itself
    if "flag" in values and n and token == drafted[0]:
        token = None
    return n, token


# ------------------------------------------------------------------------------------------------ trials

V = 9
TRIALS = {  # certain rows of the target, after the draft tokens 7 and 5: (accepted, next token)
    (7, 5, 6): (2, 6),
    (8, 5, 6): (0, 8),
    (7, 8, 6): (1, 8),
}
DRAFTED, CERTAIN = (7, 5), V - 1
SOFT = np.full((5, V), 0.1)  # p [3, V] and q [2, V] of one more trial, in which everything can happen
SOFT[range(5), [3, 3, 3, 7, 5]] = 0.2


def trial(fn, form, rows, errors):
    """The distribution of the result for certain rows."""
    q, p = likely(np.eye(V)[list(DRAFTED)]), np.eye(V)[list(rows)]
    if not rows:
        p, q, rows = SOFT[:3], SOFT[3:], [6] * 3
    if form.one:
        q, p = q[:1], p[:1]

    def outcome(rng):
        try:
            return called(fn, form, np.array(DRAFTED[: len(q)]), q, p, rng, bonus=rows[2])
        except AssertionError as error:
            errors.append(error)
            return (("error", None),)

    return exact_distribution(outcome, max_leaves=300)


def trials(fn, form):
    """([the distribution of the result in each of TRIALS, or None], the first error or None)."""
    found, errors = [], []
    for rows in (*TRIALS, ()):
        try:
            found.append(trial(fn, form, rows, errors))
        except CannotEnumerate as error:
            found.append(None)
            errors.append(error)
    return found, errors[0] if errors else None


def points(reading, form, found):
    """(how often the trials are right, up to 6; the share of results that can be read; whether a draft passes)."""
    right, readable, passes = 0.0, 0.0, False
    drafted, n_real = ((*DRAFTED, CERTAIN) if form.certain else DRAFTED), 2
    if form.one:
        drafted, n_real = DRAFTED[:1], 1
    for wanted, distribution in zip((*TRIALS.values(), None), found):
        for parts, share in (distribution or {}).items():
            try:
                n, token = read(reading, parts, drafted, n_real, V)
            except Unreadable:
                continue
            if wanted is not None and token is not None and token < len(DRAFTED) + 1:  # more likely a count
                continue
            readable, passes = readable + share / 4, passes or n == n_real
            if wanted is not None:
                n_wanted = min(wanted[0], n_real)
                ends = n_wanted == n_real and (form.one or token is None)
                right += share * ((n == n_wanted) + (ends or token == wanted[1]))
    return right, readable, passes


def readings(found, told=None):
    """The readings that results of this kind may have."""
    results = {parts for distribution in found for parts in distribution or ()}
    results -= {(("error", None),)}
    for n_parts in sorted({len(parts) for parts in results}):
        if told is not None:
            names = [name.strip() for name in told.split(",")]
            for name in names:
                if name not in KINDS:
                    fail(f"expected `returns` to name parts such as 'tokens' or 'count, token', got {told!r}")
            if len(names) == n_parts:
                used = [(name, i) for i, name in enumerate(names) if name != "_"]
                yield Reading(*map(tuple, zip(*used)), n_parts)
            continue
        for names in READINGS:
            for places in itertools.permutations(range(n_parts), len(names)):
                yield Reading(names, places, n_parts)
    if told in (None, "tokens") and any(all(k == "int" for k, _ in parts) for parts in results):
        yield Reading(("tokens",), (0,), 0)


def of_trials(reading, form, found):
    """The hint on a certain draft whose result does not fit, or None."""
    drafted = DRAFTED[:1] if form.one else (*DRAFTED, CERTAIN) if form.certain else DRAFTED
    for distribution in found[:3]:
        for parts in distribution or ():
            try:
                read(reading, parts, drafted, 1 if form.one else 2, V)
            except Unreadable as error:
                if len(distribution) == 1 and parts[0][0] != "error":
                    return str(error)
    return None


def unused_count(reading, form, found):
    """The mistake in the count that a result has next to its tokens, or None."""
    if reading.n_parts != 2 or reading.names[0] not in ("tokens", "padded") or len(reading.names) == 2:
        return None
    place = 1 - reading.places[0]
    counts = [{parts[place] for parts in one or () if len(parts) == 2} for one in found[:3]]
    if not all(len(one) == 1 for one in counts):
        return None
    parts = [next(iter(one)) for one in counts]
    if not all(kind == "int" or (kind == "ints" and len(value) == 1) for kind, value in parts):
        return None
    counts = tuple(value if kind == "int" else value[0] for kind, value in parts)
    return {(2, 1, 2): LATE, (3, 1, 2): LATE, (2, 1, 1): ALL_THAT_PASS, (1, 0, 1): SHORT}.get(counts)
