"""Draw docs/method.png, the picture of the README: rejection sampling as one distribution turned into another.

    python dev/pages/make_picture.py

It needs the extra `notebooks`, for matplotlib. The numbers are those of notebook 05.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

WORDS = ["king", "fox", "wolf", "bear"]
P = np.array([0.4, 0.3, 0.2, 0.1])  # the target's distribution
Q = np.array([0.1, 0.2, 0.4, 0.3])  # the draft model's
ACCEPTED, REJECTED, CORRECTED = "#2e8b57", "#e0c9a6", "#c0392b"


def bars(axis, top, colour, hatch, title):
    """The common part of P and Q in each bar, and above it what `top` adds."""
    common = np.minimum(P, Q)
    axis.bar(WORDS, common, color=ACCEPTED, width=0.7)
    axis.bar(WORDS, top - common, bottom=common, color=colour, hatch=hatch, edgecolor="w", linewidth=0, width=0.7)
    for x, (low, high) in enumerate(zip(common, top)):
        axis.text(x, low / 2, f"{low:.1f}", ha="center", va="center", color="w")
        if high > low:
            dark = "k" if hatch else "w"
            box = {"facecolor": colour, "edgecolor": "none", "pad": 1} if hatch else None
            axis.text(x, (low + high) / 2, f"{high - low:.1f}", ha="center", va="center", color=dark, bbox=box)
    axis.set_title(title, loc="left", fontsize=11)
    axis.set(ylim=(0, 0.54), yticks=[])
    axis.spines[["top", "left", "right"]].set_visible(False)
    axis.tick_params(bottom=False)


def main():
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.1), dpi=160, layout="constrained", sharey=True)
    bars(left, Q, REJECTED, "//", "The draft proposes a token from q ...")
    bars(right, P, CORRECTED, "", "... and the output has exactly the distribution p")
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=ACCEPTED),
        plt.Rectangle((0, 0), 1, 1, fc=REJECTED, ec="w", hatch="//"),
    ]
    names = ["accepted: min(p, q)", "rejected: q − p"]
    left.legend(handles, names, frameon=False, loc="upper left", fontsize=10, borderaxespad=0)
    handles[1] = plt.Rectangle((0, 0), 1, 1, color=CORRECTED)
    names[1] = "correction: drawn from max(0, p − q), normalised"
    right.legend(handles, names, frameon=False, loc="upper left", fontsize=10, borderaxespad=0)
    figure.savefig(Path(__file__).parents[2] / "docs" / "method.png", facecolor="w")


if __name__ == "__main__":
    main()
