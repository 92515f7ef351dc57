"""The figures of notebook 16: a drafter before and after its training, with and without its table."""

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch


def training(before, after, n_tokens, per_call):
    """Above: how often it is right by draft token, before and after, ([depth], half widths). Below: the training."""
    _, (top, bottom) = plt.subplots(2, 1, figsize=(WIDTH, 5.6), dpi=DPI)
    depths = np.arange(1, len(after[0]) + 1)
    for shift, (middle, half), name, look in (
        (-0.2, before, "before", {"color": "C5", "hatch": "//"}),
        (0.2, after, "after", {"color": "C2"}),
    ):
        top.bar(depths + shift, middle, 0.4, yerr=half, label=name, edgecolor="white", ecolor="0.25", capsize=3, **look)
    top.set(xlabel="draft token", ylabel="share of positions", ylim=(0, 1.2), xticks=depths)
    top.set_yticks(np.arange(0, 1.1, 0.25))
    top.set_title("Is the first choice the target's token?")
    top.legend(ncols=2, loc="upper left")
    bottom.plot(n_tokens / 1e3, per_call, "o-", color="C0")
    bottom.set(xlabel="thousands of tokens trained on", ylabel="tokens per target call", ylim=(1, 4))
    bottom.set_title("Held-out text during the training, K = 3")
    plt.show()


def by_draft_token(lines):
    """How often each draft token is right, {name: ([depth], half widths)}."""
    axis = plt.figure(figsize=(WIDTH, 3.8), dpi=DPI).gca()
    for (name, (middle, half)), colour, look in zip(lines.items(), ("C2", "C0", "C3"), ("o--", "s-", "^:")):
        depths = np.arange(1, len(middle) + 1)
        axis.errorbar(depths, middle, half, fmt=look, color=colour, capsize=3, label=name)
    axis.set(xlabel="draft token", ylabel="share of positions", ylim=(0, 1.35), xticks=depths)
    axis.set_yticks(np.arange(0, 1.1, 0.25))
    axis.set_title("Is the first choice the target's token?")
    axis.legend(loc="upper left")
    plt.show()
