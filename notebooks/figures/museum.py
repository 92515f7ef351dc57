"""The figures and tables of notebook 09."""

import html

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML, display

from figures.palette import P, Q, box, legend
from speculative.testing import museum

plt.style.use("figures.mplstyle")
COLOURS = {"-": "#ffd7d5", "+": "#ccffd8"}


def what_it_changes(exhibit):
    """The right program, with the lines that the mistake removes (red) and adds (green)."""
    lines = [
        f'<span style="background: {COLOURS.get(line[:1], "none")}">{html.escape(line)}</span>'
        for line in museum.source(exhibit).splitlines()
    ]
    display(HTML(f'<pre style="font: 80% monospace">{chr(10).join(lines)}</pre>'))


def texts(names, p, with_mistake, title):
    """Bars for the probability of each text with the mistake, and lines for its probability under the target."""
    for x, value in enumerate(with_mistake):
        box(plt.gca(), x - 0.4, 0, 0.8, value, Q)
    plt.plot(range(len(p)), p, "_", color=P.colour, markersize=13, markeredgewidth=3)
    plt.xticks(range(len(names)), names, rotation=90, size=9)
    plt.xlabel("text of three tokens")
    plt.ylabel("probability")
    plt.title(title)
    legend(plt.gca(), {"the target": P, "with the mistake": Q}, loc="upper right")
    plt.grid(axis="x", visible=False)
    plt.ylim(0, 1.05 * max(*p, *with_mistake))
    plt.show()


def texts_needed(needed):
    """needed: dict name of a mistake -> the number of texts that a test needs."""
    order = sorted(needed, key=needed.get, reverse=True)
    plt.figure(figsize=(9, 6.5))
    plt.barh(order, [needed[name] for name in order], color=Q.colour, hatch=Q.hatch, edgecolor="white")
    plt.xscale("log")
    plt.xlim(1, 1e19)
    for i, name in enumerate(order):
        label = f"{np.ceil(needed[name]):.0f}" if needed[name] < 1e6 else f"{needed[name]:.0e}"
        plt.text(needed[name] * 1.4, i, label, va="center", size=9)
    plt.axvline(1e9, color="C5", linestyle="--")
    plt.text(1.5e9, 3, "a year of texts,\n30 each second", color="C5", va="center")
    plt.xlabel("texts that a test needs")
    plt.title("How many texts until a test notices?")
    plt.grid(axis="y", visible=False)
    plt.show()


def catalogue(exhibits, errors):
    """A table of exhibits: what each does wrong, its largest error of a probability, and the check that finds it."""
    head = "".join(f'<th style="text-align: left">{name}</th>' for name in ("mistake", "error", "seen by"))
    lines = []
    for one in exhibits:
        error = errors.get(one.name)
        shown = "not here" if error is None else "0" if error <= 1e-12 else f"{error:.1e}"
        what = f"<b>{html.escape(one.name)}</b><br>{html.escape(one.what)}"
        cells = what, f'<span style="white-space: nowrap">{shown}</span>', one.grader.__name__
        lines.append("".join(f'<td style="text-align: left; vertical-align: top">{cell}</td>' for cell in cells))
    display(HTML(f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"))
