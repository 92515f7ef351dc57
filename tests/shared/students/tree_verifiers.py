"""What students hand in for a verifier of trees: right ones in several styles, and wrong ones with words of the hint."""

import numpy as np

from speculative import Verdict, residual, sample_token
from speculative.tree import path

RIGHT, WRONG, NOTES = {}, {}, {}


def right(fn):
    RIGHT[fn.__name__] = fn
    return fn


def wrong(*words):
    def add(fn):
        WRONG[fn.__name__] = fn, words
        return fn

    return add


@right
def ten_lines(draft, target_probs, rng):
    nodes, p, below = [], target_probs[0], draft.children()
    while below:
        node, *below = below
        x, q = draft.tokens[node], draft.probs[node]
        if rng.random() < p[x] / q[x]:
            nodes, p, below = [*nodes, node], target_probs[node + 1], draft.children(node)
        else:
            p = residual(p, q)
    return Verdict(nodes, sample_token(p, rng))


@right
def by_parents(draft, target_probs, rng):
    """Without the methods of Draft."""
    n = len(draft.tokens)
    parents = np.arange(-1, n - 1) if draft.parents is None else draft.parents
    last, p = -1, target_probs[0].copy()
    for node in range(n):  # in this order siblings come one after the other, and children after their parents
        if parents[node] != last:
            continue
        x, q = draft.tokens[node], draft.probs[node]
        if rng.random() * q[x] < p[x]:
            last, p = node, target_probs[node + 1].copy()
        else:
            p = np.maximum(p - q, 0) / np.maximum(p - q, 0).sum() if (p > q).any() else p
    nodes = path(parents, last)
    return Verdict(nodes, int(rng.choice(len(p), p=p / p.sum())))


@right
def by_recursion(draft, target_probs, rng, node=-1, above=()):
    p = target_probs[node + 1]
    for child in draft.children(node):
        if rng.random() * draft.probs[child, draft.tokens[child]] < p[draft.tokens[child]]:
            return by_recursion(draft, target_probs, rng, child, (*above, child))
        p = residual(p, draft.probs[child])
    return Verdict(above, sample_token(p, rng))


@right
def match(draft, target_probs, rng):
    nodes = []
    while True:
        own = sample_token(target_probs[nodes[-1] + 1 if nodes else 0], rng)
        found = [child for child in draft.children(nodes[-1] if nodes else -1) if draft.tokens[child] == own]
        if not found:
            return Verdict(nodes, own)
        nodes.append(found[0])


def walk(draft, target_probs, rng, *, row=None, rest=residual, last=None, after=None):
    """`ten_lines`, with one of its parts replaced."""
    nodes, p, below = [], target_probs[0], draft.children()
    elder = []
    while below:
        node, *below = below
        x, q = draft.tokens[node], draft.probs[node]
        tested = row(draft, target_probs, node, p) if row else p
        if rng.random() * q[x] < tested[x]:
            nodes, below, elder = [*nodes, node], draft.children(node), []
            p = target_probs[after(nodes) if after else node + 1]
        else:
            elder.append(node)
            p = rest(p, q)
    return Verdict(nodes, sample_token(last(p, nodes, target_probs, elder) if last else p, rng))


@wrong("in a tree a verdict says which draft tokens are accepted")
def without_nodes(draft, target_probs, rng):
    verdict = ten_lines(draft, target_probs, rng)
    return Verdict(verdict.n_accepted, verdict.next_token)


@wrong("the accepted draft tokens of a tree are a path")
def chain_rule(draft, target_probs, rng):
    for i, (x, q) in enumerate(zip(draft.tokens, draft.probs)):
        if not rng.random() * q[x] < target_probs[i, x]:
            return Verdict(range(i), sample_token(residual(target_probs[i], q), rng))
    return Verdict(range(len(draft.tokens)), sample_token(target_probs[-1], rng))


def first_child(draft, target_probs, rng):
    nodes, p = [], target_probs[0]
    while below := draft.children(nodes[-1] if nodes else -1):
        x, q = draft.tokens[below[0]], draft.probs[below[0]]
        if not rng.random() * q[x] < p[x]:
            p = residual(p, q)
            break
        nodes.append(below[0])
        p = target_probs[below[0] + 1]
    return Verdict(nodes, sample_token(p, rng))


NOTES["the first child"] = first_child, ("accepts the first child of a node or none",)


@wrong("against the row of its parent, target_probs[parent + 1]")
def row_of_the_index(draft, target_probs, rng):
    return walk(draft, target_probs, rng, row=lambda draft, rows, node, p: rows[node] if node else p)


@wrong("if all siblings are rejected you draw from the target")
def target_at_the_end(draft, target_probs, rng):
    def last(p, nodes, rows, elder):
        return rows[nodes[-1] + 1 if nodes else 0] if len(elder) > 1 else p

    return walk(draft, target_probs, rng, last=last)


@wrong("every sibling is tested against the target's own row")
def stale(draft, target_probs, rng):
    return walk(draft, target_probs, rng, row=lambda draft, rows, node, p: rows[path_above(draft, node) + 1])


def path_above(draft, node):
    return node - 1 if draft.parents is None else draft.parents[node]


@wrong("the bonus is drawn from the row of the last node")
def bonus_of_the_call(draft, target_probs, rng):
    def last(p, nodes, rows, elder):
        return rows[-1] if nodes and not draft.children(nodes[-1]) else p

    return walk(draft, target_probs, rng, last=last)


@wrong("writes to its arguments")
def in_place(draft, target_probs, rng):
    draft.probs[:] = 0
    return Verdict([], 0)


@wrong("another node at its depth")
def rows_by_depth(draft, target_probs, rng):
    return walk(draft, target_probs, rng, after=len)
