"""Tables and plots, shared by several commands."""

import os
import sys
from re import fullmatch

from .files import replacing
from .models import described

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255", "#999933")
STYLE = {  # fonts as TrueType, in .pdf files as well; the same file for the same numbers
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "axes.axisbelow": True, "legend.frameon": False, "savefig.dpi": 200, "svg.hashsalt": "", "pdf.fonttype": 42,
}  # fmt: skip
PANEL = (5, 4)  # inches
BOTH = 6  # inches: a plot narrower than this shows only the first panel


def table(rows):
    """A table of rows (dict heading -> cell): numbers aligned right, words aligned left.

    >>> print(table([{"drafter": "model", "speedup": "1.43"}, {"drafter": "n", "speedup": "0.9"}]))
    drafter  speedup
    model       1.43
    n            0.9
    """
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    right = [all(fullmatch(r"[-+\d.,]*%?", cell) for cell in column[1:]) for column in zip(*lines)]
    pads = [f"{'>' if is_right else '<'}{width}" for width, is_right in zip(widths, right)]
    return "\n".join("  ".join(f"{cell:{pad}}" for cell, pad in zip(line, pads)).rstrip() for line in lines)


def with_interval(row, what, prefix=""):
    """A number with its interval, the fields PREFIXlow and PREFIXhigh: 1.79 (1.55 to 2.06)."""
    low, high = row[prefix + "low"], row[prefix + "high"]
    return f"{row[what]:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


def over(n, what="prompts"):
    """The meaning of the intervals."""
    return f"95 %, Student's t over the {n} {what}" if n > 1 else "none: there is one prompt"


def counted(n, what):
    return f"{n} {what}{'s' if n != 1 else ''}"


def pair(target, draft):
    """The lines that describe the target and the draft."""
    is_large = draft.get("parameters", 0) >= target.get("parameters", 0) > 0
    word = "\n        no smaller than the target: expect no speedup" if is_large else ""
    return f"target  {described(target)}\ndraft   {described(draft)}{word}"


def has_colours():
    """Whether standard output is a terminal that should show colours (see https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def costs_line(costs):
    v = " ".join(f"{number:.2f}" for number in costs["v"])
    return f"an autoregressive step {1000 * costs['step']:.2f} ms, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}"


def acceptance_lines(counts):
    """The end of the line about target calls, and two lines about draft tokens."""
    shares = [f"{i}: {share:.0%}" for i, share in enumerate(counts["acceptance_by_position"], 1)]
    share = f" ({counts['acceptance']:.0%}), all rounds" if counts["drafted"] else ""
    by_position = "  ".join(shares) + ", of the rounds that drafted this far" if shares else "nothing was drafted"
    accepted = f"{counts['accepted']} of {counts['drafted']} drafted tokens{share}"
    levels = sum(counts["drafted_by_position"])
    if levels < counts["drafted"]:  # a tree: at each depth, at most one node can be accepted
        n = counts["drafted_by_position"][0]
        accepted = f"{counts['accepted'] / n:.1f} tokens of a tree of depth {levels / n:.1f} "
        accepted += f"with {counts['drafted'] / n:.1f} nodes, on average"
    return f"""{counts["tokens_per_target_call"]:.2f} tokens per call
accepted      {accepted}
by position   {by_position}"""


# ------------------------------------------------------------------------------------------------ a plot


def draw(path, x, panels, lines, size=None, busy=""):
    """Write a figure of measurements with their intervals to a file. Each panel shows all lines, and there is no title.

    Parameters
    ----------
    x : str
        The name of the axis.
    panels : dict name of a number -> label of the y axis
    lines : dict name -> list of (x, row)
        A row contains the numbers and, for each number with an interval, PREFIXlow and PREFIXhigh (see `reach`). The x
        are numbers or names.
    size : (width, height), optional
        The size of the whole figure, in inches.
    busy : str
        A warning about the machine.
    """
    import matplotlib

    matplotlib.use("agg")  # draws into files, without a window
    import matplotlib.pyplot as plt

    places = list(dict.fromkeys(place for points in lines.values() for place, _ in points))
    is_numeric = all(fullmatch(r"\d+(\.\d+)?", str(place)) for place in places)
    panels = panels if not size or size[0] >= BOTH else dict([*panels.items()][:1])
    width, height = size or (PANEL[0] * len(panels), PANEL[1] + 0.2 * len(lines) / 3)
    font, longest = 10 if width >= 4.5 else 8, max(map(len, lines))
    with plt.rc_context(STYLE | {"font.size": font, "legend.fontsize": font - 1}):
        figure, axes_of = plt.subplots(1, len(panels), figsize=(width, height), layout="constrained", squeeze=False)
        for axes, (what, label) in zip(axes_of[0], panels.items()):
            tops = []
            for i, ((name, points), (colour, style)) in enumerate(zip(lines.items(), looks(lines))):
                beside = 0.7 * (i + 0.5) / len(lines) - 0.35  # next to the other lines, where x is a name
                at = [float(place) if is_numeric else places.index(place) + beside for place, _ in points]
                values, ends = [row[what] for _, row in points], [reach(row, what) for _, row in points]
                look = {"color": COLOURS[colour % 9], "marker": "os^DvP*X"[(colour + style) % 8], "label": plain(name)}
                look |= {"linestyle": ("-", "--", ":", "-.")[style % 4] if is_numeric else "none", "markersize": 4}
                axes.errorbar(at, values, [*zip(*ends)], capsize=2, linewidth=1.2, **look)
                tops += [min(value + end[1], 1.6 * max(values)) for value, end in zip(values, ends)]
            axes.axhline(1, color="#666666", linewidth=1, linestyle=":")  # above it the draft pays
            axes.set(xlabel=x, ylabel=label, ylim=(0, 1.05 * max(tops)))
            if is_numeric and len(places) <= 12:
                axes.set_xticks(sorted(map(float, places)), sorted(map(str, places), key=float))
            elif not is_numeric:
                is_long = sum(map(len, map(str, places))) > 8 * width / len(panels)
                turned = {"rotation": 30, "ha": "right"} if is_long else {}
                axes.set_xticks(range(len(places)), map(plain, places), **turned)
                axes.set_xlim(-0.5, len(places) - 0.5)
        if busy:
            axes.set_title(busy, loc="right", fontsize=7, color="#d55e00")
        if len(lines) > 1:
            n_columns = max(1, int(width / (0.4 + 0.0075 * (font - 1) * longest)))
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=n_columns)
        with replacing(path) as new:
            figure.savefig(new, format=path.rpartition(".")[2])
        plt.close(figure)


def plain(name):
    """A label that matplotlib does not parse as mathematics."""
    return str(name).replace("$", r"\$")


def looks(names):
    """(number of a colour, number of a style) of each line: in "a, b", a sets the colour and b the style."""
    parts = [name.rpartition(", ") for name in names]
    heads, tails = (list(dict.fromkeys(part[i] for part in parts)) for i in (0, 2))
    has_both = len(heads) > 1 < len(tails)
    return [(heads.index(a), tails.index(b)) if has_both else (i, 0) for i, (a, _, b) in enumerate(parts)]


def reach(row, what):
    """How far a number's interval extends below and above it; (0, 0) without an interval."""
    prefix = {"tokens_per_call": "calls_", "speedup": ""}.get(what, f"{what}_")
    low, high = row.get(f"{prefix}low"), row.get(f"{prefix}high")
    return (0, 0) if low is None else (row[what] - low, high - row[what])
