"""The recorded data of speculative/pages/explore.html, regenerated: python dev/pages/explore_data.py

The page computes everything else itself. Recorded are the bundled pair's distributions after one prompt, the measured
costs in docs/raw, and costs that follow from the data sheet of an accelerator, as in notebook 14.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

import gpt2np
from speculative import Sampling

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "dev" / "bench"))
import summary  # noqa: E402

PAGE = ROOT / "speculative" / "pages" / "explore.html"
ELEMENT = re.compile(r'(?<=<script type="application/json" id="recorded">\n).*?(?=\n</script>)', re.S)

PROMPT = "Once upon a time there lived a"
TEMPERATURES = 0.5, 1.0, 1.5
N_TOP = 6

H100 = 989e12, 3.35e12  # operations and bytes per second, as in notebook 14
LARGE = {"n_params": 8.03e9, "n_layer": 32, "n_head": 32, "n_kv_head": 8, "d_head": 128}  # Llama 3.1 8B
SMALL = {"n_params": 1.24e9, "n_layer": 16, "n_head": 32, "n_kv_head": 8, "d_head": 64}  # Llama 3.2 1B
CONTEXT, MOST_ROWS = 100, 65


def data():
    """All of it, a dict of plain numbers, lists and texts."""
    target, tokenizer = gpt2np.load("tiny-target")
    draft, _ = gpt2np.load("tiny-draft")
    return {
        "prompt": PROMPT,
        "pairs": [pair(target, draft, tokenizer, temperature) for temperature in TEMPERATURES],
        "costs": [*measured_costs(), *(accelerator_costs(n) for n in (1, 128, 512))],
    }


def pair(target, draft, tokenizer, temperature):
    """p and q after the prompt: the most probable tokens, and two entries for all others.

    Those where p > q and those where p <= q are summed apart, so that the sum of min(p, q) stays that of all tokens.
    """
    tokens = tokenizer.encode(PROMPT)
    p, q = (Sampling(temperature)(model(tokens))[0] for model in (target, draft))
    shown = np.argsort(-np.maximum(p, q), kind="stable")[:N_TOP]
    others = ~np.isin(np.arange(len(p)), shown)
    groups = others & (p > q), others & (p <= q)
    return {
        "temperature": temperature,
        "tokens": [tokenizer.decode([int(x)]) for x in shown],
        **{
            name: rounded([*row[shown], *(row[group].sum() for group in groups)], 6)
            for name, row in {"p": p, "q": q}.items()
        },
    }


def measured_costs():
    """alpha, c and V(1), V(2), ... of two pairs with two processors' kernels, and the speedup of one at K = 3."""
    pairs = []
    for machine in ("AVX-512", "AVX2"):
        page = summary.RAW[machine]
        auto, lengths = "python main.py --K auto", {summary.LENGTHS: "<3 | alpha> <3 | speedup>"}
        alpha, gain = summary.cell(page, lengths).split(" ", 1)
        outputs = [output for command, output in summary.blocks(page).items() if auto in command]
        for name, output, more in zip(
            ("bundled pair", "124M for 355M"), outputs, ({"alpha": float(alpha), "measured": gain}, {"alpha": None})
        ):
            c, v = re.search(r"^measured: .* c = ([\d.]+), v\(1\.\.\d+\) = ([\d. ]+)$", output, re.M).groups()
            costs = {"c": float(c), "v": [float(number) for number in v.split()]}
            pairs.append({"name": f"{name}, {machine}", **more, **costs})
    return pairs


def accelerator_costs(n_texts):
    """The least costs on an H100 by its data sheet, for this many texts in one pass (notebook 14)."""
    step = pass_time(LARGE, n_texts, 1)
    return {
        "name": f"1B for 8B on an H100, {n_texts} text{'s' * (n_texts > 1)}",
        "alpha": 0.7,
        "c": rounded([pass_time(SMALL, n_texts, 1) / step], 4)[0],
        "v": rounded([pass_time(LARGE, n_texts, m) / step for m in range(1, MOST_ROWS + 1)], 4),
    }


def pass_time(shape, n_texts, n_new):
    """Seconds of a pass for n_new tokens of each text: the longer of reading weights and caches, and of computing."""
    operations, bandwidth = H100
    cache = 4 * shape["n_layer"] * shape["n_kv_head"] * shape["d_head"]  # bytes for one token of context
    attention = 4 * CONTEXT * shape["n_layer"] * shape["n_head"] * shape["d_head"]
    read = 2 * shape["n_params"] + n_texts * CONTEXT * cache
    return max(read / bandwidth, n_texts * n_new * (2 * shape["n_params"] + attention) / operations)


def rounded(values, digits):
    return [round(float(value), digits) for value in values]


if __name__ == "__main__":
    text = json.dumps(data(), separators=(",", ":")).replace("<", "\\u003c")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(ELEMENT.sub(lambda _: text, page), encoding="utf-8")
