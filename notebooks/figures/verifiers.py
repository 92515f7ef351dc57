"""The figures of notebook 08."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED, CORRECTED, P, Q, box, legend

plt.style.use("figures.mplstyle")


def acceptance(share, curves):
    """curves: dict name -> acceptance rate for each share of p in the draft's distribution."""
    for (name, values), colour in zip(curves.items(), ("C2", "C4", "C0")):
        plt.plot(share, values, color=colour)
        side, up = ("left", -0.06) if name == "common random numbers" else ("right", 0.02)
        plt.text(0.5, values[len(values) // 2] + up, name, color=colour, ha=side)
    plt.xlabel("share of p in the draft's distribution")
    plt.ylabel("acceptance rate of one draft token")
    plt.ylim(0, 1.03)
    plt.title("How often is one draft token accepted, by the quality of the draft?")
    plt.show()


def what_becomes_of(drafts):
    """drafts: dict rule -> dict draft -> list of (text, number of accepted tokens, probability in ninths)."""
    _, axes = plt.subplots(1, len(drafts), sharey=True, figsize=(9.5, 4.4))
    for axis, (rule, parts_of) in zip(axes, drafts.items()):
        for i, parts in enumerate(parts_of.values()):
            bottom = 0
            for text, n_accepted, height in parts:
                width = 0.84 / len(text)
                for j, token in enumerate(text):
                    look = ACCEPTED if j < n_accepted else CORRECTED
                    box(axis, i - 0.42 + j * width, bottom, width, height, look, str(token))
                bottom += height
        axis.set(title=f"What does {rule} make of each draft?", xlabel="draft", ylim=(0, 4.9))
        axis.set_xticks(range(len(parts_of)), ["".join(map(str, draft)) for draft in parts_of])
        axis.grid(visible=False)
    axes[0].set_ylabel("probability, in ninths")
    legend(axes[-1], {"accepted": ACCEPTED, "the target's own token": CORRECTED}, loc="upper right")
    plt.show()


def pairs_of_models(by_rejection, by_block):
    """A point for each pair of models: the number of accepted draft tokens by the two rules."""
    plt.figure(figsize=(6, 4))
    plt.plot([0, 3], [0, 3], color="C5", linewidth=1)
    plt.plot(by_rejection, by_block, "o", color="C2")
    plt.text(2.3, 2.2, "equal", color="C5", va="top")
    plt.xlim(0.3, 2.8)
    plt.ylim(0.3, 2.8)
    plt.xlabel("draft tokens accepted by rejection")
    plt.ylabel("draft tokens accepted by block")
    plt.title("Does a block accept more? One point for each pair of models")
    plt.show()


def outputs(words, p, rules):
    """rules: dict name -> (the output's distribution, its acceptance rate, its total variation from p)."""
    _, axes = plt.subplots(1, len(rules), sharey=True, figsize=(9, 3.4))
    for axis, (name, (distribution, accepts, bias)) in zip(axes, rules.items()):
        for x, value in enumerate(distribution):
            box(axis, x - 0.4, 0, 0.8, value, Q)
        axis.plot(p, "_", color=P.colour, markersize=24, markeredgewidth=4)
        axis.set_title(f"{name}\naccepts {accepts:.2f}\nTV {bias:.2f}")
        axis.set_xticks(range(len(words)), words, rotation=45)
        axis.grid(visible=False)
    axes[0].set_ylabel("probability of a token")
    legend(axes[0], {"p, the target": P, "output": Q}, loc="upper right", fontsize=9)
    plt.show()


def price(leniences, kept, bias, points, draft_bias):
    """Bias against acceptance, of Lenient for some leniences, and points: dict name -> (acceptance, bias)."""
    plt.fill_between([kept[0], 1], [0, 1 - kept[0]], color="C5", alpha=0.2, linewidth=0)
    plt.text(0.99, 0.06, "no rule\ncan be here", color="C5", ha="right", va="center")
    plt.plot(kept, bias, "o-", color="C3")
    for lenience, x, y in list(zip(leniences, kept, bias))[1:5]:
        plt.text(x - 0.012, y, f"Lenient({lenience})", color="C3", ha="right", va="center")
    for name, (x, y) in points.items():
        lossy = y > 1e-9
        marks = {"color": "C1" if lossy else "C2", "marker": "s" if lossy else "D"}
        plt.plot(x, y, markersize=9, clip_on=False, **marks)
        side, shift = ("left", 0.015) if name == "exact_match" else ("right", -0.012)
        plt.text(x + shift, y + 0.012, name, color=marks["color"], ha=side)
    plt.axhline(draft_bias, color="C5", linestyle=":")
    plt.text(0.2, draft_bias + 0.006, "the draft model's own text", color="C5")
    plt.xlabel("acceptance rate")
    plt.ylabel("bias: total variation of output and p")
    plt.ylim(0, max(0.36, 1.1 * np.max(draft_bias)))
    plt.xlim(0.17, 1.03)
    plt.title("What bias does a rule pay for its acceptance?")
    plt.show()
