"""What several plots share: colours, panels, the reach of intervals, bars with names and texts.

The plot of a command is in the command's file. Lines are theory, points are measurements. Matplotlib is imported only
where --plot asks for it.
"""

from math import inf
from pathlib import Path

from .files import replacing
from .tables import busy, counted

BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"  # safe for colour-blind readers
COLOURS = (BLUE, ORANGE, GREEN, PINK, "#56b4e9", "#e69f00", "#000000", "#882255", "#999933", "#6655cc", "#aa7755")
MARKERS = "os^DvP*X"
OFFSET = {"textcoords": "offset points"}  # of a text from its place
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.hashsalt": "",
}


def draw(plot, report, path):
    """Write the figure that `plot` makes of a report to a file; the suffix says in which format."""
    import matplotlib

    matplotlib.use("agg")  # draws into files, without a window
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure = plot(report)
        if busy(report):
            figure.text(
                1, 1, f"{busy(report)[2:]}: do not rely on times", size=7, color=ORANGE, ha="right", va="bottom"
            )
        with replacing("plot", path) as new:
            figure.savefig(new, format=Path(path).suffix[1:], bbox_inches="tight")
        plt.close(figure)


def panels(n_rows, n_columns, width, height, **options):
    """(figure, its axes), see `matplotlib.pyplot.subplots`."""
    import matplotlib.pyplot as plt

    return plt.subplots(n_rows, n_columns, figsize=(width, height), layout="constrained", **options)


def one_panel(title, width=6.4, height=4.2):
    figure, axes = panels(1, 1, width, height)
    axes.set_title(title, loc="left")
    return figure, axes


def spread(rows, what="speedup"):
    """The intervals of rows as matplotlib expects them: the distances to the lower and the upper end."""
    low, high = ("calls_low", "calls_high") if what == "tokens_per_call" else ("low", "high")
    known = [(row[what], row[low], row[high]) if row[low] is not None else (0, 0, 0) for row in rows]  # else no bar
    return [[x - least for x, least, _ in known], [greatest - x for x, _, greatest in known]]


def most(rows, what="speedup"):
    """The end of an axis: intervals of few prompts may reach far past it."""
    _, reach = spread(rows, what)
    return min(1.05 * max(row[what] + up for row, up in zip(rows, reach)), 2 * max(row[what] for row in rows))


def points(axes, places, rows, what="speedup", sideways=False, end=inf, **look):
    """Values with their intervals, at these positions; an arrow where an interval goes past the end of the axis."""
    values, look = [row[what] for row in rows], {"capsize": 2, "linestyle": "none", **look}
    if sideways:
        axes.errorbar(values, places, xerr=spread(rows, what), **look)
    else:
        axes.errorbar(places, values, yerr=spread(rows, what), **look)
    arrows(axes, places, [value + up for value, up in zip(values, spread(rows, what)[1])], end, look["color"], sideways)


def arrows(axes, places, values, end, colour, sideways=False):
    """An arrow at the end of the axis for each value past it."""
    beyond = [place for place, value in zip(places, values) if value > end]
    if beyond:
        at = ([end] * len(beyond), beyond) if sideways else (beyond, [end] * len(beyond))
        axes.plot(*at, ">" if sideways else "^", color=colour, markersize=4, clip_on=False, zorder=3)


def sample(n_prompts, what="prompt"):
    """The size of the sample, for the label of an axis."""
    return f"{counted(n_prompts, what)}, {'95 % interval' if n_prompts > 1 else 'no interval'}"


def break_even(axes, upright=False):
    """A line at a speedup of 1."""
    (axes.axvline if upright else axes.axhline)(1, color=GREY, linewidth=1, linestyle=":")


def in_words(row):
    """A speedup with its interval."""
    reach = f" ({row['low']:.2f} to {row['high']:.2f})" if row["low"] is not None else ""
    return f"{row['speedup']:.2f} times as fast{reach}"


def beside(axes, text, x, y):
    """A small text at the end of a bar."""
    axes.annotate(text, (x, y), (3, 0), va="center", fontsize=8, **OFFSET)


def name_bars(axes, names):
    """Names of the bars, from the top down, and a grid along the bars alone."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
