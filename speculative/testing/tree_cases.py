"""Small cases of token trees: how siblings are drawn, and a verifier's tokens on trees of a given shape."""

import itertools
import math

import numpy as np

from ..interfaces import Draft
from ..probs import sample_distinct, sample_token
from ..tree import children, depths
from .cases import random_pair, read
from .watch import asked, fail


def one_then_the_likeliest(q, k, rng):
    """Greedy multi-draft: one token drawn from q without its k - 1 likeliest, then these, which are certain."""
    certain = np.argsort(-q, kind="stable")[: k - 1]
    rest = q.copy()
    rest[certain] = 0
    drawn = [(sample_token(rest, rng), rest / rest.sum())] if rest.any() else []
    return drawn + [(int(x), np.eye(len(q))[x]) for x in certain]


def the_likeliest(q, k, rng):
    return [(int(x), np.eye(len(q))[x]) for x in np.argsort(-q, kind="stable")[:k] if q[x] > 0]


WAYS = {  # (q [n_vocab], k, rng) -> up to k siblings in order, each (token, the distribution it comes from)
    "drawn independently": lambda q, k, rng: [(sample_token(q, rng), q) for _ in range(k)],
    "drawn without replacement": lambda q, k, rng: list(zip(*sample_distinct(q, k, rng))),
    "one drawn, then the likeliest": one_then_the_likeliest,
    "the likeliest": the_likeliest,
}


class TreeCase:
    """Target and draft distributions after each path, p and q: dicts from a tuple of tokens to a row [n_vocab].

    Parameters
    ----------
    n_vocab : int
    parents : list of int
        The tree, if the draft has enough different tokens for it; else the nodes that it has.
    way : str
        How siblings are drawn, a key of WAYS.
    kind : str
        Of distributions, see `random_pair`.
    """

    def __init__(self, n_vocab, parents, way, kind, rng):
        self.n_vocab, self.parents, self.way, self.kind = n_vocab, parents, way, kind
        self.depth = max(depths(parents)) + 1
        self.p, self.q = {}, {}
        for length in range(self.depth + 1):
            for tokens in itertools.product(range(n_vocab), repeat=length):
                self.p[tokens], self.q[tokens] = random_pair(rng, n_vocab, kind)

    def wanted(self):
        """The target's distribution of depth + 1 tokens."""
        return {
            tokens: math.prod(self.p[tokens[:i]][token] for i, token in enumerate(tokens))
            for tokens in itertools.product(range(self.n_vocab), repeat=self.depth + 1)
        }

    def drawn(self, rng):
        """(draft, target_probs), with siblings drawn from q in this case's way."""
        paths, rows = {-1: ()}, {}
        for node in range(-1, len(self.parents)):
            below = children(self.parents, node) if node in paths else []
            for child, (token, row) in zip(
                below, WAYS[self.way](self.q[paths[node]], len(below), rng) if below else []
            ):
                paths[child], rows[child] = (*paths[node], int(token)), row
        nodes = sorted(rows)  # fewer than asked for, where there are not enough different tokens
        index = {-1: -1, **{node: i for i, node in enumerate(nodes)}}
        parents = np.array([index[self.parents[node]] for node in nodes], np.int64)
        tokens = np.array([paths[node][-1] for node in nodes], np.int64)
        draft = Draft(tokens, np.reshape([rows[node] for node in nodes], (len(nodes), self.n_vocab)), parents)
        return draft, np.array([self.p[paths[node]] for node in [-1, *nodes]])

    def run(self, verifier, rng):
        """The tokens that one round adds, a tuple."""
        draft, target_probs = self.drawn(rng)
        accepted, next_token = decided(verifier, draft, target_probs, rng)
        return *(int(draft.tokens[node]) for node in accepted), next_token

    def distribution(self, rounds):
        """The distribution of depth + 1 tokens: those of a round, continued by the target."""
        distribution = {}
        for tokens, probability in rounds.items():
            for rest in itertools.product(range(self.n_vocab), repeat=self.depth + 1 - len(tokens)):
                whole = tokens + rest
                weight = math.prod(self.p[whole[:i]][whole[i]] for i in range(len(tokens), self.depth + 1))
                distribution[whole] = distribution.get(whole, 0) + probability * weight
        return distribution


def decided(verifier, draft, target_probs, rng):
    """(accepted nodes, next token) of a verdict on a tree; AssertionError unless it is valid."""

    def where():
        return f"for draft.tokens = {draft.tokens.tolist()}, draft.parents = {draft.parents.tolist()}"

    arguments = draft.tokens, draft.probs, draft.parents, target_probs
    verdict = asked(lambda: verifier(draft, target_probs, rng), "your verifier", where, arguments)
    n_accepted, next_token = read(verdict, len(draft.tokens), len(target_probs[0]), where)
    nodes = tuple(getattr(verdict, "nodes", range(n_accepted)))
    if len(nodes) != n_accepted or any(b not in draft.children(a) for a, b in zip((-1, *nodes), nodes)):
        fail(
            "the accepted draft tokens of a tree are a path: from the text down, each a child of the one before, and "
            f"n_accepted is their number; you returned n_accepted = {n_accepted}, nodes = {nodes}",
            f"  {where()}",
        )
    return nodes, next_token
