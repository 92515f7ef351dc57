"""The figures of notebook 06."""

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("figures.mplstyle")
DRAFT_LENGTH = "K, draft tokens per round"


def name_curves(axis, x, *curves):
    """(y, name, colour): each name next to the end of its curve, moved up where two would overlap."""
    (low, high), y_name = axis.get_ylim(), -np.inf
    for y, name, colour in sorted(curves):
        y_name = max(min(y, 0.97 * high), y_name + 0.085 * (high - low))
        axis.text(x, y_name, name, color=colour, va="center")


def passes(sizes, milliseconds, limit):
    """milliseconds: dict way -> of a pass for each number of tokens, this library's way first; limit: the machine's."""
    axis, (ours, plain) = plt.gca(), milliseconds
    one_by_one = sizes * milliseconds[ours][0]
    curves = [
        (milliseconds[plain], "o-", "C4", "one pass, plain x @ w"),
        (milliseconds[ours], "o-", "C0", f"one pass, {ours}"),
        (limit, "--", "C5", "limit of the machine"),
    ]
    axis.plot(sizes, one_by_one, ":", color="C5")
    for values, style, colour, _ in curves:
        axis.plot(sizes, values, style, color=colour)
    top = 5.2 * one_by_one[0]
    axis.set(xlabel="m, tokens", ylabel="milliseconds", xticks=sizes, xlim=(0.7, 18), ylim=(0, top))
    axis.text(5.3, 0.94 * top, "m passes, one by one", color="C5")
    for edge in (4.5, 8.5, 12.5):
        axis.axvline(edge, color="C5", linewidth=0.6)
    name_curves(axis, 13.2, *((values[-1], name, colour) for values, _, colour, name in curves))
    axis.set_title("How long does a forward pass for m tokens take?")
    plt.show()


def tokens_per_call(lengths, curves):
    """curves: dict acceptance rate -> tokens per call for each draft length."""
    axis = plt.gca()
    for alpha, tokens in curves.items():
        axis.plot(lengths, tokens, "o-", color="C2", alpha=alpha, markersize=4)
        name = f"α = {alpha}: at most {1 / (1 - alpha):.1f}"
        axis.text(lengths[-1] + 0.2, tokens[-1], name, color="C2", va="center")
    axis.set(xlabel=DRAFT_LENGTH, ylabel="tokens per call of the target", xlim=(-0.3, 15.5))
    axis.set_title("How many tokens does a call yield?")
    plt.show()


def rounds(tokens, verification, drafting):
    """Of rounds with 0, 1, ... draft tokens: the tokens, and the two parts of their cost in steps."""
    axis, lengths = plt.gca(), np.arange(len(tokens))
    axis.bar(lengths, verification, color="C0", width=0.6)
    axis.bar(lengths, drafting, bottom=verification, color="C1", width=0.6)
    axis.plot(lengths, tokens, "o-", color="C2")
    axis.set_ylim(0, 1.08 * max(tokens[-1], verification[-1] + drafting[-1]))
    name_curves(
        axis,
        lengths[-1] + 0.45,
        (tokens[-1], "tokens per round", "C2"),
        (verification[-1] / 2, "verification, v(K + 1)", "C0"),
        (verification[-1] + drafting[-1] / 2, "drafting, K c", "C1"),
    )
    axis.set(xlabel=DRAFT_LENGTH, ylabel="steps, and tokens", xlim=(-0.5, lengths[-1] + 3), xticks=lengths)
    axis.set_title("Ordinary text: does a round yield more tokens than it costs steps?")
    plt.show()


def draw_speedups(axis, measured, by_formula, name, top):
    """Measured speedups, dict K -> (speedup, low, high) from K = 1 on, and those of the formula, called `name`."""
    lengths = np.array(list(measured))
    values, low, high = np.array(list(measured.values())).T
    axis.errorbar(lengths, values, [values - low, high - values], fmt="o", color="C0", capsize=4)
    axis.plot(lengths, by_formula, "-", color="C2")
    axis.hlines(1, 0.7, lengths[-1], color="C5", linestyle=":")
    axis.set(xlabel=DRAFT_LENGTH, xlim=(0.7, lengths[-1] + 2.3), ylim=(0, 1.1 * top), xticks=lengths)
    ends = (values[-1], "measured", "C0"), (by_formula[-1], name, "C2"), (1, "without a draft", "C5")
    name_curves(axis, lengths[-1] + 0.2, *ends)


def speedups(measured, predicted):
    """The measured speedups, as for `draw_speedups`, and the predicted ones, from K = 1 on."""
    draw_speedups(plt.gca(), measured, predicted, "predicted", max(2, *map(max, measured.values()), *predicted))
    plt.ylabel("speedup")
    plt.title("Ordinary text: is the measured speedup the predicted one?")
    plt.show()


def recorded(shown):
    """shown: dict kind of text -> (alpha, measured speedups, those of the formula)."""
    _, axes = plt.subplots(1, len(shown), sharey=True, figsize=(9, 3.4))
    top = max(high for _, measured, _ in shown.values() for *_, high in measured.values())
    for axis, (kind, (alpha, measured, by_formula)) in zip(axes, shown.items()):
        draw_speedups(axis, measured, by_formula, "formula", top)
        axis.set_title(f"{kind} text, α = {alpha:.2f}: which K?")
    axes[0].set_ylabel("speedup, 355M with 124M")
    plt.show()


def when_it_pays(lengths, curves):
    """curves: dict name -> (speedup for each draft length, colour)."""
    axis = plt.gca()
    for values, colour in curves.values():
        axis.plot(lengths, values, "o-", color=colour, markersize=4)
    axis.hlines(1, 0, lengths[-1], color="C5", linestyle=":", linewidth=1)
    axis.set(xlabel=DRAFT_LENGTH, ylabel="speedup over the fastest step", ylim=(0, None))
    axis.set(xlim=(-0.2, lengths[-1] + 5), xticks=lengths)
    name_curves(axis, lengths[-1] + 0.2, *((values[-1], name, colour) for name, (values, colour) in curves.items()))
    axis.set_title("When does it pay? Speedup for α = 0.8 and c = 0.1, all over one baseline")
    plt.show()
