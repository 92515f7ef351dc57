"""The colours of p, q and the kinds of tokens in all pages, traces and figures.

Any two of the five colours can be told apart with any kind of colour vision, on a light and on a dark background. A
page or figure adds a pattern, an underline or a weight, so that nothing depends on colour alone.
"""

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
