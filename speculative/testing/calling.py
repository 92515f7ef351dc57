"""One call of a function under test: the arguments of a draft, in a form (forms.py), and what its result says.

`called` makes the arguments and calls the function; `read` finds in its result how many draft tokens are accepted, and
which token follows them.
"""

import itertools
import sys
from typing import NamedTuple

import numpy as np

from .draws import Draws, borrowed
from .forms import LISTS, NUMBERS, parts_of, plain
from .watch import asked, fail

NO_TOKEN = (
    "no token takes the place of a rejected draft token: a round ends with a token drawn from max(0, p - q), normalised"
)
GOES_ON = (
    "the first rejection ends the round: your function continues after it, with draft tokens that were drafted for "
    "a different text"
)
BEYOND = (
    "your function returns a token that is one too large, the last one is {}: np.searchsorted finds no place where the "
    "cumulative sum ends below the uniform number; divide max(0, p - q) by its sum before you draw"
)
NEVER_LOG = -1e5  # the logarithm of 0, without the NaN of inf - inf


class Given(NamedTuple):
    """A draft that the function is asked about."""

    tokens: np.ndarray  # [n] int
    q: np.ndarray  # [n, n_vocab] probabilities
    p: np.ndarray  # [n + 1, n_vocab]
    bonus: int = None  # the token drawn after all draft tokens, for a function with this argument

    def with_a_certain_token(self):
        """One more draft token, with a one-hot row: it tells, without a bonus, whether all tokens before it passed."""
        one_hot = np.eye(self.q.shape[1])[-1:]
        tokens = np.append(self.tokens, self.q.shape[1] - 1)
        return Given(
            tokens, np.concatenate([self.q, likely(one_hot)]), np.concatenate([self.p[:-1], one_hot]), self.bonus
        )


def likely(one_hot):
    """Rows in which the target's only tokens have probability 1 / 2, so that they pass and no residual is 0."""
    return (one_hot + np.roll(one_hot, 1, axis=-1)) / 2


def called(fn, form, inputs, rng):
    """The parts of the result of fn for one draft, as Python numbers and tuples; AssertionError if it fails."""
    return called_with(fn, form, [inputs], rng)


def called_with(fn, form, drafts, rng):
    """Like `called`; for a batch of several drafts of the same length, a list of such parts."""
    if not (form.bonus or form.one):
        drafts = [draft.with_a_certain_token() for draft in drafts]

    def call():
        with borrowed(fn, rng, seeded="seed" in form.axes):
            arguments = [argument(form, drafts, rng, *described) for described in form.arguments]
            before = [plain(value) if is_data(value) else None for value in arguments]
            result = fn(*arguments)
            if "output" in form.axes and result is None:
                result = arguments[[*form.axes].index("output")]
            parts = parts_of(result, form.results)
            for (role, *_), value, known in zip(form.arguments, arguments, before):
                if role != "output" and known is not None and plain(value) != known:
                    fail("your function writes to its arguments: work on a copy", f"  {where()}")
            return parts if len(drafts) == 1 else rows_of(parts, len(drafts))

    def where():
        tokens = [draft.tokens.tolist() for draft in drafts]
        tokens = tokens if len(drafts) > 1 else tokens[0]
        return f"for draft tokens {tokens}, K = {len(drafts[0].tokens)}, called as {form}"

    return asked(call, "your function", where)


def argument(form, drafts, rng, role, axes, words):
    """One argument of the function."""
    n, n_vocab = drafts[0].q.shape
    if role in ("uniforms", "uniform"):
        sizes = {"B": len(drafts), "K": n, "K+1": n + 1}
        return uniforms([sizes[axis] for axis in axes.split(",") if axis], form.array, rng)
    if role == "bonus":
        bonuses = [draft.bonus or 0 for draft in drafts]
        value = np.array(bonuses) if "B," in form.axes.get("target", "") else bonuses[0]
    elif role in ("target", "draft", "tokens", "output"):
        value = [array_argument(form, draft, role, axes, words) for draft in drafts]
        value = np.array(value if axes.startswith("B") else value[0])
    else:
        numbers = {"K": n, "B": len(drafts), "V": n_vocab, "temperature": 1.0, "seed": 0, "rng": Draws(rng)}
        return numbers[role]
    if not isinstance(value, np.ndarray):
        return value
    if np.ndim(value) == 0:
        return int(value)
    return value.tolist() if form.array is list or "list" in words else form.array(value)


def array_argument(form, draft, role, axes, words):
    """An array about one draft."""
    n = len(draft.tokens)
    value = {"target": draft.p, "draft": draft.q, "tokens": draft.tokens, "output": np.full(n + 1, -1)}[role]
    if role == "target" and axes.endswith("K,V") and "bonus" in form.axes:
        value = value[:n]  # without the row of the bonus
    if role in ("draft", "target") and axes.endswith("K"):
        value = value[np.arange(n), draft.tokens]
    if "log" in words:
        value = np.log(value, out=np.full(value.shape, NEVER_LOG), where=value > 0)
    return value[0] if form.one else value


def rows_of(parts, n_rows):
    """The parts of each row of a batch."""
    for part in parts:
        if not isinstance(part, tuple) or len(part) != n_rows:
            fail(f"for a batch of {n_rows} texts your function returns {part!r:.80}: expected a row for each of them")
    return [tuple(part[i] for part in parts) for i in range(n_rows)]


def uniforms(size, array, rng):
    """Uniform numbers that are not drawn yet."""
    if "torch" in getattr(array, "__module__", "") or "torch" in repr(array):
        torch = sys.modules["torch"]
        return torch.rand(size, dtype=torch.float64)  # answered by rng
    drawn = rng.random(size or None)
    return drawn.tolist() if array is list and size else drawn


def is_data(value):
    return hasattr(value, "tolist") and not hasattr(value, "uniforms") and str(getattr(value, "dtype", "")) != "object"


# ------------------------------------------------------------------------------------------------ the result


class Unreadable(Exception):
    """A result that does not fit; its text is the hint."""


def read(form, parts, drafted, n_real, n_vocab):
    """(number of accepted draft tokens, next token or None, count or None); Unreadable if the result does not fit.

    `drafted` are the draft tokens that were passed in; all but the first n_real have one-hot rows.
    """
    values = {name: whole(name, part) for name, part in zip(form.results, parts) if name != "_"}
    token, more = values.get("token"), "length" in values
    count = values["length"] - 1 if more else values.get("count")
    if n_vocab in (token, *values.get("tokens", ())):
        raise Unreadable(BEYOND.format(n_vocab - 1))
    if {"tokens", "padded"} & values.keys():
        n, token = of_tokens(values.get("tokens", values.get("padded")), "padded" in values, drafted, n_real, n_vocab)
    elif "accepted" in values:
        accepted = [x for x in values["accepted"] if x >= 0]
        n = len(accepted)
        if accepted != drafted[:n]:
            raise Unreadable(GOES_ON)
    elif "mask" in values:
        n = len(list(itertools.takewhile(bool, values["mask"])))
    else:
        n = values.get("flag", count if count is not None else int(token == drafted[0]))
    if n is None or not 0 <= n <= len(drafted):
        raise Unreadable(f"of {n_real} draft tokens your function accepts {n}")
    if (token is not None and not 0 <= token < n_vocab) or (n and form.one) or n >= n_real < len(drafted):
        token = None  # no token, the draft token itself, or one that follows the added token
    return min(n, n_real), token, count


def whole(name, value):
    """A part of a result as one number, or as a list of them."""
    if name in NUMBERS and isinstance(value, tuple):
        if len(value) > 1:
            raise Unreadable(f"expected one number for the {name!r} of the result, got {value!r:.60}")
        value = value[0] if value else None
    numbers = value if isinstance(value, tuple) else (value,)
    known = [number for number in numbers if number is not None or name in LISTS]
    if any(not np.isscalar(number) or isinstance(number, str) or number != number // 1 for number in known):
        raise Unreadable(f"expected whole numbers for the {name!r} of the result, got {value!r:.60}")
    if name in LISTS:
        return [int(number) for number in numbers]
    return None if value is None else int(value)


def of_tokens(tokens, is_padded, drafted, n_real, n_vocab):
    emitted = list(itertools.takewhile(lambda token: 0 <= token < n_vocab, tokens))
    if is_padded:
        other = next((i for i, token in enumerate(emitted) if i >= len(drafted) or token != drafted[i]), len(emitted))
        if any(emitted[other + 1 :]):
            raise Unreadable(GOES_ON)
        emitted = emitted[: other + 1]
    n = len(emitted) - 1
    if not emitted:
        raise Unreadable(NO_TOKEN)
    if n > n_real:
        raise Unreadable(f"a round of {n_real} draft tokens has {n_real + 1} tokens at most, but yours has {n + 1}")
    if emitted[:n] != drafted[:n]:
        raise Unreadable(GOES_ON)
    return n, emitted[n]
