"""The tables as plots, for print: for each command a function of its name. Lines are theory, points are measurements.

Only this file and plot_parts.py import matplotlib, and only where --plot asks for it.
"""

from itertools import cycle
from pathlib import Path

from .files import replacing
from .plot_parts import (  # fmt: skip
    BLUE,
    COLOURS,
    GREY,
    MARKERS,
    OFFSET,
    ORANGE,
    beside,
    break_even,
    in_words,
    most,
    name_bars,
    one_panel,
    plt,
    spread,
)

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


def draw(report, path):
    """Write the plot of a report to a file; the suffix says in which format."""
    with plt.rc_context(STYLE):
        figure = PLOTS[report["command"]](report)
        with replacing("plot", path) as new:
            figure.savefig(new, format=Path(path).suffix[1:])
        plt.close(figure)


def calibrate(report):
    rows, lengths = report["rows"], [row["K"] for row in report["rows"]]
    figure, axes = one_panel("Speedup by draft length: expected and measured")
    expected = [row["expected_speedup"] for row in rows]
    axes.plot(lengths, expected, color=BLUE, label="expected from costs and acceptance")
    measured = [row["speedup"] for row in rows]
    label = f"measured on other prompts ({report['n_prompts_timed']}), 95 % interval"
    axes.errorbar(lengths, measured, spread(rows), fmt="o", color=ORANGE, capsize=3, label=label)
    break_even(axes)
    axes.set(xlabel="draft length K (tokens)", ylabel="speedup (times the target alone)", xticks=lengths)
    axes.set_ylim(0, most(rows))
    axes.legend(loc="lower left")
    return figure


def gamma_table(report):
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    tables = report["temperatures"]
    figure.suptitle(
        "Speedup by draft length: measured, and theory with one α and one c for all K", x=0.01, ha="left", fontsize=11
    )
    for i, ((name, table), colour, marker) in enumerate(zip(tables.items(), cycle(COLOURS), cycle(MARKERS))):
        rows, lengths = table["rows"], [row["K"] for row in table["rows"]]
        for axes, what in zip(panels, ("tokens_per_call", "speedup")):
            axes.plot(lengths, [row[f"theory_{what}"] for row in rows], color=colour, linewidth=1.2)
        label = f"{name}, {table['repetition']:.0%} repeated"
        beside = [K + 0.16 * i - 0.08 * (len(tables) - 1) for K in lengths]  # so that the intervals are side by side
        calls, reach = [row["tokens_per_call"] for row in rows], spread(rows, "tokens_per_call")
        panels[0].errorbar(beside, calls, reach, fmt=marker, color=colour, capsize=2, label=label)
        measured, label = [row["speedup"] for row in rows], f"α = {table['alpha']:.2f}, c = {table['c']:.2f}"
        panels[1].errorbar(beside, measured, spread(rows), fmt=marker, color=colour, capsize=2, label=label)
    rows = [row for table in tables.values() for row in table["rows"]]
    panels[0].set(ylabel="speedup in target calls (tokens per call)", ylim=(0, most(rows, "tokens_per_call")))
    panels[1].set(ylabel="speedup in time (times the target alone)", ylim=(0, most(rows)))
    for axes in panels:
        break_even(axes)
        axes.set(xlabel="draft length K (tokens)", xticks=lengths)
        title = f"points: measured, {report['n_prompts']} prompts, 95 % interval\nlines: theory"
        axes.legend(title=title, alignment="left", loc="lower right" if axes is panels[0] else "lower left")
    return figure


def alpha_table(report):
    targets = report["targets"]
    counts = [len(next(iter(found["temperatures"].values()))["rows"]) for found in targets.values()]
    figure, panels = plt.subplots(
        len(targets), 1, figsize=(6.4, 1.2 + 0.36 * sum(counts) + 0.5 * len(counts)), layout="constrained",
        sharex=True, squeeze=False, height_ratios=counts,
    )  # fmt: skip
    figure.suptitle("How often is a draft token accepted, by drafter?", x=0.01, ha="left", fontsize=11)
    for axes, (target, found) in zip(panels[:, 0], targets.items()):
        shifts = [0.2 * i - 0.1 * (len(found["temperatures"]) - 1) for i in range(len(found["temperatures"]))]
        for (name, table), shift, colour, marker in zip(
            found["temperatures"].items(), shifts, cycle(COLOURS), cycle(MARKERS)
        ):
            rows = [(i, row) for i, row in enumerate(table["rows"]) if row["alpha"] is not None]
            some = [row for _, row in rows]
            axes.errorbar(
                [row["alpha"] for row in some], [i + shift for i, _ in rows], xerr=spread(some, "alpha"), fmt=marker,
                color=colour, capsize=2, markersize=5, label=name,
            )  # fmt: skip
            for i, row in rows:
                if row["guessed"] < 1:
                    axes.annotate(
                        f"{row['guessed']:.0%}",
                        (1.01, i + shift),
                        color=colour,
                        fontsize=7,
                        va="center",
                        annotation_clip=False,
                    )
        names = [row["drafter"] for row in next(iter(found["temperatures"].values()))["rows"]]
        axes.set(title=f"target {target}", xlim=(0, 1), yticks=range(len(names)), yticklabels=names)
        axes.invert_yaxis()
    n_prompts = next(iter(targets.values()))["n_prompts"]
    panels[-1, 0].set_xlabel(
        f"α, the probability that a draft token is accepted ({n_prompts} texts, 95 % interval);\n"
        "at the right: the share of the places with a draft, where it is not all of them"
    )
    panels[0, 0].legend()
    return figure


def drafters(report):
    names = [row["drafter"] for row in next(iter(report["rows"].values()))]
    figure, axes = one_panel("Speedup by drafter and kind of text", height=1.4 + 0.5 * len(names))
    for (kind, rows), shift, below, colour, marker in zip(
        report["rows"].items(), (-0.12, 0.12), (5, -10), COLOURS, MARKERS
    ):
        places = [i + shift for i in range(len(rows))]
        measured = [row["speedup"] for row in rows]
        axes.errorbar(measured, places, xerr=spread(rows), fmt=marker, color=colour, capsize=3, label=kind)
        for row, place in zip(rows, places):
            axes.annotate(f"K = {row['K']}", (row["speedup"], place), (0, below), color=colour, fontsize=7, **OFFSET)
    break_even(axes, upright=True)
    n_prompts = report["settings"]["n_prompts"]
    axes.set_xlabel(f"speedup over the target alone, at the fastest K ({n_prompts} prompts, 95 % interval)", fontsize=9)
    axes.set_xlim(0, most([row for rows in report["rows"].values() for row in rows]))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.legend()
    return figure


def method_table(report):
    figure, axes = one_panel("Speedup and tokens per call, by drafter and verifier", width=8, height=5)
    drafters, verifiers = (list(dict.fromkeys(row[what] for row in report["rows"])) for what in ("drafter", "verifier"))
    lossy = {row["verifier"] for row in report["rows"] if row["exactness"] == "LOSSY"}
    colours, markers, points = dict(zip(drafters, cycle(COLOURS))), dict(zip(verifiers, cycle(MARKERS))), []
    for row in report["rows"]:
        points.append((row["kinds"]["all"]["tokens_per_call"], row["kinds"]["all"]["speedup"]))
        colour, marker = colours[row["drafter"]], markers[row["verifier"]]
        face, all_kinds = "none" if row["verifier"] in lossy else colour, [row["kinds"]["all"]]
        reach = {"xerr": spread(all_kinds, "tokens_per_call"), "yerr": spread(all_kinds)}
        axes.errorbar(
            *points[-1], **reach, fmt=marker, color=colour, markerfacecolor=face, markersize=7, elinewidth=0.5
        )
    most_calls, most_speed = (1.05 * max(numbers) for numbers in zip(*points))
    for cost in (1, 1.5, 2, 3):
        end = min(most_calls, cost * most_speed)
        axes.plot([0, end], [0, end / cost], color=GREY, linewidth=0.8, zorder=1)
        axes.annotate(f"{cost:g}", (end, end / cost), (3, 2), color=GREY, fontsize=8, **OFFSET)
    break_even(axes)
    cells = [row["kinds"]["all"] for row in report["rows"]]
    axes.set(xlim=(0.8, most(cells, "tokens_per_call")), ylim=(0, most(cells)))
    axes.set_ylabel("speedup (times the target alone)")
    axes.set_xlabel(f"tokens per call of the target, all kinds of text ({cells[0]['n_texts']} prompts, 95 % interval)")
    handles = [plt.Line2D([], [], color=GREY, linewidth=0.8, label="a call with its draft\ncosts 1, 1.5, ... steps")]
    handles += [plt.Line2D([], [], color=colours[name], marker="o", linestyle="", label=name) for name in drafters]
    for name in verifiers:
        face, label = ("none", f"{name}, LOSSY") if name in lossy else (GREY, name)
        look = {"marker": markers[name], "color": GREY, "markerfacecolor": face, "linestyle": ""}
        handles.append(plt.Line2D([], [], label=label, **look))
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.03, 0.5))
    return figure


def tree_table(report):
    """The growth curve: tokens per call by the number of nodes, measured and expected."""
    figure, axes = one_panel("Tokens per call by the size of the draft", width=7)
    names = dict.fromkeys(row["drafter"] for row in report["rows"])
    for name, colour in zip(names, cycle(COLOURS)):
        for kind, line, marker in (("tree", "-", "o"), ("chain", "--", "s")):
            rows = [row for row in report["rows"] if (row["drafter"], row["kind"]) == (name, kind)]
            nodes = [row["nodes"] for row in rows]
            axes.plot(nodes, [row["expected"] for row in rows], line, color=colour, linewidth=1)
            axes.errorbar(
                nodes, [row["tokens_per_call"] for row in rows], yerr=spread(rows, "tokens_per_call"), fmt=marker,
                color=colour, markersize=5, elinewidth=0.7, label=f"{name}, {kind}",
            )  # fmt: skip
    axes.set_xscale("log", base=2)
    ticks = sorted({row["nodes"] for row in report["rows"]})
    axes.set_xticks(ticks, ticks)
    axes.set_xlabel(f"nodes of the draft; lines: expected from the acceptance by rank ({report['n_prompts']} prompts)")
    axes.set_ylabel("tokens per call of the target")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def prompts(report):
    rows, n = report["rows"], len(report["rows"])
    figure, axes = one_panel("Seconds for the same work, with and without the draft", width=7.6, height=1.4 + 0.45 * n)
    for what, shift, colour, label in (("native_seconds", -0.2, GREY, "native"), ("seconds", 0.2, BLUE, "assisted")):
        axes.barh([i + shift for i in range(n)], [row[what] for row in rows], 0.38, color=colour, label=label)
    for i, row in enumerate(rows):
        beside(axes, f"{row['speedup']:.2f} times as fast", row["seconds"], i + 0.2)
    axes.set_xlabel(
        f"seconds for {report['n_tokens']} tokens, each text once; all {n}: {in_words(report['all'])}", fontsize=9
    )
    name_bars(axes, [row["beginning"] for row in rows])
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def compare_sizes(report):
    bars = []  # (label, seconds, row of the table)
    for name, table in report["targets"].items():
        bars.append((name, table["native_seconds"], None))
        for kind, row in table["drafters"].items():
            draft = report["draft"] if kind == "model" else kind
            bars.append((f"with {draft}", row["seconds"], row))
    title, height = "Seconds for the same work, alone and with each draft", 1.2 + 0.4 * len(bars)
    figure, axes = one_panel(title, width=7, height=height)
    for i, (_, seconds, row) in enumerate(bars):
        axes.barh(i, seconds, 0.7, color=BLUE if row else GREY)
        beside(axes, in_words(row) if row else "alone", seconds, i)
    work = f"{report['n_prompts']} times {report['n_tokens']} tokens"
    axes.set_xlabel(f"seconds for {work} (95 % interval of the speedup)")
    name_bars(axes, [label for label, *_ in bars])
    axes.set_xlim(0, 1.5 * max(seconds for _, seconds, _ in bars))  # room for the texts
    return figure


PLOTS = {
    plot.__name__: plot
    for plot in (calibrate, gamma_table, alpha_table, drafters, method_table, tree_table, prompts, compare_sizes)
}
