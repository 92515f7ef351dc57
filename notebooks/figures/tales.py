"""The tales of notebook 05, by the two bundled models with a draft, right or wrong, and by the target alone."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from IPython.display import HTML, display

import gpt2np
from speculative import reference

PROMPT, N_TOKENS, N_TALES = "Once upon a time there was a", 40, 12
# As quoted at the top of the notebook, both with seed 2: A without the bug, B with it.
A = (
    'Once upon a time there was a sparrow. "So Percinet," said the bear. "Then eat him." "However, certainly, it is no '
    "time of trying to eat at the"
)
B = (
    "Once upon a time there was a man who had a daughter, and a son of the King's daughter, who was a son, and was "
    "cheerful to look at him. In the evening the King was waiting for him;"
)
OTHERS = (
    "on this processor the models write other tales than A and B, because their logits differ in the last bits: the "
    "proof holds all the same, but the opening of this page shows the tales of another processor"
)


@cache
def models():
    """The target, the draft model and their tokenizer."""
    target, tokenizer = gpt2np.load("tiny-target")
    return target, gpt2np.load("tiny-draft")[0], tokenizer


def write(K=3, **options):
    """The tales of seeds 0, 1, ..., 11, and the target's mean log-probability of a token in each [12]."""
    target, draft_model, tokenizer = models()
    prompt = tokenizer.encode(PROMPT)
    texts, scores = [], []
    for seed in range(N_TALES):
        tokens = reference.generate(target, draft_model, prompt, N_TOKENS, K, seed, **options)
        probs = reference.softmax(target(tokens[:-1], n_last=N_TOKENS))
        texts.append(tokenizer.decode(tokens).replace("\n", " "))
        scores.append(np.log(probs[np.arange(N_TOKENS), tokens[len(prompt) :]]).mean())
    return SimpleNamespace(texts=texts, scores=np.array(scores))


def compare(words, **kinds):
    """Show how probable the target finds each kind of tales, and return how many of each begin with these words."""
    names = {"alone": "the target alone", "exact": "speculative sampling", "bug": "the bug"}
    counts = [sum(text.startswith(f"{PROMPT} {words}") for text in some.texts) for some in kinds.values()]
    rows = [
        (names[kind], f"{mean(some):.2f} ± {error(some):.2f}", f"{count} of {N_TALES}")
        for (kind, some), count in zip(kinds.items(), counts)
    ]
    show((f"{N_TALES} tales by", "log-probability of a token", f"begin “a {words}”"), rows)
    return counts


def mean(tales):
    return tales.scores.mean()


def error(tales):
    """The standard error of the mean."""
    return tales.scores.std(ddof=1) / np.sqrt(len(tales.scores))


def first_word():
    """p and q of the two models for the word after the prompt: [n_vocab] each."""
    target, draft_model, tokenizer = models()
    return [reference.softmax(model(tokenizer.encode(PROMPT)))[0] for model in (target, draft_model)]


def releases():
    """Show what `main.py audit --json` recorded of some releases of transformers; dict version -> total variation."""
    rows = json.loads((Path(__file__).parent / "audit.json").read_text(encoding="utf-8"))
    versions = [row["engine"].partition(",")[0].split()[1] for row in rows]  # "transformers 4.40.2, PyTorch 2.13.0"
    show(
        ("transformers", "paths", "error"),
        [(version, row["paths"], f"{row['distance']:.8f}") for version, row in zip(versions, rows)],
    )
    return {version: row["distance"] for version, row in zip(versions, rows)}


def show(heads, rows):
    """Display a table."""
    html = ""
    for tag, line in [("th", heads), *(("td", row) for row in rows)]:
        html += "<tr>" + "".join(f'<{tag} style="padding-right: 1.5em">{cell}</{tag}>' for cell in line) + "</tr>"
    display(HTML(f"<table>{html}</table>"))
