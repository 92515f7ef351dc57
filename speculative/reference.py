"""Speculative sampling as the papers write it: every formula once, chains only, no checks, no classes. Start here.

A small draft model proposes K tokens. One call of the target gives its distributions at all K positions and after the
last, and rejection sampling keeps a prefix of the proposal and adds one token. For any draft model the text is
distributed exactly as if the target had sampled alone: min(p, q) + max(0, p - q) = p, token by token.

A language model is a function of token ids, model(tokens, n_last=1), that returns logits [n_last, n_vocab]: row i
predicts the token after tokens[len(tokens) - n_last + i]. p is the target's distribution and q the draft's (swapped in
Chen et al.). For the same seed, `SpeculativeSampler` (sampler.py) generates the same text; it adds interchangeable
drafters and verifiers, trees, temperature and truncation, stops, limits and checks.

Source: Leviathan et al., arXiv:2211.17192, algorithm 1 and section 2.3; Chen et al., arXiv:2302.01318, algorithm 2.
"""

import numpy as np


def softmax(logits):
    """Probabilities in float64: [..., n_vocab] -> [..., n_vocab]."""
    exp = np.exp(np.float64(logits) - np.max(logits, axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def sample(probs, rng):
    """A token sampled from probs [n_vocab] with one uniform number, by inverting the cumulative distribution."""
    cdf = np.cumsum(probs)
    return int(np.searchsorted(cdf, rng.random() * cdf[-1], side="right"))


def residual(p, q):
    """norm(max(0, p - q)), the distribution of a correction (section 2.3); p if p = q, as nothing is rejected then."""
    excess = np.maximum(0, p - q)
    return excess / excess.sum() if excess.any() else p


def draft(draft_model, tokens, K, rng):
    """Step 1: K draft tokens, each sampled from the draft model given the ones before it, and their rows of q."""
    drafted, q = [], []
    for _ in range(K):
        q.append(softmax(draft_model([*tokens, *drafted])[0]))
        drafted.append(sample(q[-1], rng))
    return drafted, q


def accept(drafted, q, p, rng):
    """Steps 3 and 4: the accepted draft tokens, and one token from the target after them.

    A draft token x is accepted with probability min(1, p(x) / q(x)). The first rejected token is replaced by a
    correction, and the ones after it are dropped. If all are accepted, a bonus token is drawn from the last row of
    p [K + 1, n_vocab].
    """
    for i, x in enumerate(drafted):
        if not rng.random() * q[i][x] < p[i][x]:  # u < p / q; false for NaN
            return [*drafted[:i], sample(residual(p[i], q[i]), rng)]
    return [*drafted, sample(p[-1], rng)]


def generate(target, draft_model, tokens, n_tokens, K, rng, draft=draft):
    """The text, a list: `tokens` and n_tokens more, in rounds of one call of the target each (algorithm 1).

    rng is a seed, or a source of random numbers; `draft` may be replaced by a function that drafts differently.
    """
    rng = rng if hasattr(rng, "random") else np.random.default_rng(rng)
    tokens, n_end = list(tokens), len(tokens) + n_tokens
    while len(tokens) < n_end:
        k = min(K, n_end - len(tokens) - 1)  # a round adds up to k + 1 tokens
        drafted, q = draft(draft_model, tokens, k, rng)
        p = softmax(target([*tokens, *drafted], n_last=len(drafted) + 1))  # step 2: after the text and each draft token
        tokens += accept(drafted, q, p, rng)
    return tokens
