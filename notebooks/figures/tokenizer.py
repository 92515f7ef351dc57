"""The figures of notebook 01: the merges of a word, and the bytes that a token covers."""

import matplotlib.pyplot as plt

from figures.palette import ACCEPTED, Look, P, box

plt.style.use("figures.mplstyle")
OLD, NEW = Look("#d9d9d9", "", "black"), ACCEPTED


def merges(pieces):
    """The symbols after each merge, as boxes; a merged box is as wide as its parts, and coloured where it is new."""
    _, axes = plt.subplots(1, len(pieces), figsize=(4.2 * len(pieces), 3.6))
    for axis, piece in zip(axes, pieces):
        for row, state in enumerate(piece.merges):
            left, before = 0, piece.merges[row - 1] if row else state
            for symbol in state:
                look = OLD if symbol in before else NEW
                box(axis, left, row - 0.35, len(symbol) - 0.08, 0.7, look, symbol, size=11)
                left += len(symbol)
        n = len(piece.tokens)
        name = piece.text.replace(" ", "␣")
        axis.set(title=f"How is {name} merged? {n} token{'s' * (n > 1)}", ylabel="merges done")
        axis.set(xticks=[], yticks=range(len(piece.merges)))
        axis.set_ylim(len(piece.merges) - 0.5, -0.5)
        axis.grid(visible=False)


def bytes_per_token(values):
    """Bars from a dict kind of text -> bytes per token."""
    _, axis = plt.subplots(figsize=(7, 3))
    axis.bar_label(axis.barh([*values], [*values.values()], color=P.colour), fmt="%.2f", padding=3)
    axis.set(xlabel="bytes per token, in one short text of each kind", title="How much text does a token cover?")
    axis.invert_yaxis()
    axis.grid(visible=False)
