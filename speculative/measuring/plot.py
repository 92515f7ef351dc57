"""The table of a comparison as a figure, with matplotlib."""

from re import fullmatch

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255", "#999933")
STYLE = {  # fonts as TrueType, in .pdf files as well; the same file for the same numbers
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "axes.axisbelow": True, "legend.frameon": False, "savefig.dpi": 200, "svg.hashsalt": "", "pdf.fonttype": 42,
}  # fmt: skip
PANELS = {"speedup": "speedup in time", "tokens_per_call": "tokens per target call"}  # a number -> its axis
INTERVALS = {"speedup": "", "tokens_per_call": "calls_"}  # a number -> the prefix of its interval in a row
PANEL = (5, 4)  # inches
BOTH = 6  # inches: a plot narrower than this shows only the first panel


def plot(path, kind, rows, size=None, busy=""):
    """Plot the speedup in time and in calls by the axis with the most numbers; a line for each value of the others.

    Parameters
    ----------
    path : str or Path
    kind : str
        The format: png, pdf or svg.
    rows : list of dict
        As in table.py.
    size : (width, height), optional
        The size of the whole figure, in inches.
    busy : str
        A warning about the machine.
    """
    has_names, axes = any(row["by"] for row in rows), [*rows[0]["setting"]]

    def worth(name):
        values = {row["setting"][name] for row in rows}
        return all(fullmatch(r"[\d.]+", value) for value in values), len(values)

    x, lines = "" if has_names else max(axes, key=worth, default=""), {}
    for row in rows:
        rest = {name: text for name, text in row["setting"].items() if name != x and text}
        words = (text if text[:1].isalpha() else f"{name} {text}" for name, text in rest.items())
        lines.setdefault(", ".join(words), []).append((row["by"] or row["setting"].get(x, "") or "-", row))
    draw(path, kind, x or "prompts" * has_names, lines, size, busy)


def draw(path, kind, x, lines, size=None, busy=""):
    """Draw `lines`, dict name -> list of (x, row); the x are texts, numbers or names. There is no title."""
    import matplotlib

    matplotlib.use("agg")  # draws into files, without a window
    import matplotlib.pyplot as plt

    panels = ["speedup"] if size and size[0] < BOTH else [*PANELS]
    width, height = size or (PANEL[0] * len(panels), PANEL[1] + 0.2 * len(lines) / 3)
    font = 10 if width >= 4.5 else 8
    places = list(dict.fromkeys(place for points in lines.values() for place, _ in points))
    with plt.rc_context(STYLE | {"font.size": font, "legend.fontsize": font - 1}):
        figure, axes_of = plt.subplots(1, len(panels), figsize=(width, height), layout="constrained", squeeze=False)
        for axes, number in zip(axes_of[0], panels):
            top = draw_lines(axes, number, lines, places)
            axes.axhline(1, color="#666666", linewidth=1, linestyle=":")  # above it the draft pays
            axes.set(xlabel=x, ylabel=PANELS[number], ylim=(0, 1.05 * top))
            name_places(axes, places, width / len(panels))
        if busy:
            axes.set_title(busy, loc="right", fontsize=7, color="#d55e00")
        if len(lines) > 1:
            width_of_entry = 0.4 + 0.0075 * (font - 1) * max(map(len, lines))  # inches: the mark and the longest name
            n_columns = max(1, int(width / width_of_entry))
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=n_columns)
        figure.savefig(path, format=kind)
        plt.close(figure)


def draw_lines(axes, number, lines, places):
    """Draw one number of all lines with its intervals; returns the largest y to show, which may cut a long interval.

    If the places are names, the points of a place are side by side, and no line connects them.
    """
    is_numeric = are_numbers(places)
    tops, reached = [], []
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
        reached += [(x, value + above) for x, value, (_, above) in zip(at, values, ends)]
    top = max(tops)
    for x, end in reached:
        if end > 1.05 * top:  # the interval goes on above the panel
            axes.annotate("\u2191", (x, 1), xycoords=axes.get_xaxis_transform(), ha="center", va="top", fontsize=8)
    return top


def name_places(axes, places, width):
    """Label the x axis of a panel, `width` inches wide; for more than 12 numbers, matplotlib chooses the ticks."""
    if not are_numbers(places):
        is_long = sum(map(len, places)) > 8 * width
        turned = {"rotation": 30, "ha": "right"} if is_long else {}
        axes.set_xticks(range(len(places)), map(plain, places), **turned)
        axes.set_xlim(-0.5, len(places) - 0.5)
    elif len(places) <= 12:
        axes.set_xticks(sorted(map(float, places)), sorted(places, key=float))


def are_numbers(places):
    return all(fullmatch(r"\d+(\.\d+)?", place) for place in places)


def plain(name):
    """A label that matplotlib does not parse as mathematics."""
    return name.replace("$", r"\$")


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
    low, high = row[f"{INTERVALS[number]}low"], row[f"{INTERVALS[number]}high"]
    return (0, 0) if low is None else (row[number] - low, high - row[number])
