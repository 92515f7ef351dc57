"""Functions of two models, as public code writes speculative sampling: none knows what check_sampler asks for."""

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sample(p):
    return np.random.choice(np.arange(p.shape[-1]), p=p)


def residual(p, q):
    return np.maximum(p - q, 0)


def speculative_sampling(x, draft_model, target_model, N, K, softmax=softmax, residual=residual):
    """All rows are computed again at each step, and the last round may overshoot."""
    n, end = len(x), len(x) + N
    while n < end:
        drafted = list(x)
        for _ in range(K):
            drafted.append(sample(softmax(draft_model(drafted))[-1]))
        q, p = softmax(draft_model(drafted)), softmax(target_model(drafted))
        for _ in range(K):
            token = drafted[n]
            if np.random.random() < min(1, p[n - 1][token] / q[n - 1][token]):
                x = np.append(x, token)
                n += 1
            else:
                rest = residual(p[n - 1], q[n - 1])
                x = np.append(x, sample(rest / rest.sum()))
                n += 1
                break
        else:
            x = np.append(x, sample(p[-1]))
            n += 1
    return x


def of_probabilities(prompt, draft_model, target_model, max_new_tokens, gamma):
    return speculative_sampling(prompt, draft_model, target_model, max_new_tokens, gamma, softmax=lambda p: p)


def new_tokens_alone(prefix, target_model, draft_model, n_tokens, k, rng):
    out = []
    while len(out) < n_tokens:
        drafted, rows = [], []
        for _ in range(min(k, n_tokens - len(out) - 1)):
            rows.append(softmax(draft_model([*prefix, *out, *drafted]))[-1])
            drafted.append(int(rng.choice(3, p=rows[-1])))
        p = softmax(target_model([*prefix, *out, *drafted]))[-len(drafted) - 1 :]
        for i, token in enumerate(drafted):
            if rng.random() * rows[i][token] >= p[i][token]:
                rest = np.maximum(p[i] - rows[i], 0)
                out.append(int(rng.choice(3, p=rest / rest.sum())))
                break
            out.append(token)
        else:
            out.append(int(rng.choice(3, p=p[-1])))
    return out


def residual_from_the_target(x, draft_model, target_model, N, K):
    return speculative_sampling(x, draft_model, target_model, N, K, residual=lambda p, q: p)


RIGHT = {  # function -> how it is read
    speculative_sampling: "prompt, draft_model, target_model, n_tokens, K -> text",
    of_probabilities: "prompt, probs draft_model, probs target_model, n_tokens, K -> text",
    new_tokens_alone: "prompt, target_model, draft_model, n_tokens, K, rng -> tokens",
}
WRONG = {residual_from_the_target: "on a rejection you drew from the target;"}
