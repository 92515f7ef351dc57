"""The figures of notebook 07."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED, CORRECTED, P, Q, box, legend

plt.style.use("figures.mplstyle")


def deterministic(words, p, parts):
    """parts: for each word as the draft token, (accepted, filled in), the two parts of the output's distribution."""
    _, axes = plt.subplots(1, len(words), sharey=True, figsize=(9, 3.3))
    for d, (axis, (accepted, filled_in)) in enumerate(zip(axes, parts)):
        for x in range(len(words)):
            box(axis, x - 0.4, 0, 0.8, accepted[x], ACCEPTED)
            box(axis, x - 0.4, accepted[x], 0.8, filled_in[x], CORRECTED)
        axis.set_title(f"draft token: {words[d]}\naccepted: {p[d]:.0%}")
        axis.set_xticks(range(len(words)), words, rotation=45)
        axis.grid(visible=False)
    axes[0].set_ylabel("probability")
    legend(axes[-1], {"accepted": ACCEPTED, "filled in": CORRECTED}, loc="upper right")
    plt.show()


def next_token(names, p, q, title):
    """Bars of p and of q for some tokens."""
    for shift, values, look in (-0.4, p, P), (0, q, Q):
        for x, value in enumerate(values):
            box(plt.gca(), x + shift, 0, 0.38, value, look)
    plt.xticks(range(len(names)), names)
    plt.ylabel("probability")
    legend(plt.gca(), {"p, the target": P, "q, counts of three tokens": Q}, loc="upper right")
    plt.title(title)
    plt.grid(axis="x", visible=False)
    plt.show()


def early_exit(alphas, errors, n_layer, of_counts):
    """alphas and errors [n_layer - 1] after 1, 2, ... layers; of_counts: the acceptance rate of counts."""
    layers = np.arange(1, n_layer)
    plt.errorbar(layers, alphas, errors, fmt="o-", color="C1", capsize=4)
    plt.plot(layers, layers / n_layer, "--", color="C5")
    plt.axhline(of_counts, color="C4", linestyle=":")
    middle = len(layers) // 2
    plt.text(layers[-1], alphas[-2] - 0.07, "first layers", color="C1", ha="right")
    plt.text(layers[middle], (middle + 2) / n_layer, "their cost c = l / n_layer", color="C5", ha="right")
    plt.text(layers[-1], of_counts - 0.07, "counts of three tokens, c near 0", color="C4", ha="right")
    plt.xlabel("layers run for a draft token, l")
    plt.ylabel("α, mean of Σ min(p, q); cost c")
    plt.ylim(0, 1)
    plt.title("For which l is α larger than c?")
    plt.show()


def by_text(results, copying):
    """results[text, temperature]: dict name of a drafter -> (tokens per call, low, high); some drafters copy."""
    _, axes = plt.subplots(2, 2, sharex=True, sharey=True, figsize=(9, 5.4))
    for axis, ((text, temperature), rows) in zip(axes.flat, results.items()):
        names = list(rows)[::-1]
        for i, name in enumerate(names):
            value, low, high = rows[name]
            colour = "C4" if name in copying else "C1"
            axis.barh(i, value, color=colour, xerr=[[value - low], [high - value]], capsize=3)
            axis.text(high + 0.08, i, f"{value:.2f}", va="center")
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(range(len(names)), names)
        axis.set(title=f"{text}, temperature {temperature}", xlim=(0, 5))
        axis.grid(axis="y", visible=False)
    for axis in axes[1]:
        axis.set_xlabel("tokens per call of the target")
    plt.show()
