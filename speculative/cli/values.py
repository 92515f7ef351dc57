"""How the text of an option becomes a value: functions of the text. ValueError says what was expected."""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate
from json import loads
from math import inf
from operator import mul
from re import fullmatch

from speculative import Shape

from .brought import brought
from .files import check_writable
from .models import nearest

MOST_NODES = 256  # the largest number of nodes in a tree


def number(kind=float, least=-inf, most=1e300, words=()):
    """Reads a number within bounds, or one of `words`, a registry; a number without a point is an int."""

    def read(text):
        if text in words:
            return text
        try:
            value = int(text) if fullmatch(r"[-+]?\d{1,300}", text) else kind(text)
        except ValueError:
            value = None
        if value is not None and least <= value <= most:
            return value
        noun = "whole number" if kind is int else "number"
        bounds = f" of {least} or more" if most >= 1e12 else f" from {least} to {most}"
        bounds = bounds if least > -inf else f" of {most} or less" * (most < 1e12)
        others = f", or {' or '.join(words)}" if words else ""
        raise ValueError(f"expected a {noun}{bounds}{others}, got {text[:60]!r}")

    read.names = words  # for the help
    return read


def whole(least=0, most=10**30, words=()):
    return number(int, least, most, words)


@dataclass(frozen=True)
class Choice:
    """Reads one of `names`, a sequence or a registry; with `brings`, FILE.py:NAME is allowed as well."""

    names: object
    brings: bool = False

    def __call__(self, text):
        if text in self.names:
            return text
        if self.brings and ".py" in text:
            return brought(text) and text
        if near := nearest(text, self.names):
            raise ValueError(f"there is no {text[:60]!r}: did you mean {near}?")
        of_ones_own = ", or FILE.py:NAME" if self.brings else ""
        raise ValueError(f"expected one of {', '.join(self.names)}{of_ones_own}, got {text[:60]!r}")


@dataclass(frozen=True)
class Written:
    """Reads the name of a file to write; with `or_none`, also an option without a value."""

    suffixes: tuple
    or_none: bool = False

    def __call__(self, text):
        if self.or_none and text in ("True", "False"):
            return text == "True"
        if ".png" in self.suffixes and not find_spec("matplotlib"):
            raise ValueError("a plot needs matplotlib, which is not installed: pip install matplotlib")
        return check_writable(text, self.suffixes)


def flag(text):
    if text not in ("True", "False"):
        raise ValueError(f"expected no value, got {text[:60]!r}")
    return text == "True"


def fields_of_json(text):
    """Reads a JSON object."""
    try:
        fields = loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, such as '{{\"top_k\": 0}}', got {text[:60]!r}")
    return fields


def needs_a_value(read):
    return read is not flag and not getattr(read, "or_none", False)


def tree(text):
    """Reads a number of nodes, or the number of children at each depth, 2x2x1, as a Shape."""
    numbers = [int(n) if fullmatch(r"[0-9]{1,9}", n) else -1 for n in text.split("x")]
    if min(numbers) < (len(numbers) > 1) or sum(accumulate(numbers, mul)) > MOST_NODES:
        raise ValueError(
            f"expected a number of nodes up to {MOST_NODES} (0: no tree), or the number of children at each depth, "
            f"such as 2x2x1, got {text[:60]!r}"
        )
    return numbers[0] if len(numbers) == 1 else Shape.widths(*numbers)


def inches(text):
    """Reads the size of a plot, 6.4x4.2, as (width, height)."""
    sizes = text.split("x")
    if len(sizes) != 2 or not all(fullmatch(r"\d{1,2}(\.\d+)?", n) and 1 <= float(n) <= 50 for n in sizes):
        raise ValueError(f"expected width and height in inches, from 1 to 50, such as 3.3x2.5, got {text[:60]!r}")
    return tuple(map(float, sizes))


def template(text):
    """Reads the text around a prompt, or chat."""
    if text != "chat" and "{prompt}" not in text:
        raise ValueError(f"expected chat, or a text with {{prompt}} where the prompt goes, got {text[:60]!r}")
    return text.replace("\\n", "\n")


def parts(text, read):
    """The values of a list, 1,2,4 or 1-8 or all, as texts."""
    if text == "all" and isinstance(read, Choice):
        return list(read.names)
    if (span := fullmatch(r"(\d{1,4})-(\d{1,4})", text)) and int(span[1]) <= int(span[2]):
        return [str(n) for n in range(int(span[1]), int(span[2]) + 1)]
    return text.split(",")
