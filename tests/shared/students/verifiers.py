"""Verifiers as students write them; verifiers.txt has edits of the first three, which use the other imports."""
# ruff: noqa: F401

import math
import random
import sys
import time
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np

from speculative import Draft, Verdict, block, rejection, residual, sample_token

GENERATOR = np.random.default_rng()


def rule(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[x] < p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def wrapped(draft, target_probs, rng):
    v = rejection(draft, target_probs, rng)
    return v


def tree(draft, target_probs, rng):
    nodes, p, below = [], target_probs[0], draft.children()
    while below:
        node, *below = below
        x, q = draft.tokens[node], draft.probs[node]
        if rng.random() * q[x] < p[x]:
            nodes, p, below = [*nodes, node], target_probs[node + 1], draft.children(node)
        else:
            p = residual(p, q)
    return Verdict(nodes, sample_token(p, rng))


def vectorised(draft, target_probs, rng):
    k = len(draft.tokens)
    ratio = target_probs[np.arange(k), draft.tokens] / draft.probs[np.arange(k), draft.tokens]
    n = int(np.cumprod(rng.random(k) < ratio).sum())
    final = target_probs[n].copy()
    if n < k:
        final = np.clip(final - draft.probs[n], 0, None)
    return Verdict(n, int(rng.choice(len(final), p=final / final.sum())))


def recursive(draft, target_probs, rng, node=-1, above=()):
    p = target_probs[node + 1]
    for child in draft.children(node):
        if rng.random() * draft.probs[child, draft.tokens[child]] < p[draft.tokens[child]]:
            return recursive(draft, target_probs, rng, child, (*above, child))
        p = residual(p, draft.probs[child])
    return Verdict(above, sample_token(p, rng))


class Counts:
    """Statistics change nothing."""

    def __init__(self):
        self.accepted = []

    def __call__(self, draft, target_probs, rng):
        verdict = rejection(draft, target_probs, rng)
        self.accepted.append(verdict.n_accepted)
        return verdict


class EverySecondTime:
    n = 0

    def __call__(self, draft, target_probs, rng):
        self.n += 1
        if self.n % 2:
            return rejection(draft, target_probs, rng)
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


RIGHT = {
    "rule": rule,
    "block": block,
    "partial": partial(rejection),
    "object": Counts(),
    "method": Counts().__call__,
    "vectorised": vectorised,
    "tree": tree,
    "recursive": recursive,
}
WRONG = {
    r"is called as verifier\(draft, target_probs, rng\).*cannot be called": Verdict(0, 0),
    "pass a verifier, not its class": Counts,
    "between calls": EverySecondTime(),
}
