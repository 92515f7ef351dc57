"""Drafters whose rows are not the distributions that their tokens were drawn from: first chains, then trees."""

import numpy as np

from ..interfaces import Draft
from ..logits.probs import Sampling, sample_distinct, sample_token
from ..testing.table import TableModel

MODEL = TableModel.random(3, seed=2, n_ctx=12)


class Drafter:
    """Drafts from MODEL; the mistakes are in `drawn`."""

    def propose(self, tokens, K, rng):
        tokens, drafted, rows = [int(token) for token in tokens], [], []
        for _ in range(min(K, MODEL.n_ctx - len(tokens) + 1)):
            row = Sampling()(MODEL(tokens))[0]
            token, returned = self.drawn(row, rng)
            if token is None:
                break
            drafted, rows, tokens = [*drafted, token], [*rows, returned], [*tokens, token]
        return Draft(np.array(drafted, np.int64), np.reshape(np.array(rows, float), (len(drafted), MODEL.n_vocab)))


class GreedyWithSoftRow(Drafter):
    """The draft takes its most probable token, but returns the softmax as q. The row of a certain token is one-hot.

    Seen: https://github.com/huggingface/transformers/issues/32867 (4.41 to 4.44),
    https://github.com/huggingface/transformers/issues/47932 (a generator that takes the argmax; still in 5.23),
    https://github.com/jaymody/speculative-sampling/issues/3, GreedyProcessor in
    https://github.com/romsto/Speculative-Decoding/blob/HEAD/utils/logits_processor.py
    """

    def drawn(self, row, rng):
        return int(row.argmax()), row


class TruncatedWithFullRow(Drafter):
    """The draft token is drawn from the truncated row, but tested with the full one.

    Seen: https://github.com/huggingface/transformers/issues/47932
    """

    def drawn(self, row, rng):
        truncated = np.where(row >= np.sort(row)[-2], row, 0)  # top-k with k = 2
        return sample_token(truncated, rng), row


class ConfidenceStop(Drafter):
    """A token is drawn, found improbable, and dropped: what is kept is no draw from q. Keep it, or decide first.

    Seen: https://github.com/ikawrakow/ik_llama.cpp/issues/1820 (p_min; biased if drafts are sampled)
    """

    def drawn(self, row, rng):
        token = sample_token(row, rng)
        return (None, row) if row[token] < 0.3 else (token, row)


class RowInLowPrecision(Drafter):
    """q goes through float16 on its way to the test.

    Seen: https://github.com/deepseek-ai/DeepSpec/issues/31 (drawn in bfloat16, tested in float32)
    """

    def drawn(self, row, rng):
        rounded = row.astype(np.float16).astype(np.float64)
        return sample_token(row, rng), rounded / rounded.sum()


EXHIBITS = {  # name: (drafter, how the grader's message begins)
    "greedy draft with a soft row": (GreedyWithSoftRow(), "your drafter takes one token for certain"),
    "top-k draft with the full row": (TruncatedWithFullRow(), "some tokens of your row are never drafted"),
    "confidence stop that throws the token away": (ConfidenceStop(), "a draft token that was drawn is dropped"),
    "row in low precision": (RowInLowPrecision(), "the row is not exactly what the draft token was drawn from"),
}


# ------------------------------------------------------------------------------------------------ trees

Q = np.array([0.1, 0.1, 0.1, 0.7])


class Siblings:
    """Drafts two candidates for the next token, whatever the text is; the mistakes are in `drawn`."""

    def propose(self, tokens, K, rng):
        self.begin(tokens, rng)
        drafted, rows = self.drawn(rng) if K else ((), np.empty((0, len(Q))))
        return Draft(np.array(drafted, np.int64), np.array(rows), np.full(len(drafted), -1))

    def begin(self, tokens, rng):
        pass


class RowOfTheFirst(Siblings):
    """Siblings are drawn without replacement, but each comes with q, not with q without its elder siblings."""

    def drawn(self, rng):
        return sample_distinct(Q, 2, rng)[0], [Q, Q]


class MostLikelyWithSoftRows(Siblings):
    """The candidates are the k most probable tokens, but are tested as if they were drawn from q.

    Seen: https://github.com/apple/ml-recurrent-drafter/issues/6 (beam search), branches in
    https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp
    """

    def drawn(self, rng):
        return np.argsort(-Q, kind="stable")[:2], [Q, Q]


def by_probability(tokens):
    """The two most probable of these tokens, and rows as if they had been drawn in this order."""
    first, second = sorted(tokens.tolist(), key=lambda token: -Q[token])[:2]
    left = np.where(np.arange(len(Q)) == first, 0, Q)
    return [first, second], [Q, left / left.sum()]


class Sorted(Siblings):
    """Siblings are drawn without replacement and then sorted by q: the first is no draw from q any more."""

    def drawn(self, rng):
        return by_probability(sample_distinct(Q, 2, rng)[0])


class Reranked(Siblings):
    """One sibling more is drawn than needed, and the most probable are kept: what is kept depends on the tokens."""

    def drawn(self, rng):
        return by_probability(sample_distinct(Q, 3, rng)[0])


class NoiseOncePerText(Siblings):
    """The random numbers of a place in the tree are made at the start of a text and used in every round.

    Seen: __init__ in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecTree.py (self.r and self.rand, with
    one object for each prompt)
    """

    n_prompt, noise = None, None

    def begin(self, tokens, rng):
        self.n_prompt = self.n_prompt or len(tokens)
        if len(tokens) <= self.n_prompt:  # a longer text is taken for a continuation of the first
            self.noise = [rng.random() for _ in range(2)]

    def drawn(self, rng):
        cdf = np.cumsum(Q)
        return [int(np.searchsorted(cdf[:-1], u, side="right")) for u in self.noise], [Q, Q]


class ChildWithoutParent:
    """The most valuable nodes are kept. A child of probability 1 has its parent's value, and may come before it.

    Seen: topK_genrate in https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/cnets1.py (ties of torch.topk)
    """

    def propose(self, tokens, K, rng):
        first, second = int(tokens[-1]) % len(Q), (int(tokens[-1]) + 1) % len(Q)
        nodes = [((first,), 1.0), ((first, second), 1.0), ((second,), 0.0)]  # a path, and its value
        kept = sorted((node for node in nodes if len(node[0]) <= K), key=lambda node: (-node[1], -len(node[0])))
        paths = [path for path, _ in kept]
        parents = [paths.index(path[:-1]) if path[:-1] else -1 for path in paths]
        drafted = np.array([path[-1] for path in paths], np.int64)
        return Draft(drafted, np.eye(len(Q))[drafted], np.array(parents, np.int64))


TREE_EXHIBITS = {  # name: (drafter, how the grader's message begins)
    "the first row for every sibling": (
        RowOfTheFirst(),
        "siblings are drawn without replacement, but the row of a later one",
    ),
    "most likely tokens with soft rows": (MostLikelyWithSoftRows(), "your drafter takes one token for certain"),
    "siblings sorted": (Sorted(), "siblings are sorted after they are drawn"),
    "siblings reranked": (Reranked(), "more siblings are drawn than returned"),
    "noise made once per text": (NoiseOncePerText(), "your drafter keeps something between calls"),
    "a child without its parent": (ChildWithoutParent(), "a node of a tree comes after its parent"),
}
