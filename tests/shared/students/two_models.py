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


def changed(*changes, **others):
    return edited(inspect.getsource(decode), "decode", *changes, kept=globals() | others)


SIGNATURE, LOGITS = "x, draft_model, target_model, N, K", "prompt, draft_model, target_model, n_tokens, K -> text"
PROBS, FROM_P = {"softmax": lambda p: p}, ("np.maximum(p[n - 1] - q[n - 1], 0)", "p[n - 1]")
OF_PROBS = "prompt, probs draft_model, probs target_model, n_tokens, K -> text"
OF_LAST = "prompt, last target_model, last draft_model, n_tokens, K, rng -> text"
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
}  # fmt: skip
WRONG = {
    "residual from the target": (changed(*FROM_P, **PROBS), ("on a rejection you drew from the target;",
                                                             f"  (read as {OF_PROBS})")),
    "residual from the target, with an exact end": (
        edited(inspect.getsource(of_the_library), "of_the_library", "np.maximum(p_i - q_i, 0)", "p_i", kept=globals()),
        ("on a rejection you drew from the target;", f"  (read as {OF_LAST})"),
    ),
}  # fmt: skip
