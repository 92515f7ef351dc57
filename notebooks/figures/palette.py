"""One look for p, q and what becomes of a token: the same in every figure that shows them.

The colours also differ in lightness, for any kind of colour vision and in print, and each has its own
pattern, so that no part is distinguished by colour alone. A legend names the part; `ink` is readable on it.
"""

from typing import NamedTuple

from matplotlib.patches import Patch

from speculative.trace import colours


class Look(NamedTuple):
    colour: str
    hatch: str
    ink: str


P = Look(colours.P.light, "", "white")  # the target's distribution
Q = Look(colours.Q.light, "//", "black")  # the draft's; the part of it that is rejected
ACCEPTED = Look(colours.ACCEPTED.light, "", "white")
CORRECTED = Look(colours.CORRECTED.light, "..", "white")
BONUS = Look(colours.BONUS.light, "xx", "black")


def box(axis, left, bottom, width, height, look, text="", size=12):
    """A rectangle with this look, and a text in its middle."""
    style = {"color": look.colour, "hatch": look.hatch, "edgecolor": "white", "linewidth": 1.2}
    axis.bar(left, height, width, bottom, align="edge", **style)
    behind = {"facecolor": look.colour, "edgecolor": "none", "pad": 1.5} if look.hatch else None
    if text:
        place = left + width / 2, bottom + height / 2
        axis.text(*place, text, color=look.ink, size=size, ha="center", va="center", bbox=behind)


def legend(axis, parts, **place):
    """Name the parts: a dict name -> look."""
    marks = [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white") for look in parts.values()]
    axis.legend(marks, [*parts], borderaxespad=0, **place)


def plain(axis):
    """No frame, no grid, no ticks: the numbers are in the boxes."""
    axis.spines[["top", "left", "right"]].set_visible(False)
    axis.tick_params(left=False, labelleft=False, bottom=False)
    axis.grid(visible=False)
