"""Drafters whose rows are not the distributions that their tokens were drawn from."""

import numpy as np

from ..interfaces import Draft
from ..probs import Sampling, sample_token
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
    def drawn(self, row, rng):
        return int(row.argmax()), row


class TruncatedWithFullRow(Drafter):
    def drawn(self, row, rng):
        truncated = np.where(row >= np.sort(row)[-2], row, 0)  # top-k with k = 2
        return sample_token(truncated, rng), row


class ConfidenceStop(Drafter):
    def drawn(self, row, rng):
        token = sample_token(row, rng)
        return (None, row) if row[token] < 0.3 else (token, row)


class RowInLowPrecision(Drafter):
    def drawn(self, row, rng):
        rounded = row.astype(np.float16).astype(np.float64)
        return sample_token(row, rng), rounded / rounded.sum()


EXHIBITS = {  # name: (drafter, what is wrong, where it was seen, how the grader's message begins)
    "greedy draft with a soft row": (
        GreedyWithSoftRow(),
        "The draft takes its most probable token, but returns the softmax as q. The row of a certain token is one-hot.",
        "https://github.com/huggingface/transformers/issues/32867 (4.41 to 4.44), "
        "https://github.com/huggingface/transformers/issues/47932 (a generator that takes the argmax; still in 5.23), "
        "https://github.com/jaymody/speculative-sampling/issues/3, GreedyProcessor in "
        "https://github.com/romsto/Speculative-Decoding/blob/HEAD/utils/logits_processor.py",
        "your drafter takes one token for certain",
    ),
    "top-k draft with the full row": (
        TruncatedWithFullRow(),
        "The draft token is drawn from the truncated row, but tested with the full one.",
        "https://github.com/huggingface/transformers/issues/47932",
        "some tokens of your row are never drafted",
    ),
    "confidence stop that throws the token away": (
        ConfidenceStop(),
        "A token is drawn, found improbable, and dropped: what is kept is no draw from q. Keep it, or decide first.",
        "https://github.com/ikawrakow/ik_llama.cpp/issues/1820 (p_min; biased if drafts are sampled)",
        "a draft token that was drawn is dropped",
    ),
    "row in low precision": (
        RowInLowPrecision(),
        "q goes through float16 on its way to the test.",
        "https://github.com/deepseek-ai/DeepSpec/issues/31 (drawn in bfloat16, tested in float32)",
        "the row is not exactly what the draft token was drawn from",
    ),
}
