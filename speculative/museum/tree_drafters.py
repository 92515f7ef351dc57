"""Drafters of trees with a mistake: their rows are not the distributions that siblings were drawn from."""

import numpy as np

from ..interfaces import Draft
from ..probs import sample_distinct
from .verifiers import CONSTRUCTED

Q = np.array([0.1, 0.1, 0.1, 0.7])


class Siblings:
    """Drafts two candidates for the next token, whatever the text is; the mistakes are in `drawn`."""

    def propose(self, tokens, K, rng):
        self.begin(tokens, rng)
        drafted, rows = self.drawn(rng) if K else ((), np.empty((0, len(Q))))
        return Draft(np.array(drafted, np.int64), np.array(rows), np.full(len(drafted), -1))

    def begin(self, tokens, rng):
        pass

    def drawn(self, rng):
        return sample_distinct(Q, 2, rng)


class RowOfTheFirst(Siblings):
    def drawn(self, rng):
        return sample_distinct(Q, 2, rng)[0], [Q, Q]


class LikeliestWithSoftRows(Siblings):
    def drawn(self, rng):
        return np.argsort(-Q, kind="stable")[:2], [Q, Q]


def in_this_order(tokens):
    """(tokens, rows) as if they had been drawn without replacement in this order."""
    rows = [Q]
    for token in tokens[:-1]:
        left = np.where(np.arange(len(Q)) == token, 0, rows[-1])
        rows.append(left / left.sum())
    return tokens, rows


def by_probability(tokens):
    return sorted(tokens.tolist(), key=lambda token: -Q[token])


class Sorted(Siblings):
    def drawn(self, rng):
        return in_this_order(by_probability(sample_distinct(Q, 2, rng)[0]))


class Reranked(Siblings):
    def drawn(self, rng):
        return in_this_order(by_probability(sample_distinct(Q, 3, rng)[0])[:2])


class NoiseOncePerText(Siblings):
    """A text that is longer than the first one is taken for its continuation."""

    n_prompt, noise = None, None

    def begin(self, tokens, rng):
        self.n_prompt = self.n_prompt or len(tokens)
        if len(tokens) <= self.n_prompt:
            self.noise = [rng.random() for _ in range(2)]

    def drawn(self, rng):
        cdf = np.cumsum(Q)
        return [int(np.searchsorted(cdf[:-1], u, side="right")) for u in self.noise], [Q, Q]


class ChildWithoutParent:
    """The three most valuable nodes of a tree of certain tokens; among equal ones, the deepest first."""

    def propose(self, tokens, K, rng):
        first, second = int(tokens[-1]) % len(Q), (int(tokens[-1]) + 1) % len(Q)
        nodes = [((first,), 1.0), ((first, second), 1.0), ((second,), 0.0)]  # a path, and its value
        kept = sorted((node for node in nodes if len(node[0]) <= K), key=lambda node: (-node[1], -len(node[0])))
        paths = [path for path, _ in kept]
        parents = [paths.index(path[:-1]) if path[:-1] else -1 for path in paths]
        drafted = np.array([path[-1] for path in paths], np.int64)
        return Draft(drafted, np.eye(len(Q))[drafted], np.array(parents, np.int64))


EXHIBITS = {  # name: (drafter, what is wrong, where it was seen, how the grader's message begins)
    "the first row for every sibling": (
        RowOfTheFirst(),
        "Siblings are drawn without replacement, but each comes with q, not with q without its elder siblings.",
        CONSTRUCTED,
        "siblings are drawn without replacement, but the row of a later one",
    ),
    "likeliest tokens with soft rows": (
        LikeliestWithSoftRows(),
        "The candidates are the k most probable tokens, but are tested as if they were drawn from q.",
        "https://github.com/apple/ml-recurrent-drafter/issues/6 (beam search), branches in "
        "https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp",
        "your drafter takes one token for certain",
    ),
    "siblings sorted": (
        Sorted(),
        "Siblings are drawn without replacement and then sorted by q: the first is no draw from q any more.",
        CONSTRUCTED,
        "siblings are sorted after they are drawn",
    ),
    "siblings reranked": (
        Reranked(),
        "One sibling more is drawn than needed, and the most probable are kept: what is kept depends on the tokens.",
        CONSTRUCTED,
        "more siblings are drawn than returned",
    ),
    "noise made once per text": (
        NoiseOncePerText(),
        "The random numbers of a place in the tree are made at the start of a text and used in every round.",
        "__init__ in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecTree.py (self.r and self.rand, with "
        "one object for each prompt)",
        "your drafter keeps something between calls",
    ),
    "a child without its parent": (
        ChildWithoutParent(),
        "The most valuable nodes are kept. A child of probability 1 has its parent's value, and may come before it.",
        "topK_genrate in https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/cnets1.py (ties of torch.topk)",
        "a node of a tree comes after its parent",
    ),
}
