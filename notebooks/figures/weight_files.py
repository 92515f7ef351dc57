"""The figures of notebook 10: the tensors of a file, and bytes as a grid."""

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

plt.style.use("figures.mplstyle")
PARTS = {  # of a tensor's name: what it is, its colour, the ink on it
    "attn": ("attention", "#f0b83c", "black"),
    "mlp": ("MLP", "#14866d", "white"),
    "wpe": ("positions (wpe)", "#7b5ba6", "white"),
    "wte": ("tokens (wte)", "#1f5fa8", "white"),
    "ln": ("layer norms (too thin to see)", "#6b6b6b", "white"),
}
LOOKS = {  # of a kind of bytes: colour, hatch
    "length": ("#c3d5ea", ""),
    "header": ("#f7dfb0", "//"),
    "data": ("#bfe0d8", ".."),
    "unused": ("#d0d0d0", "xx"),
    "zeros": ("#f0f0f0", ""),
    "magic": ("#f0c4cb", "\\\\"),
}


def tensors(offsets):
    """The tensors of a file as one bar, from a dict name -> (begin, end) in bytes."""
    _, axis = plt.subplots(figsize=(8, 2.2))
    for name, (begin, end) in offsets.items():
        _, colour, ink = next(PARTS[part] for part in PARTS if part in name)
        axis.barh(0, (end - begin) / 1e6, left=begin / 1e6, color=colour)
        if ".mlp.c_fc.weight" in name:
            layer = name.split("h.")[1].split(".")[0]
            axis.text(end / 1e6, 0, layer, ha="center", va="center", color=ink)
    patches = [Patch(color=colour, label=label) for label, colour, _ in PARTS.values()]
    axis.legend(handles=patches, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.45))
    axis.set(xlabel="offset in the data, million bytes", yticks=[], xlim=(0, end / 1e6))
    axis.set_title("Where is which tensor in the file? (numbers: the layers)")
    axis.grid(visible=False)


def grid(data, parts, title, width=16):
    """Bytes as a grid, a printable character as itself; parts is a list of (what it is, number of bytes, look)."""
    n_rows = -(-len(data) // width)
    fig, axis = plt.subplots(figsize=(7, 0.9 + 0.34 * n_rows))
    looks = [LOOKS[look] for _, n, look in parts for _ in range(n)]
    for place, (byte, (colour, hatch)) in enumerate(zip(data, looks, strict=True)):
        y, x = divmod(place, width)
        axis.barh(y, 0.94, left=x - 0.47, height=0.88, color=colour, hatch=hatch, edgecolor="white")
        sign = chr(byte) if 33 <= byte < 127 else f"{byte:02x}"
        axis.text(x, y, sign, ha="center", va="center", size=10)
    named = {what: LOOKS[look] for what, _, look in parts}
    patches = [Patch(facecolor=c, hatch=h, edgecolor="0.6", label=what) for what, (c, h) in named.items()]
    fig.legend(handles=patches, ncols=2 if len(named) > 3 else 3, loc="outside lower left", fontsize=10)
    axis.set(xlim=(-0.6, width - 0.4), ylim=(n_rows - 0.4, -0.6), title=title)
    axis.axis("off")
