"""Mistakes in drafters: rows that are not the distributions that the tokens were drawn from, in chains and trees.

The grader does not have a right program to compare a drafter with, only the drafter's rows. So an entry has `tell` in
addition to a drafter with the mistake, or instead of one. It is a function of a draft token d that is not drawn from
its row. The fields of d:

    got, row        [n_vocab] the distribution it is drawn from, and its row, where both belong to the same rows
    mean            [n_vocab] the distribution it is drawn from, averaged over its rows
    i, first        its index, and the row of the first draft token
    by_row          {its row: the weights of the tokens that come with it}
    drafts          {(tokens, rows, parents): probability} of all drafts; `same`: of drafts that begin as this one does
    dropped         whether some drafts end before it
    elder, others   in a tree, its elder siblings (tokens), and the row without them, renormalised
"""

import numpy as np

from ...exact.table import TableModel
from ...interfaces import Draft
from ...logits.probs import Sampling, sample_distinct, sample_token
from ...tree import children
from . import Mistake

MODEL = TableModel.random(3, seed=2, n_ctx=12)
Q = np.array([0.1, 0.1, 0.1, 0.7])


class Chain:
    """Drafts from MODEL; drawn(row, rng) -> (token or None, the row that is returned)."""

    def __init__(self, drawn):
        self.drawn = drawn

    def propose(self, tokens, K, rng):
        tokens, drafted, rows = [int(token) for token in tokens], [], []
        for _ in range(min(K, MODEL.n_ctx - len(tokens) + 1)):
            token, row = self.drawn(Sampling()(MODEL(tokens))[0], rng)
            if token is None:
                break
            drafted, rows, tokens = [*drafted, token], [*rows, row], [*tokens, token]
        return Draft(np.array(drafted, np.int64), np.reshape(np.array(rows, float), (len(drafted), MODEL.n_vocab)))


class Siblings:
    """Drafts two candidates for the next token after any text; drawn(tokens, rng) -> (tokens, rows)."""

    def __init__(self, drawn):
        self.drawn = drawn

    def propose(self, tokens, K, rng):
        drafted, rows = self.drawn(tokens, rng) if K else ((), np.empty((0, len(Q))))
        return Draft(np.array(drafted, np.int64), np.array(rows), np.full(len(drafted), -1))


def by_probability(tokens):
    """The two most probable of these tokens, and rows as if they had been drawn in this order."""
    first, second = sorted(tokens.tolist(), key=lambda token: -Q[token])[:2]
    left = np.where(np.arange(len(Q)) == first, 0, Q)
    return [first, second], [Q, left / left.sum()]


class NoiseOncePerText:
    n_prompt, noise = None, None

    def __call__(self, tokens, rng):
        self.n_prompt = self.n_prompt or len(tokens)
        if len(tokens) <= self.n_prompt:  # a longer text is taken for a continuation of the first
            self.noise = [rng.random() for _ in range(2)]
        return [int(np.searchsorted(np.cumsum(Q)[:-1], u, side="right")) for u in self.noise], [Q, Q]


class ChildWithoutParent:
    def propose(self, tokens, K, rng):
        first, second = int(tokens[-1]) % len(Q), (int(tokens[-1]) + 1) % len(Q)
        nodes = [((first,), 1.0), ((first, second), 1.0), ((second,), 0.0)]  # a path, and its value
        kept = sorted((node for node in nodes if len(node[0]) <= K), key=lambda node: (-node[1], -len(node[0])))
        paths = [path for path, _ in kept]
        drafted = np.array([path[-1] for path in paths], np.int64)
        parents = [paths.index(path[:-1]) if path[:-1] else -1 for path in paths]
        return Draft(drafted, np.eye(len(Q))[drafted], np.array(parents, np.int64))


# ------------------------------------------------------------------------------------------------ how to tell them


def close(a, b, tolerance=1e-12):
    return a is not None and np.allclose(a, b, rtol=0, atol=tolerance)


def rows_are(d, relation):
    """Whether a relation of rows 0 and 1 holds in all drafts of two tokens."""
    several = [rows for _, rows, _ in d.drafts if len(rows) > 1]
    return bool(several) and all(relation(rows) for rows in several)


def next_row(d):
    later = [rows[1] for _, rows, _ in d.drafts if len(rows) > 1 and rows[0] == tuple(d.row)]
    return d.i == 0 and bool(later) and all(close(d.got, row) for row in later)


def through_half(row):
    half = row.astype(np.float16).astype(float)
    return half / half.sum()


def is_truncated(d):
    kept = d.got > 0
    return close(d.got[kept], d.row[kept] / d.row[kept].sum(), 1e-9) and not kept[d.row > 0].all()


def exponent_of(got, row):
    """gamma if `got` is row ** gamma, normalised; otherwise None."""
    both = (got > 0) & (row > 0)
    if both.sum() < 3 or (got > 0).sum() != (row > 0).sum():
        return None
    x, y = np.log(row[both]), np.log(got[both])
    x, y = x - x.mean(), y - y.mean()
    if x @ x < 1e-12:
        return None
    exponent = (x @ y) / (x @ x)
    return float(exponent) if close(exponent * x, y, 1e-6) else None


def sorted_pairs(d):
    """{the first two siblings: share} if they always come in order of falling probability; otherwise None."""
    sibling_lists = [([tokens[node] for node in children(parents, parents[d.i])], share)
             for (tokens, _, parents), share in d.same.items()]  # fmt: skip
    sibling_lists = [(siblings, share) for siblings, share in sibling_lists if len(siblings) > 1]
    if d.elder or len(sibling_lists) < 2 or any(d.row[a] < d.row[b] for (a, b, *_), _ in sibling_lists):
        return None
    total, shares = sum(share for _, share in sibling_lists), {}
    for siblings, share in sibling_lists:
        shares[frozenset(siblings)] = shares.get(frozenset(siblings), 0) + share / total
    return shares


def as_a_set(row, a, b):
    """The probability that two draws without replacement are a and b, in any order."""
    return row[a] * row[b] * (1 / (1 - row[a]) + 1 / (1 - row[b]))


def is_sorted(d):
    shares = sorted_pairs(d)
    return bool(shares) and all(len(s) == 2 and close(share, as_a_set(d.row, *s), 1e-9) for s, share in shares.items())


def on_average(d):
    """Whether later tokens have the distribution in their row, averaged over the tokens drafted before."""
    weights = np.zeros(len(d.row))
    for (tokens, rows, _), share in d.drafts.items():
        if len(tokens) > d.i and rows[d.i] == tuple(d.row):
            weights[tokens[d.i]] += share
    return d.i > 0 and close(weights / weights.sum(), d.row, 1e-9)


IN_CHAINS = [
    Mistake("a draft token is drawn from its row on average, but it depends on the tokens before it in a way that the "
            "row does not know (a coin for the whole draft?): row i is its distribution given the tokens before it",
            tell=on_average),
    Mistake("your rows are one off, or all the same (one array, overwritten by each?): row i is the distribution of "
            "draft token i, after the draft tokens before it",
            tell=lambda d: rows_are(d, lambda rows: rows[0] == rows[1])),
    Mistake("your rows are one off: row i depends on draft token i itself; it is the distribution that token i was "
            "drawn from, before it was known",
            tell=lambda d: len(d.by_row) > 1 and all((w > 0).sum() == 1 for w in d.by_row.values())),
    Mistake("draft token i is drawn from the row of the token before it: append each draft token to the text before "
            "the next is drawn", tell=lambda d: d.i > 0 and close(d.got, d.first)),
    Mistake("your rows are one off: what token i was drawn from is your row i + 1", tell=next_row),
    Mistake("a draft token that was drawn is dropped, and the kept ones are not draws from the row: keep a token once "
            "it is drawn, or decide to stop before drawing",
            Chain(lambda row, rng: (None if row[x := sample_token(row, rng)] < 0.3 else x, row)),
            tell=lambda d: d.dropped, name="confidence stop that throws the token away",
            why="A token is drawn, found improbable, and dropped: the rest is no longer a sample from q. Keep it, or "
            "decide first.",
            seen="https://github.com/ikawrakow/ik_llama.cpp/issues/1820 (p_min; biased if drafts are sampled)"),
]  # fmt: skip
IN_TREES = [
    Mistake("siblings are drawn without replacement, but the row of a later one is that of the first: return its "
            "distribution given its elder siblings, the row without them, renormalised",
            Siblings(lambda tokens, rng: (sample_distinct(Q, 2, rng)[0], [Q, Q])), name="the first row for every "
            "sibling",
            tell=lambda d: bool(d.elder) and d.others.any() and close(d.got, d.others)),
    Mistake("the row of a later sibling leaves out the tokens before it, but it may be drawn as one of them: draw "
            "without replacement, or return the whole row",
            tell=lambda d: bool(d.elder) and d.row[d.elder].max() == 0 < d.got[d.elder].max()),
    Mistake("the token is always the same, but neither the most probable nor is its row one-hot: does the drafter keep "
            "random numbers from an earlier call? Draw new ones from rng in each call",
            tell=lambda d: (d.got > 0).sum() == 1 and d.row[d.got.argmax()] < d.rest.max()),
    Mistake("siblings are sorted after they are drawn: their order is part of the distribution, the first one must be "
            "a draw from the first row; leave them in the order in which they were drawn",
            Siblings(lambda tokens, rng: by_probability(sample_distinct(Q, 2, rng)[0])), name="siblings sorted",
            tell=is_sorted),
    Mistake("more siblings are drawn than returned, and the most probable are kept: a token that is drawn and dropped "
            "means that the others are not draws from their rows; draw as many as you return, or take the most "
            "probable with one-hot rows",
            Siblings(lambda tokens, rng: by_probability(sample_distinct(Q, 3, rng)[0])), name="siblings reranked",
            tell=lambda d: bool(sorted_pairs(d))),
]  # fmt: skip
OF_ROWS = [
    Mistake("your drafter picks a token deterministically, but its row is not one-hot: the row is its distribution",
            Chain(lambda row, rng: (int(row.argmax()), row)), tell=lambda d: (d.mean > 0).sum() == 1,
            name="greedy draft with a soft row", why="The draft takes its most probable token, but returns the "
            "softmax as q. The row of a deterministic token is one-hot.",
            seen="https://github.com/huggingface/transformers/issues/32867 (4.41 to 4.44), "
            "https://github.com/huggingface/transformers/issues/47932 (a generator that takes the argmax; still in "
            "5.24), https://github.com/jaymody/speculative-sampling/issues/3, GreedyProcessor in "
            "https://github.com/romsto/Speculative-Decoding/blob/HEAD/utils/logits_processor.py"),
    Mistake("the row is one-hot, but the token is drawn at random: return the distribution that it was drawn from",
            tell=lambda d: d.row.max() == 1),
    Mistake("the row has the right probabilities for the wrong tokens: column j is token j (was the row sorted?)",
            tell=lambda d: close(np.sort(d.mean), np.sort(d.row))),
    Mistake("some tokens of your row are never drafted: draw from the truncated row, and return that one",
            Chain(lambda row, rng: (sample_token(np.where(row >= np.sort(row)[-2], row, 0), rng), row)),
            tell=is_truncated, name="top-k draft with the full row", seen="https://github.com/huggingface/transformers/issues/47932"),
    Mistake("the row is not exactly what the draft token was drawn from: return it as it was, in float64",
            Chain(lambda row, rng: (sample_token(row, rng), through_half(row))),
            tell=lambda d: close(d.mean, d.row, 1e-2), name="row in low precision", why="q goes through float16 on "
            "its way to the test.",
            seen="https://github.com/deepseek-ai/DeepSpec/issues/31 (drawn in bfloat16, tested in "
            "float32)"),
    Mistake("the draft token is drawn at a different temperature than its row says (the row to the power {:.4g}): "
            "return the row after temperature and truncation, the one that was drawn from",
            tell=lambda d: round(exponent_of(d.mean, d.row) or 0, 6)),
    Mistake("the draft token is drawn uniformly from all tokens, not from the row that comes with it",
            tell=lambda d: np.ptp(d.mean[d.mean > 0]) < 1e-9),
    Mistake("the draft token is not drawn from the row that comes with it, its distribution after temperature and "
            "truncation",
            tell=lambda d: True),
]  # fmt: skip
OTHERWISE = [
    Mistake("your drafter picks a token deterministically",
            Siblings(lambda *_: (np.argsort(-Q, kind="stable")[:2], [Q, Q])),
            name="most likely tokens with soft rows", options={"kind": "trees"}, why="The candidates are the k most "
            "probable tokens, but are tested as if they were drawn from q.",
            seen="https://github.com/apple/ml-recurrent-drafter/issues/6 (beam search), branches in "
            "https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp"),
    Mistake("your drafter keeps something between calls", Siblings(NoiseOncePerText()), name="noise made once per text",
            options={"kind": "trees"},
            why="The random numbers of a position in the tree are made at the start of a text and used in every round.",
            seen="__init__ in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecTree.py (self.r and "
            "self.rand, with one object for each prompt)"),
    Mistake("a node of a tree comes after its parent", ChildWithoutParent(), name="a child without its parent",
            options={"kind": "trees"}, why="The most valuable nodes are kept. A child of probability 1 has its "
            "parent's value, and may come before it.", seen="topK_genrate in "
                                           "https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/cnets1.py (ties "
                                           "of torch.topk)"),
]  # fmt: skip
