"""The figures and tables of notebook 09."""

import html
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML, display

from figures.palette import P, Q, box, legend
from speculative import ModelDrafter, museum
from speculative.testing import TableModel
from speculative.testing.mistakes.samplers import Loop
from speculative.testing.mistakes.verifiers import block, rule

plt.style.use("figures.mplstyle")
RIGHT = {"check_drafter": ModelDrafter.propose, "check_sampler": Loop, "check_language_model": TableModel.__call__}


def beside_the_right_program(exhibit):
    """An exhibit's entry beside the program in which it replaces a part; that part is marked."""
    entry = museum.source(exhibit)
    right = RIGHT.get(exhibit.grader.__name__, block if "block(" in entry else rule)
    names = {"accepts": "accept", "replaces": "rest", "bonus": "bonus"}
    parts = {
        names.get(name, name) for pair in re.findall(r"(accepts|replaces|bonus)\(|(\w+)=lambda", entry) for name in pair
    }
    sources = {"the mistake": html.escape(entry, quote=False), "the right program": marked(code(right), parts - {""})}
    style = "font: 75% monospace; white-space: pre-wrap; word-break: normal"
    cell = f'<td style="text-align: left; vertical-align: top"><b>{{}}</b><pre style="{style}">{{}}</pre>'
    display(HTML(f"<table><tr>{''.join(cell.format(*source) for source in sources.items())}</tr></table>"))


def code(thing):
    """The source of a function, a class or an object, without its docstring."""
    thing = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    return re.sub(r'\n *""".*?"""', "", inspect.getsource(thing), count=1, flags=re.DOTALL)


def marked(source, names):
    """The source as HTML; the names of parts are marked where they are defined and used."""
    source = html.escape(source, quote=False)
    return re.sub(rf"\b({'|'.join(names)})(?==|\()", r"<mark>\1</mark>", source) if names else source


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
