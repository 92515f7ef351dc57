"""Functions of two models, as public code writes speculative sampling: none knows what check_sampler asks for."""

import inspect

import numpy as np

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


def changed(*changes, **others):
    return edited(inspect.getsource(decode), "decode", *changes, kept=globals() | others)


SIGNATURE, LOGITS = "x, draft_model, target_model, N, K", "prompt, draft_model, target_model, n_tokens, K -> text"
PROBS, FROM_P = {"softmax": lambda p: p}, ("np.maximum(p[n - 1] - q[n - 1], 0)", "p[n - 1]")
OF_PROBS = "prompt, probs draft_model, probs target_model, n_tokens, K -> text"
RIGHT = {  # name -> (function, how it is read)
    "of logits": (decode, LOGITS),
    "of probabilities": (changed(**PROBS), OF_PROBS),
    "the new tokens alone": (changed(SIGNATURE, "x, target_model, draft_model, n_tokens, k, rng", "+ N", "+ n_tokens",
                                     "range(K)", "range(min(k, end - n - 1))", "np.random.random()", "rng.random()",
                                     "return x", "return x[end - n_tokens :]"),
                             "prompt, target_model, draft_model, n_tokens, K, rng -> tokens"),
}  # fmt: skip
WRONG = {
    "residual from the target": (changed(*FROM_P, **PROBS), ("on a rejection you drew from the target;",
                                                             f"  (read as {OF_PROBS})")),
}  # fmt: skip
