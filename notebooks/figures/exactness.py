"""The figures of notebook 05. They are narrow, so that their labels can be read on a phone."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED, CORRECTED, P, Q, box, legend, plain

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch


def q_into_p(words, p, q, digits=1, accepted="kept", size=(WIDTH, 3.2), overlap=None):
    """Left: q, made of accepted and rejected guesses. Right: p, made of accepted guesses and corrections.

    If the words are only some, `overlap` is what is accepted of all: the legends then count all words.
    """
    _, axes = plt.subplots(1, 2, sharey=True, figsize=size, dpi=DPI)
    common, highest = np.minimum(p, q), max(*p, *q)
    sides = (q, Q, "rejected", "q: the guesses"), (p, CORRECTED, "corrected", "p: the output")
    for axis, (whole, look, name, title) in zip(axes, sides):
        for i, parts in enumerate(zip(common, whole - common)):
            bottom = 0
            for part, its_look in zip(parts, (ACCEPTED, look)):
                number = f"{part:.{digits}f}" if part > highest / 9 else ""  # where there is room for it
                box(axis, i - 0.4, bottom, 0.8, part, its_look, number, size=12 if digits == 1 else 10)
                bottom += part
        total, rest = (common.sum(), (whole - common).sum()) if overlap is None else (overlap, 1 - overlap)
        names = {f"{accepted} {total:.{digits}f}": ACCEPTED, f"{name} {rest:.{digits}f}": look}
        legend(axis, names, loc="upper left" if whole is q else "upper right")
        axis.set_xticks(range(len(words)), words, size=12)
        axis.set(title=title, ylim=(0, 1.35 * highest))
        plain(axis)


def fork():
    """What becomes of a guessed wolf, each outcome as wide as its probability."""
    _, axis = plt.subplots(figsize=(WIDTH, 3.0), dpi=DPI)
    box(axis, 0, 2.4, 4, 0.6, Q, "wolf guessed, 0.4")
    box(axis, 0, 1.2, 2, 0.6, ACCEPTED, "kept: wolf, 0.2")
    box(axis, 2, 1.2, 2, 0.6, Q, "rejected, 0.2")
    box(axis, 2, 0, 1.5, 0.6, CORRECTED, "king, 0.15")
    box(axis, 3.5, 0, 0.5, 0.6, CORRECTED, "fox")
    for x, y, ends, yes, no in (2, 2.4, (1, 3), "u < 1/2", "u ≥ 1/2"), (3, 1.2, (2.75, 3.75), "u < 3/4", "u ≥ 3/4"):
        for end, words, side in zip(ends, (yes, no), ("right", "left")):
            axis.annotate("", (end, y - 0.6), (x, y), arrowprops={"arrowstyle": "->"})
            axis.text((x + end) / 2 + (0.1 if side == "left" else -0.1), y - 0.25, words, ha=side, va="center", size=12)
    axis.text(3.75, -0.1, "0.05", ha="center", va="top", size=12)
    axis.set(xlim=(0, 4), ylim=(-0.3, 3))
    axis.axis("off")


def eight_paths(paths):
    """Two guesses, the paths {(guesses, words): probability} of one round, and the texts; widths are probabilities."""
    _, axis = plt.subplots(figsize=(WIDTH, 4.6), dpi=DPI)

    def column(left, bottom, width, words, looks):
        for i, (word, look) in enumerate(zip(words, looks)):
            box(axis, left, bottom + 0.5 * (1 - i), width, 0.5, look, word[0])

    def title(y, words):
        axis.text(0, y, words, va="bottom", size=12)

    left = 0
    for (guesses, words), probability in paths.items():
        width = 16 * probability
        looks = [ACCEPTED if word == guess else CORRECTED for word, guess in zip(words, guesses)]
        column(left, 2, width, words, looks)
        if len(words) == 1:
            axis.text(left + width / 2, 2.25, "...", ha="center", va="center", size=12)  # the next round
        axis.text(left + width / 2, 1.95, f"{width:.0f}", ha="center", va="top", size=12)
        left += width
    for i, guesses in enumerate(["ff", "fw", "wf", "ww"]):
        column(4 * i, 4, 4, guesses, [Q, Q])
    for left, width, words in (0, 9, "ff"), (9, 3, "fw"), (12, 3, "wf"), (15, 1, "ww"):
        column(left, 0, width, words, [P, P])
        axis.text(left + width / 2, -0.05, width, ha="center", va="top", size=12)
    title(5.05, "guesses of two words, f = fox, w = wolf")
    title(3.05, "after the tests, in sixteenths")
    title(1.05, "all texts of two words, in sixteenths")
    axis.set(xlim=(0, 16), ylim=(-0.4, 6))
    axis.axis("off")
    names = {"guess": Q, "kept": ACCEPTED, "corrected": CORRECTED, "text": P}
    legend(axis, names, loc="upper left", ncols=4, columnspacing=0.9, handlelength=1.4, handletextpad=0.4)


def against_p(words, p, found):
    """Bars of p, and beside them bars of the distribution found with the bug, a dict word id -> probability."""
    _, axis = plt.subplots(figsize=(WIDTH, 2.9), dpi=DPI)
    for shift, values, look in (-0.4, p, P), (0, [found.get(x, 0) for x in range(len(words))], Q):
        for x, value in enumerate(values):
            box(axis, x + shift, 0, 0.38, value, look)
            axis.text(x + shift + 0.19, value + 0.01, f"{value:.3g}", ha="center", size=12)
    legend(axis, {"p, the target": P, "with the bug": Q}, loc="upper right")
    axis.set_xticks(range(len(words)), words, size=12)
    axis.set(ylim=(0, 0.7))
    plain(axis)
