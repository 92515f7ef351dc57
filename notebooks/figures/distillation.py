"""The figures of notebook 13: what determines the acceptance rate, and training for it."""

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch


def temperatures(of_draft, lines):
    """α by the temperature of the draft, {temperature of the target: (means, half widths)}."""
    axis = plt.figure(figsize=(WIDTH, 3.8), dpi=DPI).gca()
    for (T, (middle, half)), colour, mark in zip(lines.items(), ("C5", "C1", "C0", "C3"), "osD^"):
        axis.errorbar(of_draft, middle, half, fmt=mark + "-", color=colour, capsize=2, markersize=5, label=f"{T}")
        best = middle.argmax()
        axis.plot(of_draft[best], middle[best], "o", color=colour, markersize=13, fillstyle="none")
    axis.set(xlabel="temperature of the draft", ylabel="α", ylim=(0, 1.15), xticks=of_draft)
    axis.set_yticks(np.arange(0, 1.1, 0.2))
    axis.set_title("α by temperature (a ring: the line's highest)")
    axis.legend(title="temperature of the target", ncols=4, loc="upper left", columnspacing=1)
    plt.show()


def sizes(groups):
    """α by the number of parameters, {name of a group: [(name, parameters, α, half width)]}."""
    axis = plt.figure(figsize=(WIDTH, 3.6), dpi=DPI).gca()
    for (group, drafts), colour, mark in zip(groups.items(), ("C4", "C0", "C1"), "osD"):
        names, n_params, alphas, halves = zip(*drafts)
        axis.errorbar(n_params, alphas, halves, fmt=mark, color=colour, capsize=3, markersize=7, label=group)
        for i, (name, n, alpha, half) in enumerate(zip(names, n_params, alphas, halves)):
            side = 1 if i % 2 == 0 else -1  # above or below, so that neighbours have room
            look = {"color": colour, "ha": "center", "va": "bottom" if side > 0 else "top"}
            axis.annotate(name, (n, alpha + side * half), (0, 4 * side), textcoords="offset points", **look)
    axis.set(xlabel="parameters", ylabel="α", xscale="log", xlim=(700, 2e7), ylim=(0, 1.3))
    axis.set_yticks(np.arange(0, 1.1, 0.25))
    axis.set_title("α at temperature 1 by the number of parameters")
    axis.legend(loc="upper left")
    plt.show()


def training(curves, before):
    """α on new texts during the training, {loss: [(step, α)]}."""
    axis = plt.figure(figsize=(WIDTH, 3.4), dpi=DPI).gca()
    for (loss, history), colour, look in zip(curves.items(), ("C4", "C0", "C2"), (":", "-", "--")):
        axis.plot(*zip(*history), look, color=colour, label=loss)
    axis.axhline(before, color="C5", linewidth=1, label="before training")
    axis.set(xlabel="gradient steps", ylabel="α on new texts", ylim=(0.1, 0.7))
    axis.set_title("α during training: the same draft, three losses")
    axis.legend(loc="upper left")
    plt.show()


def speedups(rates, curves, marks):
    """Speedup by α, {cost c of a draft token: values}, and lines at the α of some drafts {name: α}."""
    axis = plt.figure(figsize=(WIDTH, 4.2), dpi=DPI).gca()
    for (c, values), colour, look in zip(curves.items(), ("C2", "C0", "C1", "C3"), ("-", "--", "-.", ":")):
        axis.plot(rates, values, look, color=colour, label=f"c = {c}")
    highest = max(map(max, curves.values()))
    for name, alpha in marks.items():
        axis.axvline(alpha, color="C5", linestyle=":", linewidth=1)
        axis.text(alpha - 0.01, highest, name, color="C5", rotation=90, ha="right", va="top", size=10)
    axis.set(xlabel="α", ylabel="speedup at the best K", xlim=(0, 1), ylim=(0, 1.05 * highest))
    axis.set_title("Speedup by α and by the cost c of a draft token")
    axis.legend(loc="upper left", bbox_to_anchor=(0.45, 1), handlelength=1.4)
    plt.show()
