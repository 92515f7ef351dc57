"""How often a bundled block is right, by the number of draft tokens before: the measurements of its card.

    python dev/train/measure_eagle.py [--kind eagle|block] [--out eagle_figures.json]

The target continues prompts from the held-out tales, greedily and at temperature 1. At each position the block drafts
along that text, its path being right: the first draft token follows a hidden state of the target's. The fourth follows
three that EAGLE's block predicted; the parallel block sees the third token instead. For greedy text the share of
positions where the target's token is among the block's k most probable ones; at temperature 1 the mean of the sum of
min(p, q), the probability that a draft token is accepted.
"""

import json
from pathlib import Path

import fire
import numpy as np

from gpt2np.eagle import load_eagle
from gpt2np.files.loading import load
from gpt2np.parallel import load_block
from measure_heads import greedy_texts, held_out_prompts

DEPTH = 4


def main(out="", n_prompts=36, n_tokens=64, folder="tiny-target", kind="eagle"):
    """Print the card of the block; with --out, also write it to this file. `folder` has another one's file."""
    target, tokenizer = load("tiny-target")
    params, prompts = {"eagle": load_eagle, "block": load_block}[kind](folder), held_out_prompts(tokenizer, n_prompts)
    eagle = params.on(target)
    ranks, _ = along(eagle, greedy_texts(target, prompts, n_tokens), n_tokens)
    _, overlaps = along(eagle, drawn_texts(target, prompts, n_tokens), n_tokens)
    figures = {"n_prompts": n_prompts, "n_tokens": n_tokens, "parameters": params.n_params}
    figures |= {f"top_{k}": (ranks < k).mean(axis=(0, 1)).round(4).tolist() for k in (1, 2, 3, 5, 10)}
    card = json.dumps(figures | {"overlap": overlaps.mean(axis=(0, 1)).round(4).tolist()}, indent=1)
    if out:
        Path(out).write_text(card + "\n", encoding="utf-8")
    print(card)


def drawn_texts(target, prompts, n_tokens, seed=0):
    """Each prompt with n_tokens tokens from the target's distribution, one by one: [n_prompts, n]."""
    rng, texts = np.random.default_rng(seed), []
    for prompt in prompts.tolist():
        for _ in range(n_tokens):
            prompt.append(int(rng.choice(target.n_vocab, p=softmax(target(prompt))[0])))
        texts.append(prompt)
    return np.array(texts)


def along(eagle, texts, n_tokens):
    """Ranks, from 0, of the text's own token in a draft, and overlaps: [n_texts, n_tokens - DEPTH + 1, DEPTH] each.

    The rows [DEPTH] of a position are for the tokens from this position on.
    """
    ranks, overlaps = [], []
    for text in texts.tolist():
        p = softmax(eagle.model(text, n_last=len(text)))  # all hidden states of the text, as well
        for n in range(len(text) - n_tokens, len(text) - DEPTH + 1):
            logits, drafted = eagle.draft_logits(text[: n + DEPTH - 1], n, n_last=DEPTH), text[n : n + DEPTH]
            ranks.append((logits > np.take_along_axis(logits, np.array(drafted)[:, None], -1)).sum(axis=-1))
            overlaps.append(np.minimum(p[n - 1 : n + DEPTH - 1], softmax(logits)).sum(axis=-1))
    return np.reshape(ranks, (len(texts), -1, DEPTH)), np.reshape(overlaps, (len(texts), -1, DEPTH))


def softmax(logits):
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


if __name__ == "__main__":
    fire.Fire(main)
