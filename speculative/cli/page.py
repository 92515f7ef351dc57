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


def interval(row, prefix="", digits=2):
    """The interval of a row in words; the fields are PREFIXlow and PREFIXhigh."""
    low, high = row[prefix + "low"], row[prefix + "high"]
    return "-" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"


def with_interval(row, number, prefix=""):
    """A number with its interval: 1.79 (1.55 to 2.06)."""
    return f"{row[number]:.2f}" + (f" ({interval(row, prefix)})" if row[prefix + "low"] is not None else "")


def over(n, samples="prompts"):
    """The meaning of the intervals."""
    return f"95 %, Student's t over the {n} {samples}" if n > 1 else "none: there is one prompt"


def counted(n, noun):
    return f"{n} {noun}{'s' if n != 1 else ''}"


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

    if size and size[0] < BOTH:
        panels = dict([*panels.items()][:1])
    width, height = size or (PANEL[0] * len(panels), PANEL[1] + 0.2 * len(lines) / 3)
    font = 10 if width >= 4.5 else 8
    places = list(dict.fromkeys(place for points in lines.values() for place, _ in points))
    with plt.rc_context(STYLE | {"font.size": font, "legend.fontsize": font - 1}):
        figure, axes_of = plt.subplots(1, len(panels), figsize=(width, height), layout="constrained", squeeze=False)
        for axes, (number, label) in zip(axes_of[0], panels.items()):
            top = draw_lines(axes, number, lines, places)
            axes.axhline(1, color="#666666", linewidth=1, linestyle=":")
            axes.set(xlabel=x, ylabel=label, ylim=(0, 1.05 * top))
            name_places(axes, places, width / len(panels))
        if busy:
            axes.set_title(busy, loc="right", fontsize=7, color="#d55e00")
        if len(lines) > 1:
            width_of_entry = 0.4 + 0.0075 * (font - 1) * max(map(len, lines))  # inches: the mark and the longest name
            n_columns = max(1, int(width / width_of_entry))
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=n_columns)
        with replacing(path) as new:
            figure.savefig(new, format=path.rpartition(".")[2])
        plt.close(figure)


def draw_lines(axes, number, lines, places):
    """Draw one number of all lines with its intervals; returns the largest y to show, which may cut a long interval.

    If the places are names, the points of a place are side by side, and no line connects them.
    """
    is_numeric = are_numbers(places)
    tops = []
    for i, ((name, points), look) in enumerate(zip(lines.items(), looks(lines))):
        values = [row[number] for _, row in points]
        ends = [reach(row, number) for _, row in points]
        if is_numeric:
            at = [float(place) for place, _ in points]
        else:
            beside = 0.7 * (i + 0.5) / len(lines) - 0.35
            at = [places.index(place) + beside for place, _ in points]
            look["linestyle"] = "none"
        axes.errorbar(at, values, [*zip(*ends)], label=plain(name), capsize=2, linewidth=1.2, markersize=4, **look)
        tops += [min(value + above, 1.6 * max(values)) for value, (_, above) in zip(values, ends)]
    return max(tops)


def name_places(axes, places, width):
    """Label the x axis of a panel, `width` inches wide; for more than 12 numbers, matplotlib chooses the ticks."""
    if not are_numbers(places):
        is_long = sum(map(len, map(str, places))) > 8 * width
        turned = {"rotation": 30, "ha": "right"} if is_long else {}
        axes.set_xticks(range(len(places)), map(plain, places), **turned)
        axes.set_xlim(-0.5, len(places) - 0.5)
    elif len(places) <= 12:
        axes.set_xticks(sorted(map(float, places)), sorted(map(str, places), key=float))


def are_numbers(places):
    return all(fullmatch(r"\d+(\.\d+)?", str(place)) for place in places)


def plain(name):
    """A label that matplotlib does not parse as mathematics."""
    return str(name).replace("$", r"\$")


def looks(names):
    """The look of each line. In "a, b", a sets the colour and b the style, unless all a or all b are the same."""
    parts = [name.rpartition(", ") for name in names]
    heads = list(dict.fromkeys(head for head, _, _ in parts))
    tails = list(dict.fromkeys(tail for _, _, tail in parts))
    if len(heads) > 1 and len(tails) > 1:
        numbers = [(heads.index(head), tails.index(tail)) for head, _, tail in parts]
    else:
        numbers = [(i, 0) for i in range(len(parts))]
    return [
        {"color": COLOURS[i % 9], "marker": "os^DvP*X"[(i + j) % 8], "linestyle": ("-", "--", ":", "-.")[j % 4]}
        for i, j in numbers
    ]


def reach(row, number):
    """How far a number's interval extends below and above it; (0, 0) without an interval."""
    prefix = {"tokens_per_call": "calls_", "speedup": ""}.get(number, f"{number}_")
    low, high = row.get(f"{prefix}low"), row.get(f"{prefix}high")
    return (0, 0) if low is None else (row[number] - low, high - row[number])
