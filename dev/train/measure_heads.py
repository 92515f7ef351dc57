"""How often the bundled heads are right: the rank of the target's own next token among the candidates of each head.

    python dev/train/measure_heads.py [--out heads_figures.json]

The target continues prompts from the held-out tales greedily. At each position, head i gets the hidden state of the
token i + 1 places before, and, if it is a Hydra head, the i tokens between. The share of positions where its candidate
of a rank is the target's token is the acceptance of the child of that rank at temperature 0, if the tokens before it
were accepted; the sum over the first k ranks is the acceptance of k children. Needs no PyTorch.
"""

import json
from pathlib import Path

import fire
import numpy as np

import gpt2np
from gpt2np.files.loading import load
from gpt2np.heads import KINDS, load_heads
from gpt2np.tokenizer import END_OF_TEXT

TINY = Path(gpt2np.__file__).parent / "tiny"
N_RANKS = 10


def main(out="", n_prompts=36, n_tokens=64):
    """Print the card of the heads; with --out, also write it to this file."""
    target, tokenizer = load("tiny-target")
    texts = greedy_texts(target, held_out_prompts(tokenizer, n_prompts), n_tokens)
    figures = {"n_prompts": n_prompts, "n_tokens": n_tokens}
    for kind in KINDS:
        heads = load_heads("tiny-target", kind)
        shares = accepted(target, heads, texts, n_tokens)
        top = {f"top_{k}": shares[:, :k].sum(axis=-1).round(4).tolist() for k in (1, 2, 3, 5, 10)}
        figures[kind] = {"parameters": heads.n_params, **top, "accepted": shares.round(4).tolist()}
    card = json.dumps(figures, indent=1)
    if out:
        Path(out).write_text(card + "\n", encoding="utf-8")
    print(card)


def held_out_prompts(tokenizer, n_prompts, length=64):
    """Prompts [n_prompts, length], spread evenly over the held-out tales."""
    text = (TINY / "held_out.txt").read_text(encoding="utf-8").replace("\n\n", END_OF_TEXT)
    tokens = np.array(tokenizer.encode(END_OF_TEXT + text, special=True))
    starts = np.linspace(0, len(tokens) - length, n_prompts).astype(int)
    return np.array([tokens[start : start + length] for start in starts])


def greedy_texts(target, prompts, n_tokens):
    """Each prompt with the target's n_tokens most likely next tokens, chosen one by one: [n_prompts, n]."""
    texts = []
    for prompt in prompts.tolist():
        for _ in range(n_tokens):
            prompt.append(int(target(prompt)[0].argmax()))
        texts.append(prompt)
    return np.array(texts)


def ranks(model, heads, texts, n_tokens):
    """The rank, from 0, of the last n_tokens of each text among each head's candidates [n_heads, n_texts, n_tokens]."""
    found = []
    for text in texts:
        states, n = model.states(text, len(text)), len(text) - n_tokens
        of_text = []
        for i in range(1, heads.n_heads + 1):
            places = np.arange(n, len(text))  # of the tokens to propose; head i starts from i + 1 places before
            seen = text[places[:, None] + np.arange(-i, 0)]  # [n_tokens, i]
            logits = heads.logits(model, states[places - 1 - i], seen)
            of_text.append((logits > np.take_along_axis(logits, text[places, None], -1)).sum(-1))
        found.append(of_text)
    return np.array(found).transpose(1, 0, 2)


def accepted(model, heads, texts, n_tokens):
    """How often each head's candidate of each rank is the target's token: [n_heads, N_RANKS] float64."""
    found = ranks(model, heads, texts, n_tokens)[..., None] == np.arange(N_RANKS)
    return found.mean(axis=(1, 2))


if __name__ == "__main__":
    fire.Fire(main)
