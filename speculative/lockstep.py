"""reference.py for several texts, whose rounds run in step: one call of each model serves all texts.

Texts accept different numbers of tokens, so each has its own length and its own end: there is no rectangular batch.
together.py does the same with any drafter and verifier, and starts the next prompt as soon as a text ends.
"""

import numpy as np

from .reference import accept, sample, softmax


def generate(target, draft_model, texts, n_tokens, K, rngs):
    """The texts (lists), each continued by n_tokens, as `reference.generate` does with its prompt and generator.

    The models need lanes (gpt2np/model.py): the lanes of one model answer several calls in one pass.
    """
    targets, drafts = (model.lanes(len(texts)) for model in (target, draft_model))
    texts, ends = [list(text) for text in texts], [len(text) + n_tokens for text in texts]
    rngs = [rng if hasattr(rng, "random") else np.random.default_rng(rng) for rng in rngs]
    while running := [i for i, text in enumerate(texts) if len(text) < ends[i]]:
        k = {i: min(K, ends[i] - len(texts[i]) - 1) for i in running}
        drafted, q = {i: [] for i in running}, {i: [] for i in running}
        for depth in range(max(k.values())):
            now = [i for i in running if depth < k[i]]
            calls = [(drafts[i], [*texts[i], *drafted[i]], 1, ()) for i in now]
            for i, row in zip(now, drafts[0].together(calls) if now else ()):
                q[i].append(softmax(row[0]))
                drafted[i].append(sample(q[i][-1], rngs[i]))
        calls = [(targets[i], [*texts[i], *drafted[i]], len(drafted[i]) + 1, ()) for i in running]
        for i, row in zip(running, targets[0].together(calls)):
            texts[i] += accept(drafted[i], q[i], softmax(row), rngs[i])
    return texts
