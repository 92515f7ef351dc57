"""The figures of notebook 02: the gelu, the next token, two heads, the logit lens, the shares of the parameters."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import P

plt.style.use("figures.mplstyle")
PARTS = {"wte": "#1f5fa8", "wpe": "#7b5ba6", "attn": "#f0b83c", "mlp": "#14866d", "ln": "#6b6b6b"}


def gelu_curve(z, gelu):
    """gelu(z), beside max(z, 0)."""
    _, axis = plt.subplots(figsize=(5, 2.6))
    axis.plot(z, np.maximum(z, 0), color="0.6", linestyle="--")
    axis.plot(z, gelu)
    axis.text(2.2, 1.2, "gelu(z)", color="C0")
    axis.text(-3.9, 0.25, "max(z, 0), for comparison", color="0.4")
    axis.set(title="How the gelu changes a number", xlabel="z", ylabel="gelu(z)")


def next_tokens(words, probs, title):
    """Bars of probabilities, the largest at the top."""
    _, axis = plt.subplots(figsize=(6, 3.4))
    bars = axis.barh(words, probs, color=P.colour)
    axis.bar_label(bars, [f"{p:.2f}" for p in probs], padding=3)
    axis.invert_yaxis()
    axis.set(title=title, xlabel="probability")
    axis.grid(visible=False)


def heads(words, patterns, titles):
    """The weights of some heads, each [n_seq, n_seq]."""
    n, size = len(words), 0.26 * len(words)
    _, axes = plt.subplots(1, len(patterns), figsize=(size * len(patterns), size + 0.6))
    for axis, weights, title in zip(axes, patterns, titles):
        axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        axis.set(title=title, xlabel="token looked at", ylabel="token that looks")
        axis.set_xticks(range(n), words, rotation=90, size=10)
        axis.set_yticks(range(n), words, size=10)
        axis.grid(visible=False)


def lens(read, said, probs):
    """The most probable next token after each layer: `said` [n_layer + 1, n], the more probable the darker."""
    _, axis = plt.subplots(figsize=(8, 0.8 + 0.34 * len(said)))
    axis.imshow(probs, cmap="Greens", vmin=0, vmax=1.2, aspect="auto")
    for (row, column), word in np.ndenumerate(said):
        axis.text(column, row, word, ha="center", va="center", color="white" if probs[row, column] > 0.7 else "black")
    axis.set_xticks(range(len(read)), read)
    axis.set_yticks(range(len(said)), ["embeddings", *(f"layer {i}" for i in range(len(said) - 1))])
    axis.set(title="What comes next, read after each layer? (darker: more probable)", xlabel="last token read")
    axis.grid(visible=False)


def parameter_shares(models):
    """Bars with sum 1, one for each model, from a dict model -> part -> number of parameters."""
    _, axis = plt.subplots(figsize=(7.6, 2.8))
    for row, parts in enumerate(models.values()):
        left = 0
        for part, n in parts.items():
            share = n / sum(parts.values())
            axis.barh(row, share, left=left, color=PARTS[part])
            if share > 0.04:  # there is room for its name
                ink = "black" if part == "attn" else "white"
                axis.text(left + share / 2, row, f"{part}\n{share:.0%}", ha="center", va="center", color=ink, size=10)
            left += share
    axis.set(xlabel="share of the parameters", title="Where are the parameters?")
    axis.set_yticks(range(len(models)), models)
    axis.invert_yaxis()
    axis.grid(visible=False)
