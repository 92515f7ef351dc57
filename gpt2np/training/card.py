"""The metrics on a drafter's card: how often it predicts its target correctly, by the number of draft tokens before.

They are measured along texts that the target has written, not by drafting: at each position the drafter predicts the
tokens that follow, given the correct tokens before. For greedy text the metric is the share of positions where the
target's token is among the drafter's k most probable ones. At temperature 1 it is the mean of sum min(p, q), which is
the probability that a draft token is accepted. The drafters are the NumPy ones that users run.
"""

import numpy as np

from ..drafting.eagle import load_eagle
from ..drafting.heads import load_heads
from ..drafting.parallel import load_parallel
from ..files.loading import load
from ..reference import softmax

DEPTH = 4
RANKS = (1, 2, 3, 5, 10)


def rows_of(kind, target, folder):
    """(rows, depth, n_params) for a kind of drafter in a folder.

    rows(text [n + depth - 1], n) -> logits [depth, n_vocab] by the drafter after the text's first n, n + 1, .. tokens.
    """
    if kind in ("heads", "medusa"):
        heads = load_heads(folder, "hydra" if kind == "heads" else kind)

        def rows(text, n):
            state = target.states(text[: n - 1])  # head j proposes the j-th token after n
            seen = [np.array([text[n - 1 : n - 1 + j]]) for j in range(1, heads.n_heads + 1)]
            return np.concatenate([heads.logits(target, state, tokens) for tokens in seen])

        return rows, heads.n_heads, heads.n_params
    if kind == "draft":
        draft = load(folder)[0]
        return lambda text, n: draft(text, n_last=len(text) - n + 1), DEPTH, draft.n_params
    params = {"eagle": load_eagle, "parallel": load_parallel}[kind](folder)
    block = params.on(target)
    return lambda text, n: block.draft_logits(text, n, n_last=len(text) - n + 1), DEPTH, params.n_params


def ranks_and_overlaps(rows, depth, target, texts, n_new, step=1):
    """The ranks, from 0, of the texts' tokens, and the overlaps: each [n_texts, n_positions, depth].

    The positions are every step-th of the last n_new. The values at a position are for the tokens that start there.
    """
    ranks, overlaps = [], []
    for text in np.asarray(texts).tolist():
        logits = target(text, n_last=len(text))  # this also computes all hidden states of the text
        p = softmax(logits.astype(np.float64))
        for n in range(len(text) - n_new, len(text) - depth + 1, step):
            logits, drafted = rows(text[: n + depth - 1], n), np.array(text[n : n + depth])
            ranks.append((logits > np.take_along_axis(logits, drafted[:, None], -1)).sum(axis=-1))
            overlaps.append(np.minimum(p[n - 1 : n + depth - 1], softmax(logits.astype(np.float64))).sum(axis=-1))
    return np.reshape(ranks, (len(texts), -1, depth)), np.reshape(overlaps, (len(texts), -1, depth))


def measured(kind, target, folder, greedy, drawn, n_new, step=1):
    """The measurements by depth, from greedy text and from text at temperature 1: dict, for a card in JSON."""
    rows, depth, n_params = rows_of(kind, target, folder)
    ranks, _ = ranks_and_overlaps(rows, depth, target, greedy, n_new, step)
    card = {"n_texts": len(greedy), "n_tokens": n_new, "parameters": n_params}
    card |= {f"top_{k}": (ranks < k).mean(axis=(0, 1)).round(4).tolist() for k in RANKS}
    if kind not in ("heads", "medusa"):  # these drafters sample nothing
        _, overlaps = ranks_and_overlaps(rows, depth, target, drawn, n_new, step)
        card["overlap"] = overlaps.mean(axis=(0, 1)).round(4).tolist()
    return card
