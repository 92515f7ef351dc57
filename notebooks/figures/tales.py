"""The tales of notebook 05, by the two bundled models with a draft, right or wrong, and by the target alone."""

import json
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import gpt2np
from figures.tables import show
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
    "on this processor the models write different tales from A and B, because their logits differ in the last bits: "
    "the proof holds all the same, but the opening of this page shows the tales of a different processor"
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
    """Show some releases of transformers with their dates and the errors that were recorded by enumeration.

    Returns a dict version -> total variation, and the days from the first package with the two quoted lines to the
    first one after it without them.
    """
    audit, packages = map(recorded, ("audit.json", "transformers.json"))
    dates = {version: date.fromisoformat(day) for version, day in packages["date"].items()}
    errors, rows = {}, []
    for row in audit:
        version = row["engine"].partition(",")[0].split()[1]  # "transformers 4.40.2, PyTorch 2.13.0"
        errors[version] = row["distance"]
        rows.append((version, f"{dates[version]:%d %B %Y}", row["paths"], f"{row['distance']:.8f}"))
    show(("transformers", "date", "paths", "error"), rows)
    first, last = packages["with_lines"][0], packages["with_lines"][-1]
    return errors, (min(day for day in dates.values() if day > dates[last]) - dates[first]).days


def recorded(name):
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
