"""Drafters whose rows are not what their guesses were drawn from."""

import numpy as np

from ..interfaces import Draft
from ..probs import Sampling, sample_token
from ..testing.table import TableModel

MODEL = TableModel.random(3, seed=2, n_ctx=12)


class Drafter:
    """Drafts from MODEL; `guess` is where the mistakes are."""

    def propose(self, tokens, K, rng):
        tokens, guesses, rows = [int(token) for token in tokens], [], []
        for _ in range(min(K, MODEL.n_ctx - len(tokens) + 1)):
            row = Sampling()(MODEL(tokens))[0]
            guess, returned = self.guess(row, rng)
            if guess is None:
                break
            guesses, rows, tokens = [*guesses, guess], [*rows, returned], [*tokens, guess]
        return Draft(np.array(guesses, np.int64), np.reshape(np.array(rows, float), (len(guesses), MODEL.n_vocab)))


class GreedyWithSoftRow(Drafter):
    def guess(self, row, rng):
        return int(row.argmax()), row


class TruncatedWithFullRow(Drafter):
    def guess(self, row, rng):
        truncated = np.where(row >= np.sort(row)[-2], row, 0)  # top-k with k = 2
        return sample_token(truncated, rng), row


class ConfidenceStop(Drafter):
    def guess(self, row, rng):
        guess = sample_token(row, rng)
        return (None, row) if row[guess] < 0.3 else (guess, row)


class RowInLowPrecision(Drafter):
    def guess(self, row, rng):
        rounded = row.astype(np.float16).astype(np.float64)
        return sample_token(row, rng), rounded / rounded.sum()


EXHIBITS = {  # name: (drafter, what is wrong, where it was seen, how the grader's message begins)
    "greedy draft with a soft row": (
        GreedyWithSoftRow(),
        "The draft takes its likeliest token, but returns the softmax as q. The row of a certain token is one-hot.",
        "HF transformers#32867, jaymody/speculative-sampling#3, romsto",
        "your drafter takes one token for certain",
    ),
    "top-k draft with the full row": (
        TruncatedWithFullRow(),
        "The guess is drawn from the truncated row, the test is made with the full one.",
        "HF transformers#47932",
        "some tokens of your row are never drafted",
    ),
    "confidence stop that throws the token away": (
        ConfidenceStop(),
        "A guess is drawn, found unlikely, and dropped: what is left is no draw from q. Keep it, or decide first.",
        "the form of ik_llama#1820's p_min, biased where drafts are sampled",
        "a guess that was drawn is thrown away",
    ),
    "row in low precision": (
        RowInLowPrecision(),
        "q goes through float16 on its way to the test.",
        "DeepSpec#31 (bfloat16 against float32)",
        "the row is not precisely what the guess was drawn from",
    ),
}
