"""The figures of notebook 04: temperatures, three ways to cut off the tail, and one number that selects a token."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import P, box

plt.style.use("figures.mplstyle")


def temperatures(names, probs, bits):
    """Bars of the same tokens at several temperatures: probs and bits are dicts T -> probabilities, T -> entropy."""
    _, axes = plt.subplots(1, len(probs), sharey=True, figsize=(8, 3.2))
    for axis, (T, p) in zip(axes, probs.items()):
        axis.barh(names[::-1], p[::-1], color=P.colour)
        axis.set(title=f"T = {T}\nentropy {bits[T]:.1f} bits", xlim=(0, 1), xlabel="probability")
        axis.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
        axis.grid(axis="y", visible=False)


def tails(probs, kept):
    """Sorted probabilities at some positions, and how many tokens each rule keeps there, kept[position][rule]."""
    _, axes = plt.subplots(1, len(probs), sharey=True, figsize=(8, 3.8))
    for axis, (title, p) in zip(axes, probs.items()):
        axis.loglog(np.arange(1, len(p) + 1), p, color=P.colour)
        rules = zip(kept[title].items(), ("C5", "C3", "C4"), ("-", "--", ":"))
        for height, ((rule, n), colour, line) in zip((0.95, 0.86, 0.77), rules):
            axis.vlines(n, 1e-6, p[n - 1], color=colour, linestyle=line)
            place = {"ha": "right", "va": "top", "transform": axis.transAxes}
            axis.text(0.98, height, f"{rule}: keeps {n}", color=colour, **place)
        axis.set(title=f"How many tokens stay? ({title})", xlabel="tokens, the most probable first", ylim=(1e-6, 20))
        axis.set_yticks([1e-6, 1e-4, 1e-2, 1])  # the space above 1 is for the rules
    axes[0].set_ylabel("probability")


def selected(words, p, u):
    """The probabilities laid end to end, and the one in which u falls."""
    _, axis = plt.subplots(figsize=(6.4, 3.4))
    C = np.cumsum(p)
    for i, (end, part) in enumerate(zip(C, p)):
        if part:
            box(axis, i - 0.45, end - part, 0.9, part, P, f"{part:.1f}", size=11)
        else:
            axis.text(i, end + 0.02, "length 0:\nnever", color="0.4", ha="center", size=10)
    x = np.searchsorted(C, u, side="right")
    axis.annotate("", (x - 0.45, u), (-0.6, u), arrowprops={"arrowstyle": "->", "color": "C3", "lw": 2})
    axis.text(-0.55, u + 0.02, f"u = {u}", color="C3")
    axis.set(ylabel="cumulative probability C", xlim=(-0.62, len(p) - 0.4))
    axis.set_xticks(range(len(words)), words)
    axis.grid(axis="x", visible=False)
    axis.set_title("Which word does u select?")
