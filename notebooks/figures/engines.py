"""The figures of notebook 15: wrong distributions of engines, and rounding beside a bug."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED, CORRECTED, P, Q, box, legend

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch


def repetitions(texts, found, wanted):
    """The distribution of an engine's texts of three tokens beside the target's, both dicts text -> probability."""
    axis = plt.figure(figsize=(7.2, 3.4), dpi=DPI).gca()
    for x, text in enumerate(texts):
        look = CORRECTED if len(set(text)) < 3 else ACCEPTED
        box(axis, x - 0.4, 0, 0.8, found.get(text, 0), look)
        axis.plot([x - 0.45, x + 0.45], [wanted[text]] * 2, color=P.colour, linewidth=3)
    axis.set_xticks(range(len(texts)), ["".join(map(str, text)) for text in texts], rotation=90, size=10)
    highest = max(*found.values(), *wanted.values())
    axis.set(xlabel="text of three tokens", ylabel="probability", ylim=(0, 1.45 * highest))
    axis.set_title("Only the last token of each round is remembered: which texts occur too often?", size=11)
    legend(
        axis, {"engine: a token repeated": CORRECTED, "engine: none": ACCEPTED, "target": P}, loc="upper right", ncols=3
    )
    axis.grid(axis="x", visible=False)
    plt.show()


def error_by_draft(share, errors):
    """The total variation by the share of the target in the draft model."""
    axis = plt.figure(figsize=(WIDTH, 3), dpi=DPI).gca()
    axis.plot(share, errors, "o-", color=CORRECTED.colour)
    axis.set(xlabel="share of the target in the draft model", ylabel="total variation", ylim=0)
    axis.set_title("How does the error depend on the draft model?")
    plt.show()


def one_number(q, residual, right, wrong):
    """Above, which token a number u picks from q and from the residual; below, the resulting distributions."""
    _, (top, bottom) = plt.subplots(2, 1, figsize=(WIDTH, 5.4), dpi=DPI)
    for y, (probs, look) in enumerate([(residual, CORRECTED), (q, Q)]):
        for token in np.flatnonzero(probs):
            box(top, probs[:token].sum(), y, probs[token], 0.7, look, f"token {token}", size=11)
    top.axvline(q[0], color="black", linestyle="--")
    top.set_yticks([0.35, 1.35], ["residual", "q"])
    top.set(xlabel="u", xlim=(0, 1))
    top.set_title("Which token does u pick?")
    top.grid(visible=False)
    for shift, values, look in (-0.4, right, P), (0, wrong, CORRECTED):
        for token, value in enumerate(values):
            box(bottom, token + shift, 0, 0.38, value, look)
            bottom.text(token + shift + 0.19, value + 0.02, f"{value:.1f}", ha="center", size=11)
    bottom.set(xlabel="token", ylabel="probability", ylim=(0, 1.2), xticks=range(len(right)))
    bottom.set_title("The resulting distribution")
    legend(bottom, {"a new number: p": P, "the same number": CORRECTED}, loc="upper right")
    bottom.grid(axis="x", visible=False)
    plt.show()


def differences(widths, lines, limits):
    """D(m) in logits by m = widths, {engine: values}, and the limit of rounding {dtype: value}."""
    axis = plt.figure(figsize=(WIDTH + 0.4, 4.4), dpi=DPI).gca()
    looks = [("C1", "o-"), ("C0", "s-"), ("C1", "^--"), ("C0", "v:")]
    for (name, values), (colour, look) in zip(lines.items(), looks):
        axis.plot(widths, values, look, color=colour, label=name, markersize=7)
    for (dtype, limit), colour in zip(limits.items(), ("C1", "C0")):
        axis.axhline(limit, color=colour, linewidth=1)
        axis.text(widths[-1], limit, f"rounding in {dtype} is below", color=colour, ha="right", va="top", size=10)
    axis.set(xlabel="m, positions computed together", ylabel="D(m), in logits", yscale="log", ylim=(1e-7, 1e5))
    axis.set(xticks=widths)
    axis.set_title("How far are logits among m from those alone?")
    axis.legend(loc="upper right", fontsize=10)
    plt.show()
