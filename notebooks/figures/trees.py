"""The figures of notebook 11."""

import matplotlib.pyplot as plt
import numpy as np

from figures.palette import ACCEPTED
from speculative import tree as trees

plt.style.use("figures.mplstyle")
GREY = "C5"


def candidates(means):
    """For each temperature a dict name -> the mean acceptance of 1, 2, ... candidates."""
    colours = ["C5", "C0", "C1", "C3"]
    _, axes = plt.subplots(1, len(means), sharey=True, figsize=(9, 3.6))
    for axis, (T, of_rules) in zip(axes, means.items()):
        for (name, values), colour in zip(of_rules.items(), colours):
            axis.plot(range(1, len(values) + 1), values, "o-", color=colour, label=name)
        axis.set(title=f"temperature {T}", xlabel="k, candidates for one position", xticks=[1, 2, 3, 4], ylim=(0, 1))
    axes[0].set_ylabel("probability that one is accepted")
    axes[-1].legend(loc="lower right")
    plt.show()


def tree(parents, names, accepted=()):
    """The text on the left, a column for each depth; the accepted path in the colour of accepted tokens."""
    axis, heights, leaves, depth = plt.gca(), {}, [], trees.depths(parents)

    def place(node):
        """Each leaf gets its own line; any other node is in the middle of its children."""
        below = trees.children(parents, node)
        if not below:
            leaves.append(node)
        heights[node] = np.mean([place(child) for child in below]) if below else -len(leaves)
        return heights[node]

    place(-1)
    for node, parent in enumerate(parents):
        colour = ACCEPTED.colour if node in accepted else GREY
        start = depth[parent] + 1 if parent >= 0 else 0
        axis.plot([start, depth[node] + 1], [heights[parent], heights[node]], color=colour, zorder=1)
    box = {"boxstyle": "round", "facecolor": "w"}
    axis.text(0, heights[-1], "text", ha="center", va="center", bbox=box)
    for node, name in enumerate(names):
        colour = ACCEPTED.colour if node in accepted else GREY
        ends = {"ha": "center", "va": "center", "color": colour, "bbox": {**box, "edgecolor": colour}}
        axis.text(depth[node] + 1, heights[node], f"{node}: {name}", **ends)
    axis.set(xlim=(-0.4, max(depth) + 1.5), ylim=(-len(leaves) - 0.6, -0.4))
    axis.axis("off")
    axis.set_title("One draft as a tree: which path did the target accept?")
    plt.show()


def mask(attends, names):
    """attends [n_nodes, n_text + n_nodes] bool: blue where a node attends to a token."""
    n_nodes, n_tokens = attends.shape
    n_text = n_tokens - n_nodes
    plt.figure(figsize=(8, 3.6))
    plt.imshow(attends, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    plt.axvline(n_text - 0.5, color="C3")
    plt.xticks(range(n_tokens), names, rotation=90)
    plt.yticks(range(n_nodes), [f"{i}: {name}" for i, name in enumerate(names[n_text:])])
    plt.grid(visible=False)
    plt.xlabel("the text, and after the red line the nodes 0 to 6")
    plt.title("What does each node attend to? (blue)")
    plt.show()


def growth(sizes, of_tree, of_chain, limit):
    """Tokens per call of the best tree and of the chain, by their number of nodes; the limit of all chains."""
    axis = plt.gca()
    axis.semilogx(sizes, of_tree, "o-", color="C2", base=2)
    axis.semilogx(sizes, of_chain, "o-", color="C0", base=2)
    axis.axhline(limit, color="C0", linestyle=":")
    axis.text(1, limit + 0.08, f"the limit of all chains, {limit:.2f}", color="C0")
    axis.text(1.1 * sizes[-1], of_tree[-1], "best tree", color="C2", va="center")
    axis.text(1.1 * sizes[-1], of_chain[-1] - 0.3, "chain", color="C0", va="center")
    axis.set(xlabel="nodes (draft tokens in a round)", ylabel="tokens per call", xlim=(0.9, 300), ylim=(1, None))
    axis.set_xticks(sizes, sizes)
    axis.set_title("Tokens per call of a tree and of a chain, by their size (computed from w)")
    plt.show()


def speedups(predicted, measured):
    """predicted[T, name] and measured[T, name] = (speedup, low, high), a panel for each temperature T."""
    temperatures = sorted({T for T, _ in measured})
    _, axes = plt.subplots(1, len(temperatures), sharey=True, figsize=(9, 3.4))
    for axis, T in zip(axes, temperatures):
        names = [name for its_T, name in measured if its_T == T][::-1]
        values, low, high = np.array([measured[T, name] for name in names]).T
        lines = np.arange(len(names))
        axis.errorbar(values, lines, xerr=[values - low, high - values], fmt="o", color="C0", capsize=4)
        axis.plot([predicted[T, name] for name in names], lines, "D", color="C2", fillstyle="none")
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(lines, names)
        axis.set(title=f"temperature {T}", xlabel="speedup", xlim=(0.6, 2.1), ylim=(-0.6, len(names) - 0.4))
        axis.grid(axis="y", visible=False)
    axes[0].plot([], [], "o", color="C0", label="measured, 95 % interval")
    axes[0].plot([], [], "D", color="C2", fillstyle="none", label="predicted")
    axes[0].legend(loc="lower right", fontsize=9)
    plt.show()


def free_tokens(balance, speedups):
    """speedups: dict draft cost c -> [len(balance), 2], of the best chain and of the best tree."""
    axis = plt.gca()
    for (cost, values), colour in zip(speedups.items(), ("C2", "C0")):
        chain, best = np.array(values).T
        axis.semilogx(balance, best, "-", color=colour)
        axis.semilogx(balance, chain, "--", color=colour)
        axis.text(105, best[-1], f"tree, c = {cost:.2g}", color=colour, va="center")
        shift = 0.15 if colour == "C2" else -0.15  # off the other cost's curves
        axis.text(105, chain[-1] + shift, f"chain, c = {cost:.2g}", color=colour, va="center")
    axis.set(xlabel="m*, tokens in a forward pass that are free", ylabel="predicted speedup")
    axis.set(xlim=(1, 260), ylim=(0.9, None))
    axis.set_xticks([1, 2, 5, 10, 20, 50, 100], [1, 2, 5, 10, 20, 50, 100])
    axis.set_title("Computed, not measured: speedup by the number of free tokens")
    plt.show()
