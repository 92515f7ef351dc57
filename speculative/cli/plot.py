"""--plot: the table of compare as a figure."""

from re import fullmatch

from .files import replacing

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255", "#999933")
STYLE = {  # fonts as TrueType, in .pdf files as well; the same file for the same numbers
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "axes.axisbelow": True, "legend.frameon": False, "savefig.dpi": 200, "svg.hashsalt": "", "pdf.fonttype": 42,
}  # fmt: skip
PANELS = {"speedup": "speedup in time", "tokens_per_call": "tokens per target call"}  # a number -> its axis
INTERVALS = {"speedup": "", "tokens_per_call": "calls_"}  # a number -> the prefix of its interval in a row
PANEL = (5, 4)  # inches
BOTH = 6  # inches: a plot narrower than this shows only the first panel


def plot(rows, options, busy):
    """Plot the speedup in time and in calls by the axis with the most numbers; a line for each value of the others."""
    by, axes = bool(rows[0]["by"]), [*rows[0]["setting"]]

    def worth(name):
        values = {row["setting"][name] for row in rows}
        return all(fullmatch(r"[\d.]+", value) for value in values), len(values)

    x, lines = "" if by else max(axes, key=worth, default=""), {}
    for row in rows:
        rest = {name: text for name, text in row["setting"].items() if name != x and text}
        words = (text if text[:1].isalpha() else f"{name} {text}" for name, text in rest.items())
        lines.setdefault(", ".join(words), []).append((row["by"] or row["setting"].get(x, "") or "-", row))
    draw(options.plot, x or options.by, lines, options.plot_size, busy)


def draw(path, x, lines, size=None, busy=""):
    """Write a figure of measurements with their intervals to a file. Each panel shows all lines, and there is no title.

    Parameters
    ----------
    x : str
        The name of the axis.
    lines : dict name -> list of (x, row)
        Rows of the table; the x are texts, numbers or names.
    size : (width, height), optional
        The size of the whole figure, in inches.
    busy : str
        A warning about the machine.
    """
    import matplotlib

    matplotlib.use("agg")  # draws into files, without a window
    import matplotlib.pyplot as plt

    places = list(dict.fromkeys(place for points in lines.values() for place, _ in points))
    is_numeric = all(fullmatch(r"\d+(\.\d+)?", place) for place in places)
    panels = ["speedup"] if size and size[0] < BOTH else [*PANELS]
    width, height = size or (PANEL[0] * len(panels), PANEL[1] + 0.2 * len(lines) / 3)
    font, longest = 10 if width >= 4.5 else 8, max(map(len, lines))
    with plt.rc_context(STYLE | {"font.size": font, "legend.fontsize": font - 1}):
        figure, axes_of = plt.subplots(1, len(panels), figsize=(width, height), layout="constrained", squeeze=False)
        for axes, what in zip(axes_of[0], panels):
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
            axes.set(xlabel=x, ylabel=PANELS[what], ylim=(0, 1.05 * max(tops)))
            if is_numeric and len(places) <= 12:
                axes.set_xticks(sorted(map(float, places)), sorted(places, key=float))
            elif not is_numeric:
                is_long = sum(map(len, places)) > 8 * width / len(panels)
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
    return name.replace("$", r"\$")


def looks(names):
    """(number of a colour, number of a style) of each line: in "a, b", a sets the colour and b the style."""
    parts = [name.rpartition(", ") for name in names]
    heads, tails = (list(dict.fromkeys(part[i] for part in parts)) for i in (0, 2))
    has_both = len(heads) > 1 < len(tails)
    return [(heads.index(a), tails.index(b)) if has_both else (i, 0) for i, (a, _, b) in enumerate(parts)]


def reach(row, what):
    """How far a number's interval extends below and above it; (0, 0) without an interval."""
    low, high = row[f"{INTERVALS[what]}low"], row[f"{INTERVALS[what]}high"]
    return (0, 0) if low is None else (row[what] - low, high - row[what])
