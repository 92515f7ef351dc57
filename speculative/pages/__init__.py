"""The pages live.html, explore.html and trace.html, and the colours of p, q and token kinds in all pages and figures.

Any two of the five colours can be told apart with any kind of colour vision, on a light and on a dark background. A
page or figure adds a pattern, an underline or a weight, so that nothing depends on colour alone.
"""

import re
from typing import NamedTuple


class Colour(NamedTuple):
    """The same colour on the two backgrounds. The pages contain these values; notebooks and pictures use `light`."""

    light: str
    dark: str


P = Colour("#14508f", "#3a78c8")  # the target's distribution
Q = Colour("#f0b83c", "#f0b83c")  # the draft's distribution, and the part of it that is rejected
ACCEPTED = Colour("#14866d", "#2bb594")
CORRECTED = Colour("#b23a12", "#d9572b")
BONUS = Colour("#c987c4", "#c987c4")


def linked(page, there):
    """The text of a page in which a name with `data-site` links to the page it names, if that is one of `there`."""
    found = re.compile(r'<span data-site="([^"]+)">(.*?)</span>')
    return found.sub(lambda match: f'<a href="{match[1]}">{match[2]}</a>' if match[1] in there else match[2], page)
