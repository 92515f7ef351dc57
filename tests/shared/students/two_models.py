"""Functions of two models, as public code writes speculative sampling: none knows what check_sampler asks for."""

import inspect

import numpy as np

from speculative import reference
from students.edits import edited


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sample(p):
    return np.random.choice(np.arange(p.shape[-1]), p=p)


def decode(x, draft_model, target_model, N, K):
    # all rows are computed again at each step, and the last round may overshoot
    n, end = len(x), len(x) + N
    while n < end:
        drafted = list(x)
        for _ in range(K):
            drafted.append(sample(softmax(draft_model(drafted))[-1]))
        q, p = softmax(draft_model(drafted)), softmax(target_model(drafted))
        for token in drafted[n:]:
            if np.random.random() < min(1, p[n - 1][token] / q[n - 1][token]):
                x = np.append(x, token)
                n += 1
            else:
                rest = np.maximum(p[n - 1] - q[n - 1], 0)
                x = np.append(x, sample(rest / rest.sum()))
                n += 1
                break
        else:
            x = np.append(x, sample(p[-1]))
            n += 1
    return x


def of_the_library(prompt, target_model, draft_model, n_tokens, K, temperature=1.0, *, rng):
    """For models that return the last n_last rows; it drafts no more tokens than are missing."""
    text, end = list(prompt), len(prompt) + n_tokens
    while len(text) < end:
        drafted, q = [], []
        for _ in range(min(K, end - len(text) - 1)):
            q.append(softmax(draft_model([*text, *drafted])[0] / temperature))
            drafted.append(int(rng.choice(len(q[-1]), p=q[-1])))
        p = softmax(target_model([*text, *drafted], n_last=len(drafted) + 1) / temperature)
        for p_i, q_i, x in zip(p, q, drafted):
            if not rng.random() < p_i[x] / q_i[x]:
                rest = np.maximum(p_i - q_i, 0)
                text.append(int(rng.choice(len(rest), p=rest / rest.sum())))
                break
            text.append(x)
        else:
            text.append(int(rng.choice(len(p[-1]), p=p[-1])))
    return text


def base_named(prefix, draft_model, base_model, max_gen_len, gamma=4, *, rng):
    """With lists, which are concatenated, and statistics beside the text."""
    return {"sequences": of_the_library(prefix, Rows(base_model), Rows(draft_model), max_gen_len, gamma, rng=rng)}


class Rows:
    """The last n_last of all rows that a model returns."""

    def __init__(self, model):
        self.model = model

    def __call__(self, tokens, n_last=1):
        return self.model(tokens)[-n_last:]


def with_options(target_model, draft_model, prompt_ids, max_new_tokens=128, speculative_length=5, temperature=0.6,
                 top_k=50, top_p=0.95, seed=None):  # fmt: skip
    assert (temperature, top_p, max_new_tokens < 128) == (1, 1, True)
    models, rng = (Rows(target_model), Rows(draft_model)), np.random.default_rng(seed)
    return of_the_library(prompt_ids, *models, max_new_tokens, speculative_length, temperature, rng=rng)


def step(context, draft_dist, target_dists, k, rng):
    """One round; a model returns the row of the next token, and the target those of all positions."""
    drafted, q = [], []
    for _ in range(k):
        q.append(draft_dist(context + drafted))
        drafted.append(int(rng.choice(3, p=q[-1])))
    p = target_dists(context, drafted)
    for i, x in enumerate(drafted):
        if not rng.random() * q[i][x] < p[i][x]:
            rest = np.maximum(p[i] - q[i], 0)
            return drafted[:i] + [int(rng.choice(3, p=rest / rest.sum()))]
    return drafted + [int(rng.choice(3, p=p[-1]))]


def with_a_cache(prompt, target_model, draft_model, n_tokens, K, rng):
    models = (Rows(lambda tokens, model=model: model(tokens)[0]) for model in (target_model, draft_model))
    return of_the_library(prompt, *models, n_tokens, K, rng=rng)


def greedy(target, draft, prompt, max_new, k=4):
    seq, end = list(prompt), len(prompt) + max_new
    while len(seq) < end:
        drafted = []
        for _ in range(min(k, end - len(seq) - 1)):
            drafted.append(int(np.argmax(draft(seq + drafted)[-1])))
        rows, n = target(seq + drafted)[-len(drafted) - 1 :], 0
        while n < len(drafted) and drafted[n] == np.argmax(rows[n]):
            n += 1
        seq += drafted[:n] + [int(np.argmax(rows[n]))]
    return seq


def changed(*changes, **others):
    return edited(inspect.getsource(decode), "decode", *changes, kept=globals() | others)


SIGNATURE, LOGITS = "x, draft_model, target_model, N, K", "prompt, draft_model, target_model, n_tokens, K -> text"
PROBS, FROM_P = {"softmax": lambda p: p}, ("np.maximum(p[n - 1] - q[n - 1], 0)", "p[n - 1]")
OF_PROBS = "prompt, probs draft_model, probs target_model, n_tokens, K -> text"
OF_LAST = "prompt, last target_model, last draft_model, n_tokens, K, temperature, rng -> text"
RIGHT = {  # name -> (function, how it is read)
    "of logits": (decode, LOGITS),
    "of probabilities": (changed(**PROBS), OF_PROBS),
    "the new tokens alone": (changed(SIGNATURE, "x, target_model, draft_model, n_tokens, k, rng", "+ N", "+ n_tokens",
                                     "range(K)", "range(min(k, end - n - 1))", "np.random.random()", "rng.random()",
                                     "return x", "return x[end - n_tokens :]"),
                             "prompt, target_model, draft_model, n_tokens, K, rng -> tokens"),
    "of the library's models": (of_the_library, OF_LAST),
    "the page of this library": (reference.generate,
                                 "last target_model, last draft_model, prompt, n_tokens, K, rng -> text"),
    "of base_model, in a dict": (base_named, "prompt, draft_model, target_model, n_tokens, K, rng -> text"
                                             " (what else it returns is ignored)"),
    "of options with defaults": (with_options, "target_model, draft_model, prompt, n_tokens, K, temperature, top_k, "
                                               "top_p -> text"),
    "of models with a cache": (with_a_cache, "prompt, pair target_model, pair draft_model, n_tokens, K, rng -> text"),
    "of a round": (step, "list prompt, next probs draft_model, next probs target_model, K, rng -> tokens"),
}  # fmt: skip
TESTED, CORRECTED = "drafted[n] == np.argmax(rows[n])", "np.argmax(rows[n]))]"
WRONG_GREEDY = {  # the words of the hint -> a greedy loop
    hint: edited(inspect.getsource(greedy), "greedy", *change, kept=globals()) for hint, *change in (
        ("the first draft token is kept without a test", TESTED, f"(n == 0 or {TESTED})"),
        ("comes from the target's first row", CORRECTED, CORRECTED.replace("[n]", "[0]")),
        ("from the second draft token of a round on, with K = 3 or more", TESTED, f"(n == 2 or {TESTED})"),
        ("every draft token is kept without a test", TESTED, "True"),
    )
}  # fmt: skip
WRONG = {
    "residual from the target": (changed(*FROM_P, **PROBS), ("on a rejection you drew from the target;",
                                                             f"  (read as {OF_PROBS})")),
    "residual from the target, with an exact end": (
        edited(inspect.getsource(of_the_library), "of_the_library", "np.maximum(p_i - q_i, 0)", "p_i", kept=globals()),
        ("on a rejection you drew from the target;", f"  (read as {OF_LAST})"),
    ),
}  # fmt: skip
