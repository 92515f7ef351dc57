"""The figures of notebook 12: heads, EAGLE, a parallel block and recycling."""

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch
COLOURS = {"Medusa": "C4", "Hydra": "C1", "EAGLE": "C0", "parallel block": "C2", "draft model": "C5", "recycling": "C3"}


def learning(n_tokens, shares):
    """Shares of positions by training tokens: {name of the head's input: [n_trainings, len(n_tokens)]}."""
    axis = plt.figure(figsize=(WIDTH, 3.2), dpi=DPI).gca()
    for (name, curves), colour in zip(shares.items(), ("C4", "C1")):
        axis.fill_between(n_tokens, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.25, linewidth=0)
        axis.plot(n_tokens, curves.mean(axis=0), "o-", color=colour, label=name)
    axis.set(xlabel="training tokens", ylabel="share of positions", ylim=(0, 0.5))
    axis.set_xticks(n_tokens[::2], [f"{n:,}" for n in n_tokens[::2]])
    axis.set_title("Is the head's first choice the target's?")
    axis.legend(loc="upper left")
    plt.show()


def cost_of_drafting(lengths, costs):
    """The cost of a draft by its length: {name of the drafter: [len(lengths), 3]}, the mean with its interval."""
    axis = plt.figure(figsize=(WIDTH, 3.2), dpi=DPI).gca()
    for name, (middle, low, high) in ((name, np.transpose(values)) for name, values in costs.items()):
        look = {"fmt": "o-", "color": COLOURS[name], "capsize": 3, "label": name}
        axis.errorbar(lengths, middle, (middle - low, high - middle), **look)
    axis.set(xlabel="K, draft tokens", ylabel="cost of a draft", ylim=0, xticks=lengths)
    axis.set_title("Time to draft K tokens, in autoregressive steps")
    axis.legend(loc="upper left")
    plt.show()


def among_first(shares, of_draft_model):
    """Shares [n_depths, n_ranks] of positions whose token is among the first k, {name of the drafter: shares}."""
    _, axes = plt.subplots(2, 2, sharex=True, sharey=True, figsize=(WIDTH + 0.8, 5), dpi=DPI)
    for axis, (name, curves) in zip(axes.ravel(), shares.items()):
        for curve, look in zip(curves, ("-", "--", ":")):
            axis.plot(range(1, len(curve) + 1), curve, look, color=COLOURS[name])
        axis.plot(range(1, len(curve) + 1), of_draft_model, color="C5", linewidth=1)
        axis.set(title=name, ylim=(0, 1.02), xticks=(1, 2, 4, 6, 8, 10))
    for axis in axes[1]:
        axis.set_xlabel("k, candidates for one position")
    for axis in axes[:, 0]:
        axis.set_ylabel("share of positions")
    for depth, look in enumerate(("-", "--", ":"), 1):
        axes[0, 1].plot([], look, color="black", label=f"draft token {depth}")
    axes[0, 1].plot([], color="C5", linewidth=1, label="draft model, any")
    axes[0, 1].legend(loc="lower right")
    plt.gcf().suptitle("Is the target's token among the first k?", x=0.02, ha="left")
    plt.show()


def per_call(title, series):
    """Tokens per target call, {name of the series: {name of the drafter: (mean, low, high)}}, as bars."""
    axis = plt.figure(figsize=(WIDTH + 0.8, 3.8), dpi=DPI).gca()
    height = 0.8 / len(series)
    for number, ((name, values), colour, hatch) in enumerate(zip(series.items(), ("C0", "C1"), ("", "//"))):
        middle, low, high = np.transpose([*values.values()])
        y = np.arange(len(values)) + (number - (len(series) - 1) / 2) * height
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": name, "ecolor": "0.25", "capsize": 3}
        axis.barh(y, middle - 1, 0.9 * height, left=1, xerr=(middle - low, high - middle), **look)
        for place, value, end in zip(y, middle, high):
            axis.text(end + 0.04, place, f"{value:.2f}", va="center", size=10)
    axis.set_yticks(range(len(values)), [*values])
    axis.set(xlabel="tokens per target call, with 95 % intervals", xlim=(1, 3.9), ylim=(len(values) - 0.5, -0.5))
    axis.grid(axis="y", visible=False)
    axis.set_title(title)
    axis.legend(loc="upper right")
    plt.show()
