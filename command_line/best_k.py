"""The draft length that a comparison suggests: its own rounds give the costs and the acceptance for `theory.best_K`.

Left out are the first round of each text, which processes the prompt, and whatever K costs beyond the rounds seen: v is
a straight line through v(1) = 1 and the v measured at the usual draft length, up to twice that length.
Next: views.py
"""

from collections import Counter
from statistics import median

import numpy as np

from speculative.theory import best_K, estimate_alpha
from speculative.tree import is_chain


def suggestion(plain, assisted):
    """Which K the rounds of two texts suggest (`Generation`): of the target alone, and with a draft.

    Returns
    -------
    dict
        best_K: 0 where every K is expected to be slower than the target alone; best_K_from: alpha, c, v as {number of
        tokens: v}, and most_K, the largest K considered. Both None where too little was drafted, and for trees.
    """
    later = [r for r in assisted.rounds[1:] if len(r.drafted)]
    if not later or len(plain.rounds) < 2 or any(not is_chain(r.parents) for r in later):
        return {"best_K": None, "best_K_from": None}
    step = median(checking(r) for r in plain.rounds[1:])
    counts = Counter(len(r.drafted) for r in later)
    K = max(counts, key=lambda k: (counts[k], k))  # the usual draft length
    alpha, _, _ = estimate_alpha(assisted.stats.accepted, assisted.stats.rejected)
    c = median(r.seconds["draft"] / len(r.drafted) for r in later) / step
    v = median(checking(r) for r in later if len(r.drafted) == K) / step
    line = np.maximum(1, 1 + (v - 1) * np.arange(2 * K + 1) / K)  # less than 1 is noise
    return {
        "best_K": best_K(alpha, c, line),
        "best_K_from": {"alpha": alpha, "c": c, "v": {str(K + 1): v}, "most_K": 2 * K},
    }


def checking(r):
    """Seconds of a round without the drafting."""
    return r.seconds["target"] + r.seconds["verify"]


def suggestion_line(report):
    """The suggestion in words."""
    K, found = report["best_K"], report["best_K_from"]
    number = f"{K} or more" if K == found["most_K"] else f"{K} (no draft)" if K == 0 else K
    ((m, v),) = found["v"].items()
    numbers = f"alpha {found['alpha']:.2f} of the tokens tested, c {found['c']:.2f}, v({m}) {v:.2f}"
    return f"{number}, by the costs and acceptance of this run ({numbers})"
