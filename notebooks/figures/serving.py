"""The figures of notebook 14: accelerators, batches, and the rules of engines."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED, BONUS, CORRECTED, Look, Q, box, legend

plt.style.use("figures.mplstyle")
WIDTH, DPI = 4.8, 150  # inches, dots per inch
PADDING = Look("#e4e4e4", "", "black")
KINDS = {"accepted": ACCEPTED, "corrected": CORRECTED, "bonus": BONUS, "rejected": Q, "padding": PADDING}


def forward_cost(n_tokens, costs):
    """V(m) / V(1) by m = n_tokens, {bits of a weight: (m*, values)}."""
    axis = plt.figure(figsize=(WIDTH, 3.4), dpi=DPI).gca()
    for (bits, (free, values)), colour, mark in zip(costs.items(), ("C0", "C2", "C1"), "os^"):
        axis.loglog(n_tokens, values, color=colour)
        axis.plot(free, 1, mark, color=colour, markersize=8, label=f"{bits}-bit weights, m* = {free:.0f}")
    axis.loglog([1, 15], [1, 15], ":", color="C5", label="m autoregressive steps")
    ticks = [1, 10, 100, 1000]
    axis.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axis.set_yticks(ticks[:2], ["1", "10"])
    axis.set(xlabel="m, tokens in one forward pass", ylabel="V(m) / V(1)", ylim=(0.8, 500))
    axis.set_title("Cost of a pass for m tokens (H100)")
    axis.legend(loc="upper left")
    plt.show()


def batch_and_context(curves):
    """Speedup by batch size, {context: ((batch sizes, speedups), the same if the draft reads 512 tokens, or None)}."""
    axis = plt.figure(figsize=(WIDTH + 0.8, 3.8), dpi=DPI).gca()
    for (context, (reads_all, reads_512)), colour, mark in zip(curves.items(), ("C3", "C1", "C2", "C0"), "sDo^"):
        axis.semilogx(*reads_all, color=colour)
        axis.plot(reads_all[0][-1], reads_all[1][-1], mark, color=colour, label=f"{context:,}")
        if reads_512:
            axis.semilogx(*reads_512, "--", color=colour)
            axis.plot(reads_512[0][-1], reads_512[1][-1], mark, color=colour)
    axis.plot([], "--", color="black", label="draft reads 512")
    axis.axhline(1, color="C5", linestyle=":")
    ticks = [1, 10, 100, 1000]
    axis.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axis.set(xlabel="batch size, up to a full memory", ylabel="speedup at the best K", ylim=(0.9, 2.6))
    axis.set_title("Speedup by batch size and context (H100, α = 0.7)")
    axis.legend(title="tokens of context", loc="upper right")
    plt.show()


def one_pass(lengths, per_call, speedups):
    """By K: tokens per target call {name: [3, n_lengths]} with intervals, and speedups {batch size: {name: values}}."""
    _, axes = plt.subplots(3, 1, sharex=True, figsize=(WIDTH, 7.5), dpi=DPI)
    looks = {"a pass for each token": ("C0", "o-"), "one pass": ("C2", "s--")}
    for name, (middle, low, high) in per_call.items():
        colour, form = looks[name]
        axes[0].errorbar(lengths, middle, (middle - low, high - middle), fmt=form, color=colour, capsize=3, label=name)
    axes[0].set(ylabel="tokens per target call", ylim=1, title="Tokens per target call by K (95 % intervals)")
    for axis, (batch, values) in zip(axes[1:], speedups.items()):
        for name, curve in values.items():
            colour, form = looks[name]
            axis.plot(lengths, curve, form, color=colour, label=name)
        axis.set(ylabel="speedup", ylim=(1, 3.4), title=f"Speedup by K, batch size {batch} (H100)")
    axes[0].legend(loc="upper left")
    axes[2].set(xlabel="K, draft tokens", xticks=lengths)
    plt.show()


def measured(batches, gains, predicted):
    """Speedup over no draft by batch size: {K: [n_laps, n_batches]}; and as predicted from passes: {K: [n_batches]}."""
    axis = plt.figure(figsize=(WIDTH, 3.6), dpi=DPI).gca()
    for (K, laps), colour, mark in zip(gains.items(), ("C0", "C1"), "os"):
        middle = np.median(laps, axis=0)
        spread = middle - laps.min(axis=0), laps.max(axis=0) - middle
        axis.errorbar(batches, middle, spread, fmt=mark + "-", color=colour, capsize=3, label=f"K = {K}, measured")
        axis.plot(batches, predicted[K], "--", color=colour, label=f"K = {K}, from passes")
    axis.axhline(1, color="C5", linestyle=":")
    axis.set(xlabel="batch size", ylabel="speedup", xscale="log", ylim=(0, None))
    axis.set_xticks(batches, batches)
    axis.minorticks_off()
    axis.set_title("Speedup over no draft by batch size (this machine)")
    axis.legend(loc="lower left", ncols=2, columnspacing=1, handlelength=1.6)
    plt.show()


def acceptance(temperatures, rules):
    """Acceptance rate by temperature with intervals, {name: ([n_temperatures], half widths)}."""
    axis = plt.figure(figsize=(WIDTH, 3.6), dpi=DPI).gca()
    for (name, (middle, half)), colour, mark in zip(rules.items(), ("C0", "C1", "C3"), "os^"):
        axis.errorbar(temperatures, middle, half, fmt=mark + "-", color=colour, capsize=3, label=name)
    axis.set(xlabel="temperature of both models", ylabel="acceptance rate", ylim=(0, 1.25), xticks=temperatures)
    axis.set_yticks(np.arange(0, 1.1, 0.25))
    axis.set_title("Acceptance rate by temperature, for four rules")
    axis.legend(loc="upper left", ncols=1)
    plt.show()


def ragged(kinds):
    """What became of each position [n_sequences, n_rounds, K + 1], as an index of KINDS."""
    n_sequences, n_rounds, width = kinds.shape
    axis = plt.figure(figsize=(7.2, 3.2), dpi=DPI).gca()
    for (row, step, slot), kind in np.ndenumerate(kinds):
        box(axis, step * (width + 0.7) + slot, row, 1, 0.8, [*KINDS.values()][kind])
    left = (np.arange(n_rounds) * (width + 0.7))[:, None] + [0, width]
    for begin, end in left:
        for row in range(n_sequences):
            axis.plot([begin, end, end, begin, begin], row + np.array([0, 0, 0.8, 0.8, 0]), color="0.4", linewidth=0.6)
    axis.set_yticks(np.arange(n_sequences) + 0.4, range(1, n_sequences + 1))
    axis.set_xticks(left.mean(axis=1), range(1, n_rounds + 1))
    axis.set(xlabel=f"round, with up to {width} positions for a sequence", ylabel="sequence", ylim=(n_sequences, -1.3))
    axis.grid(visible=False)
    axis.set_title("What becomes of the positions in each round?")
    legend(axis, KINDS, loc="upper left", ncols=5, columnspacing=1, handlelength=1.6)
    plt.show()
