"""Drafters as students write them: RIGHT in many styles, WRONG with the words that the first line must contain."""

import random
from collections import Counter

import numpy as np

from speculative import Draft, ModelDrafter, PromptLookupDrafter, Sampling, sample_token
from speculative.testing import TableModel

RIGHT, NOTES, WRONG = {}, {}, {}
MODEL = TableModel.random(3, seed=2, n_ctx=12)
GENERATOR = np.random.default_rng(0)


class Drafter:
    """`draw` and `returned` are where the mistakes are."""

    def rows(self, tokens):
        return Sampling()(MODEL(tokens))[0]

    def draw(self, row, rng):
        return sample_token(row, rng)

    def returned(self, row, tokens, guess):
        return row

    def made(self, guesses, rows, K):
        return Draft(np.array(guesses, np.int64), np.array(rows, float).reshape(len(guesses), 3))

    def propose(self, tokens, K, rng):
        tokens, guesses, rows = list(tokens), [], []
        for _ in range(K):
            row = self.rows(tokens)
            guess = self.draw(row, rng)
            guesses.append(guess)
            rows.append(self.returned(row, tokens, guess))
            tokens = [*tokens, guess]
        return self.made(guesses, rows, K)


def variant(base=Drafter, **methods):
    return type("Variant", (base,), methods)()


def propose(fn):
    return variant(propose=lambda self, tokens, K, rng: fn(tokens, K, rng))


def wrong(*words):
    def register(cls):
        WRONG[cls.__name__] = cls(), words
        return cls

    return register


def right(cls):
    RIGHT[cls.__name__] = cls()
    return cls


RIGHT |= {
    "plain": Drafter(),
    "the library's": ModelDrafter(MODEL),
    "lookup": PromptLookupDrafter(3),
    "choice": variant(draw=lambda self, row, rng: rng.choice(3, p=row)),
    "another temperature": variant(rows=lambda self, tokens: Sampling(2.0)(MODEL(tokens))[0]),
    "top-k": variant(rows=lambda self, tokens: Sampling(top_k=2)(MODEL(tokens))[0]),
    "greedy, one-hot": variant(
        draw=lambda self, row, rng: int(row.argmax()), returned=lambda self, row, t, g: np.eye(3)[g]
    ),
    "nothing": propose(lambda tokens, K, rng: Draft(np.empty(0, int), np.empty((0, 3)))),
    "uint16": variant(made=lambda self, g, rows, K: Draft(np.array(g, np.uint16), np.reshape(rows, (len(g), 3)))),
    "int32": variant(made=lambda self, g, rows, K: Draft(np.array(g, np.int32), np.reshape(rows, (len(g), 3)))),
    "uniform": propose(lambda tokens, K, rng: Draft(rng.integers(3, size=K), np.full((K, 3), 1 / 3))),
    "forgets its own draft token": variant(
        propose=lambda self, tokens, K, rng: Draft(
            np.array([sample_token(self.rows(tokens), rng) for _ in range(K)], int),
            np.reshape([self.rows(tokens)] * K, (K, 3)),
        )
    ),
}


@right
class AddsLists:
    """`[1] + tokens`, `tokens + guesses`, tokens.index: right for the lists that samplers hand down."""

    def propose(self, tokens, K, rng):
        guesses, rows = [], []
        for _ in range(K):
            text = [1] + tokens + guesses
            rows.append(Sampling()(MODEL(text[1:]))[0] if text.index(1) == 0 else None)
            guesses.append(sample_token(rows[-1], rng))
        return Draft(np.array(guesses, np.int64), np.array(rows).reshape(-1, 3))


@right
class Bigrams:
    """Counts over the text, one more of each."""

    def propose(self, tokens, K, rng):
        tokens, guesses, rows = [int(t) for t in tokens], [], []
        for _ in range(K):
            counts = Counter(b for a, b in zip(tokens, tokens[1:]) if a == tokens[-1])
            row = np.array([counts[token] + 1.0 for token in range(3)])
            row /= row.sum()
            guesses.append(int(rng.choice(3, p=row)))
            rows.append(row)
            tokens.append(guesses[-1])
        return Draft(np.asarray(guesses, dtype=np.int64), np.asarray(rows, dtype=np.float64).reshape(K, 3))


@right
class Mixture:
    """By a coin one of two models, and the row of the one that it was."""

    def propose(self, tokens, K, rng):
        row = Sampling()(MODEL(list(tokens)))[0] if rng.random() < 0.5 else np.array([0.2, 0.3, 0.5])
        return Draft(np.array([sample_token(row, rng)]), row[None]) if K else Draft(np.empty(0, int), np.empty((0, 3)))


@right
class StopsByACoin(Drafter):
    def propose(self, tokens, K, rng):
        return Drafter.propose(self, tokens, K if rng.random() < 0.5 else min(K, 1), rng)


@right
class KeepsTheUnlikely(Drafter):
    """Stops after a token of low probability, which stays in the draft; and by a coin, before drawing."""

    def propose(self, tokens, K, rng):
        tokens, guesses, rows = [int(t) for t in tokens], [], []
        while len(guesses) < K and rng.random() < 0.8:
            rows.append(self.rows(tokens))
            guesses.append(self.draw(rows[-1], rng))
            tokens.append(guesses[-1])
            if rows[-1][guesses[-1]] < 0.3:
                break
        return self.made(guesses, rows, K)


@right
class Cached(Drafter):
    """Keeps what it has computed, by text."""

    def __init__(self):
        self.known = {}

    def rows(self, tokens):
        return self.known.setdefault(tuple(tokens), Sampling()(MODEL(tokens))[0])


OTHER = "your drafter uses another source of randomness than rng"
WRONG |= {
    "np.random.choice": (variant(draw=lambda s, row, rng: int(np.random.choice(3, p=row))), (OTHER, "np.random")),
    "random.choices": (variant(draw=lambda s, row, rng: random.choices(range(3), row)[0]), (OTHER, "module random")),
    "its own generator": (variant(draw=lambda s, row, rng: sample_token(row, GENERATOR)), (OTHER, "a generator of")),
    "default_rng(0)": (
        variant(draw=lambda s, row, rng: sample_token(row, np.random.default_rng(0))),
        (OTHER, "default_rng"),
    ),
    "soft row of a greedy draft": (
        variant(draw=lambda s, row, rng: int(row.argmax())),
        ("takes one token for certain", "not one-hot"),
    ),
    "full row of top-k": (
        variant(draw=lambda s, row, rng: sample_token(np.where(row >= np.sort(row)[-2], row, 0), rng)),
        ("never drafted", "truncated row"),
    ),
    "row at another temperature": (
        variant(draw=lambda s, row, rng: sample_token(row**0.5 / (row**0.5).sum(), rng)),
        ("another temperature",),
    ),
    "logits": (
        variant(returned=lambda s, row, tokens, g: MODEL(tokens)[0] + 1.0),
        ("is a distribution", "logits"),
    ),
    "log-probabilities": (variant(returned=lambda s, row, tokens, g: np.log(row)), ("is a distribution", "logarithms")),
    "probability of the token alone": (
        variant(made=lambda s, g, rows, K: Draft(np.array(g, int), np.array([r[x] for r, x in zip(rows, g)]))),
        ("a row of n_vocab probabilities for each token",),
    ),
    "counts in the second row": (
        variant(returned=lambda s, row, tokens, g: row * (1 if len(tokens) < 3 else 7)),
        ("is a distribution", "adds up to 7"),
    ),
    "counts": (variant(returned=lambda s, row, tokens, g: row * 7), ("is a distribution", "adds up to 7")),
    "rows one later": (
        variant(returned=lambda s, row, tokens, g: s.rows([*tokens, g])),
        ("rows are one off",),
    ),
    "rows one earlier": (
        variant(returned=lambda s, row, tokens, g: s.rows(tokens[:-1] or [0])),
        ("one off",),
    ),
    "first row for all": (
        variant(propose=lambda s, tokens, K, rng: one_row(Drafter().propose(tokens, K, rng))),
        ("all the same",),
    ),
    "throws away the unlikely": (
        propose(lambda tokens, K, rng: likely(Drafter().propose(tokens, K, rng))),
        ("is dropped, and the kept",),
    ),
    "float32 rows": (variant(made=lambda s, g, rows, K: Draft(np.array(g, int), np.float32(rows).reshape(-1, 3))),
                     ("rows of a draft are float64", "float32")),
    "through float32": (
        variant(returned=lambda s, row, tokens, g: np.float64(np.float32(row)) / np.float32(row).sum(dtype=float)),
        ("not exactly", "float64"),
    ),
    "uniform draft tokens, model's rows": (variant(draw=lambda s, row, rng: int(rng.integers(3))), ("drawn uniformly from all tokens",)),
    "epsilon in the row": (variant(returned=lambda s, row, t, g: (row + 1e-8) / (row + 1e-8).sum()), ("not exactly",)),
    "one at least": (
        variant(propose=lambda s, t, K, rng: Drafter.propose(s, t, max(K, 1), rng)),
        ("at most K = 0 tokens", "you have 1"),
    ),
    "lists": (variant(made=lambda s, g, rows, K: Draft(g, rows)), ("arrays of NumPy", "list")),
    "list of rows": (variant(made=lambda s, g, rows, K: Draft(np.array(g, int), rows)), ("arrays of NumPy", "list")),
    "np.array([])": (variant(made=lambda s, g, rows, K: Draft(np.array(g), np.array(rows))), ("np.empty((0, n_vocab))",)),
    "a tuple": (variant(made=lambda s, g, rows, K: (g, rows)), ("returns Draft(tokens, probs)", "yours returns (")),
    "None": (propose(lambda *_: None), ("returns Draft(tokens, probs)", "None")),
    "-1": (
        propose(lambda tokens, K, rng: Draft(np.full(K, -1), np.full((K, 3), 1 / 3))),
        ("from 0 to n_vocab - 1 = 2", "-1"),
    ),
    "token 7": (
        propose(lambda tokens, K, rng: Draft(np.full(K, 7), np.full((K, 3), 1 / 3))),
        ("from 0 to n_vocab - 1 = 2", "7"),
    ),
    "floats": (
        variant(made=lambda s, g, rows, K: Draft(np.array(g, float), np.array(rows, float).reshape(-1, 3))),
        ("whole numbers", "float64"),
    ),
    "another vocabulary": (
        propose(lambda tokens, K, rng: Draft(np.zeros(K, int), np.full((K, 4), 0.25))),
        ("a row of n_vocab probabilities",),
    ),
    "sorted rows": (variant(returned=lambda s, row, t, g: np.sort(row)), ("wrong tokens",)),
    "one-hot row of a draw": (variant(returned=lambda s, row, t, g: np.eye(3)[row.argmax()]), ("row is one-hot", "at random")),
    "all from the first row": (
        variant(propose=lambda s, tokens, K, rng: all_from_the_first(s, tokens, K, rng)),
        ("the row of the token before it",),
    ),
    "tokens in two dimensions": (
        variant(made=lambda s, g, rows, K: Draft(np.array([g], int), np.reshape(rows, (len(g), 3)))), ("in one dimension",),
    ),
    "a negative number": (
        propose(lambda tokens, K, rng: Draft(np.ones(K, int), np.tile([1.5, -0.5, 0], (K, 1)))), ("is a distribution", "softmax"),
    ),
    "the class": (Drafter, ("not its class",)),
    "a function": (lambda tokens, K, rng: None, ("a method propose(tokens, K, rng)",)),
    "fails for K = 0": (
        propose(lambda tokens, K, rng: Draft(np.array([1] * K), np.stack([np.eye(3)[1]] * K))),
        ("your drafter fails for tokens = [0], K = 0", "ValueError"),
    ),
    "asserts": (variant(rows=lambda s, tokens: asserting(tokens)), ("your drafter fails", "assert len(tokens) > 3")),
}  # fmt: skip


def all_from_the_first(drafter, tokens, K, rng):
    guesses = [sample_token(drafter.rows(tokens), rng) for _ in range(K)]
    return drafter.made(guesses, [drafter.rows([*tokens, *guesses[:i]]) for i in range(K)], K)


def asserting(tokens):
    assert len(tokens) > 3


def one_row(draft):
    return Draft(draft.tokens, np.repeat(draft.probs[:1], len(draft.tokens), axis=0))


def likely(draft):
    kept = draft.probs[range(len(draft.tokens)), draft.tokens] > 0.3
    n = len(kept) if kept.all() else int(kept.argmin())
    return Draft(draft.tokens[:n], draft.probs[:n])


@wrong("writes to its arguments")
class Appends:
    """To the text that it is given."""

    def propose(self, tokens, K, rng):
        rows = []
        for _ in range(K):
            rows.append(Sampling()(MODEL(tokens))[0])
            tokens.append(sample_token(rows[-1], rng))
        return Draft(np.array(tokens[len(tokens) - K :], int), np.reshape(rows, (K, 3)))


@wrong("cannot be enumerated", "an endless loop")
class UntilLikely(Drafter):
    def draw(self, row, rng):
        while True:
            guess = sample_token(row, rng)
            if row[guess] > 0.2:
                return guess


@wrong("another source of randomness than rng", "between calls")
class GrowsATable(Drafter):
    """Learns from what it is asked, every time."""

    def __init__(self):
        self.counts = np.ones(3)

    def rows(self, tokens):
        self.counts[tokens[-1]] += 1
        return self.counts / self.counts.sum()


@wrong("all the same")
class OneBuffer(Drafter):
    """Returns one array for all rows, overwritten by each."""

    def propose(self, tokens, K, rng):
        tokens, guesses, row, rows = list(tokens), [], np.empty(3), []
        for _ in range(K):
            row[:] = self.rows(tokens)
            guesses.append(sample_token(row, rng))
            rows.append(row)
            tokens.append(guesses[-1])
        return self.made(guesses, rows, K)


@right
class ToldTheSampling(Drafter):
    """Samples as the sampler does."""

    sampling = None

    def rows(self, tokens):
        return (self.sampling or Sampling())(MODEL(tokens))[0]


@wrong("with the `sampling` that samplers fill in", "another temperature")
class ForgetsTheSampling(ToldTheSampling):
    """Draws with the sampling, and returns rows without it."""

    def returned(self, row, tokens, guess):
        return Drafter.rows(self, tokens)


@wrong("a coin for the whole draft?")
class OneCoin:
    """Draws all tokens from one of two rows, and returns their mean."""

    def propose(self, tokens, K, rng):
        rows = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]])
        one = rows[int(rng.random() < 0.5)]
        drafted = np.array([rng.choice(3, p=one) for _ in range(K)], np.int64)
        return Draft(drafted, np.tile(rows.mean(axis=0), (K, 1)).reshape(K, 3))
