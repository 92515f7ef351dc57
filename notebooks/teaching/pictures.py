"""Draw the pictures of slides.md, as SVG beside them: python notebooks/teaching/pictures.py (needs matplotlib).

The first four are the figures of notebook 05, from notebooks/figures; the last two are curves of speculative.theory.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from speculative import theory
from speculative.exact.reference import exact_distribution
from speculative.reference import accept, residual, sample

FOLDER = Path(__file__).resolve().parent
WORDS = "king", "fox", "wolf", "bear"
p, q = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.4, 0.3]])
P2, Q2 = np.array([[3 / 4, 1 / 4], [1 / 2, 1 / 2]])  # fox and wolf, for eight paths
WITH_THE_BUG = np.minimum(1, p / q)[2] * np.eye(4)[2] + (1 - np.minimum(1, p / q)[2]) * residual(p, q)


def one_round(rng):
    guesses = [sample(Q2, rng), sample(Q2, rng)]
    text = accept(guesses, [Q2, Q2], [P2, P2, P2], rng)[:2]  # without the bonus
    return tuple(WORDS[1 + x] for x in guesses), tuple(WORDS[1 + x] for x in text)


def curves(lines, xlabel, ylabel):
    """Curves over K, a dict name -> values for K = 0, 1, ...; each is named at its end."""
    _, axis = plt.subplots(figsize=(7, 3))
    for i, (name, values) in enumerate(lines.items()):
        axis.plot(values, "o-", color=f"C{i}", markersize=4)
        axis.text(len(values) - 0.8, values[-1], name, color=f"C{i}", va="center", size=12)
    axis.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.2, len(values) + 2), ylim=(0, None), xticks=range(len(values)))


def main():
    os.chdir(FOLDER.parent)
    sys.path.insert(0, os.getcwd())
    from figures import exactness

    plt.rcParams["svg.hashsalt"] = "slides"  # the same file each time
    lengths = np.arange(9)

    def per_call():
        lines = {f"α = {a:g}": theory.expected_tokens(a, lengths) for a in (0.5, 0.7, 0.8, 0.9)}
        curves(lines, "K, draft tokens per round", "tokens per target call")

    def speedups():
        lines = {f"c = {c:g}": theory.speedup(0.8, lengths, c) for c in (0, 0.1, 0.3, 0.8)}
        curves(lines, "K, draft tokens per round", "speedup for α = 0.8, v = 1")

    drawings = {
        "picture": lambda: exactness.q_into_p(WORDS, p, q, accepted="accepted", size=(8.6, 3.4)),
        "fork": exactness.fork,
        "paths": lambda: exactness.eight_paths(exact_distribution(one_round)),
        "bug": lambda: exactness.against_p(WORDS, p, dict(enumerate(WITH_THE_BUG))),
        "tokens": per_call,
        "speedup": speedups,
    }
    for name, draw in drawings.items():
        draw()
        plt.savefig(FOLDER / f"{name}.svg", metadata={"Date": None}, facecolor="w", bbox_inches="tight")
        plt.close()


if __name__ == "__main__":
    main()
