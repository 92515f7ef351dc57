"""Answers to exercises in a style of their own, right and wrong."""

import codecs
import functools
import itertools
from collections import Counter

import numpy as np

import gpt2np
import speculative
from speculative import Draft, Verdict, residual, sample_token
from speculative.logits.probs import sample_distinct

from . import of_the_notebook, solution


def fills(name):
    """The answer takes the place of this one of four functions."""

    def mark(answer):
        answer.fills = name
        return answer

    return mark


def in_one_go(symbols, pair):
    places = iter(range(len(symbols)))
    for i in places:
        joined = tuple(symbols[i : i + 2]) == pair
        yield "".join(symbols[i : i + 1 + joined])
        if joined:
            next(places)


class Incrementally:
    def __init__(self, bytes_of):
        self.bytes_of, self.held = bytes_of, b""

    def push(self, token):
        self.held += self.bytes_of(token)
        text, n = codecs.utf_8_decode(self.held, "strict", False)
        self.held = self.held[n:]
        return text


def longest_first(piece, ranks, vocabulary):
    symbols, found = "".join(gpt2np.tokenizer.byte_symbols()[byte] for byte in piece.encode("utf-8")), []
    while symbols:
        found.append(next(symbols[:n] for n in range(len(symbols), 0, -1) if symbols[:n] in vocabulary))
        symbols = symbols[len(found[-1]) :]
    return [vocabulary[symbol] for symbol in found]


def split_into_three(x, w, b, head, n_head):
    d = x.shape[1] // n_head
    q, k, v = (part[:, head * d : (head + 1) * d] for part in np.split(x @ w + b, 3, axis=1))
    scores = np.where(np.tri(len(x), dtype=bool), q @ k.T / np.sqrt(d), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def in_place(probs, u):
    for i in range(1, len(probs)):
        probs[i] += probs[i - 1]
    return int(np.searchsorted(probs, u * probs[-1], side="right"))


def by_recursion(draft, target_probs, rng, done=0):
    if done == len(draft.tokens):
        return Verdict(done, sample_token(target_probs[done], rng))
    x, p, q = draft.tokens[done], target_probs[done], draft.probs[done]
    if rng.random() < min(1, p[x] / q[x]):
        return by_recursion(draft, target_probs, rng, done + 1)
    return Verdict(done, int(rng.choice(len(p), p=residual(p, q))))


def own_matching(draft, target_probs, rng):
    drawn = [sample_token(row, rng) for row in target_probs]
    n = next((i for i, x in enumerate(draft.tokens) if drawn[i] != x), len(draft.tokens))
    return Verdict(n, drawn[n])


def until_accepted(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        while not rng.random() * draft.probs[i, x] < target_probs[i, x]:
            x = sample_token(draft.probs[i], rng)
        if x != draft.tokens[i]:
            return Verdict(i, x)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def goes_on_after_a_rejection(draft, target_probs, rng):
    n = sum(rng.random() * q[x] < p[x] for x, p, q in zip(draft.tokens, target_probs, draft.probs))
    if n == len(draft.tokens):
        return Verdict(n, sample_token(target_probs[n], rng))
    return Verdict(n, sample_token(residual(target_probs[n], draft.probs[n]), rng))


@functools.cache
def recursive(alpha, K):
    return 1 if K == 0 else 1 + alpha * recursive(alpha, K - 1)


class Called:
    """An object that is called, in place of a function."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *given):
        return self.fn(*given)


def from_behind(tokens, K, n_vocab):
    place = next((i for i in reversed(range(len(tokens) - 1)) if tokens[i] == tokens[-1]), len(tokens) - 1)
    copied = tokens[place + 1 : place + 1 + K]
    rows = [np.arange(n_vocab) == token for token in copied]
    return Draft(np.array(copied, int), np.reshape(rows, (len(copied), n_vocab)).astype(float))


def lenient(p, q, lenience):
    kept = np.minimum(q, p / lenience)
    rest = np.maximum(p / lenience - q, 0)
    return [kept + (1 - kept.sum()) * rest / rest.sum(), kept.sum()]


def by_arrays(draft, target_probs, rng):
    """Block verification without a loop over its tests."""
    k = len(draft.tokens)
    ratios = target_probs[range(k), draft.tokens] / draft.probs[range(k), draft.tokens]
    p_hat = np.array(list(itertools.accumulate(ratios, lambda before, now: min(1.0, before * now), initial=1.0)))
    M = np.minimum(p_hat[:k, None] * target_probs[:k], draft.probs).sum(axis=1)
    h = np.append(np.where(p_hat[:k] == 1, 1, (p_hat[:k] - M) / np.where(p_hat[:k] == 1, 1, 1 - M)), p_hat[k])
    n = np.flatnonzero(np.append(0, rng.random(k)) < h)[-1]
    last = target_probs[k] if n == k else residual(p_hat[n] * target_probs[n], draft.probs[n])
    return Verdict(n, sample_token(last, rng))


def coin_with_p(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if rng.random() >= target_probs[i, x]:
            others = np.where(np.arange(target_probs.shape[1]) == x, 0, target_probs[i])
            return Verdict(i, sample_token(others, rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def drawn_recursively(q, k, rng):
    if not k or not q.any():
        return []
    token = int(rng.multinomial(1, row := q / q.sum()).argmax())
    return [(token, row), *drawn_recursively(np.where(np.arange(len(q)) == token, 0, q), k - 1, rng)]


def path(parents, node):  # a name that the library has as well
    return [] if node < 0 else [*path(parents, parents[node]), node]


def mask_in_lists(parents, n_text):
    n = len(parents)
    return [[1] * n_text + [int(j in path(parents, i)) for j in range(n)] for i in range(n)]


def grown(n, w):
    """Without a heap: the best of all nodes whose parent and elder sibling are there."""
    found, open_nodes = [], {(0,)}
    while len(found) < n:
        node = max(open_nodes, key=lambda node: (np.prod([w[rank] for rank in node]), node))
        open_nodes.remove(node)
        found.append(node)
        open_nodes.add((*node, 0))
        if node[-1] + 1 < len(w):
            open_nodes.add((*node[:-1], node[-1] + 1))
    return found


def among_the_first(logits, tokens, n):
    ranks = (logits > np.take_along_axis(logits, tokens[:, None], axis=1)).sum(axis=1)
    return np.diff([(ranks < k).mean() for k in range(1, n + 1)], prepend=0)


def in_parts(head, h, seen):
    """Each part of x times its rows of the matrices, and no long vector."""
    given, n = of_the_notebook(), h.shape[1]
    parts = [h, *(given["wte"][tokens] for tokens in seen.T)]
    by_a, by_w = (sum(x @ head[w][i * n : (i + 1) * n] for i, x in enumerate(parts)) for w in "aw")
    return given["read_off"](by_a + given["silu"](by_w))


def in_a_loop(last, p, n_vocab):
    rows = [[row for token, row in zip(last, p) if token == a] for a in range(n_vocab)]
    return [np.mean(some, axis=0) if some else np.mean(p, axis=0) for some in rows]


def by_jacobians(z, p):
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return np.array([-(np.diag(a) - np.outer(a, a)) @ row for a, row in zip(q, p)])


class Tensor:
    """What a tensor of PyTorch does to an array of NumPy: it takes over in `array - tensor`, and refuses."""

    __array_priority__ = 1000

    def __init__(self, values, requires_grad=False):
        self.values, self.requires_grad = values, requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.values

    def __rsub__(self, array):
        raise TypeError("unsupported operand type(s)")


GENERATOR = np.random.default_rng(0)  # the draws go on from call to call


def by_drawing(verify):
    from checks.beyond_one_laptop import serve, small_target

    right = small_target.distribution([0], 2)
    found = Counter(str(serve(verify, [[0]], [2], GENERATOR)[0]) for _ in range(200))
    return max(abs(found[str(list(text))] / 200 - right[text]) for text in right)


@fills("counts_of_a_round")
def one_after_the_other(counts, last, drafted):
    return list(itertools.accumulate(drafted, lambda row, token: row + (np.arange(3) == token), initial=counts))


@fills("verify_masked")
def cut_at_the_first_forbidden(draft, target_probs, rng):
    n = next((i for i, x in enumerate(draft.tokens) if target_probs[i, x] == 0), len(draft.tokens))
    for i, x in enumerate(draft.tokens[:n]):
        if not rng.random() * draft.probs[i, x] < target_probs[i, x]:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    rest = residual(target_probs[n], draft.probs[n]) if n < len(draft.tokens) else target_probs[n]
    return Verdict(n, sample_token(rest, rng))


@fills("end_of_round")
def cut_and_counted(tokens, n, stop):
    tokens = tokens[: tokens.index(stop) + 1] if stop in tokens else tokens
    return [tuple(tokens), sum(i < n for i, _ in enumerate(tokens))]


class Delegating(solution("05b", "MySampler")):
    def generate(self, prompt, n_tokens, rng):
        inside = speculative.SpeculativeSampler(self.target, self.drafter, K=self.K, sampling=self.sampling)
        return inside.generate(prompt, n_tokens, rng).tokens.tolist()


def without_replacement_from_the_library(q, k, rng):  # as in notebook 11
    return list(zip(*sample_distinct(q, k, rng)))
