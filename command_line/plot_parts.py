"""What several plots share: colours, a panel, the reach of intervals, bars with names and texts.

Next: plots.py
"""

import matplotlib

matplotlib.use("agg")  # draws into files, without a window

import matplotlib.pyplot as plt

BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"  # safe for colour-blind readers
COLOURS = (BLUE, ORANGE, GREEN, PINK, "#56b4e9", "#e69f00")
MARKERS = "os^DvP*X"
OFFSET = {"textcoords": "offset points"}  # of a text from its place


def one_panel(title, width=6.4, height=4.2):
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set_title(title, loc="left")
    return figure, axes


def spread(rows, what="speedup"):
    """The intervals of rows as matplotlib takes them: the distances to the lower and the upper end."""
    low, high = ("calls_low", "calls_high") if what == "tokens_per_call" else ("low", "high")
    known = [(row[what], row[low], row[high]) if row[low] is not None else (0, 0, 0) for row in rows]  # else no bar
    return [[x - least for x, least, _ in known], [greatest - x for x, _, greatest in known]]


def most(rows, what="speedup"):
    """The end of an axis: intervals of few prompts may reach far beyond it."""
    _, reach = spread(rows, what)
    return min(1.05 * max(row[what] + up for row, up in zip(rows, reach)), 2 * max(row[what] for row in rows))


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
