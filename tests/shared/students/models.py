"""Language models as students write them: RIGHT, and WRONG with the words that the first line must contain."""

from types import SimpleNamespace

import numpy as np

from speculative.testing import TableModel

RIGHT, NOTES, WRONG = {}, {}, {}
TABLE = TableModel.random(3, seed=3)


class Attention:
    """One head of attention, with weights at random: a model that looks at all tokens."""

    def __init__(self, n_vocab=5, n_ctx=128, width=8, causal=True):
        rng = np.random.default_rng(0)
        self.n_vocab, self.n_ctx, self.causal = n_vocab, n_ctx, causal
        self.wte, self.wpe = (rng.standard_normal((n, width)) for n in (n_vocab, n_ctx))
        self.q, self.k, self.v = (rng.standard_normal((width, width)) for _ in range(3))

    def hidden(self, x):
        scores = (x @ self.q) @ (x @ self.k).T / np.sqrt(x.shape[1])
        if self.causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return x + weights / weights.sum(axis=1, keepdims=True) @ (x @ self.v)

    def __call__(self, tokens, n_last=1):
        x = self.wte[np.asarray(tokens)] + self.wpe[: len(tokens)]
        return (self.hidden(x) @ self.wte.T)[-n_last:].astype(np.float32)


class Cached(Attention):
    """With a cache of rows; `keep` says how many of the tokens before are still right, `n_kept` how many are kept."""

    def __init__(self, causal=True):
        Attention.__init__(self)
        self.seen, self.rows = [], np.empty((0, 5), np.float32)

    def keep(self, tokens):
        n = 0
        while n < min(len(tokens), len(self.seen)) and tokens[n] == self.seen[n]:
            n += 1
        return n

    def __call__(self, tokens, n_last=1):
        n = min(self.keep(tokens), len(tokens) - 1)
        new = Attention.__call__(self, tokens, len(tokens) - n)
        self.rows = np.concatenate([self.rows[:n], new])[: len(tokens)]
        self.seen = self.remembered(tokens)
        return self.rows[-n_last:]

    def remembered(self, tokens):
        return list(tokens)


class KeepsTheList(Cached):
    def remembered(self, tokens):
        return tokens


class NeverForgets(Cached):
    def keep(self, tokens):
        return len(self.seen)


class KeepsOneTooMany(Cached):
    def keep(self, tokens):
        return min(Cached.keep(self, tokens) + 1, len(self.seen))


class AppendsKeys(Attention):
    """Keys and values of all that it was ever asked."""

    def __init__(self):
        Attention.__init__(self)
        self.x = np.empty((0, 8))

    def __call__(self, tokens, n_last=1):
        new = self.wte[np.asarray(tokens[len(self.x) :], int)] + self.wpe[len(self.x) : len(tokens)]
        self.x = np.concatenate([self.x, new])
        return (self.hidden(self.x) @ self.wte.T)[-n_last:].astype(np.float32)


def changed(change, base=None, **attributes):
    """A model whose logits, or (logits, tokens, n_last), go through `change`."""
    model = base or TABLE

    class Changed(SimpleNamespace):
        def __call__(self, tokens, n_last=1):
            return change(model(tokens, n_last), tokens, n_last)

    return Changed(n_vocab=model.n_vocab, n_ctx=model.n_ctx, **attributes)


def softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


NOISE = np.random.default_rng(0)
ATTENTION = Attention()
RIGHT |= {
    "a table": TABLE,
    "attention": ATTENTION,
    "a cache": Cached(),
    "a table with zeros": TableModel([[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.3, 0.5]]),
    "not normalised": changed(lambda logits, *_: logits * 3 + 7),
    "bigrams": TableModel([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]),
    "one buffer": changed(lambda logits, *_: np.ascontiguousarray(logits)),
    "constant": TableModel(np.tile([0.5, 0.3, 0.2], (3, 1))),
}
BEFORE = "answer depends on what it was asked before"
WRONG |= {
    "probabilities": (changed(lambda logits, *_: softmax(logits)), ("probabilities, not logits",)),
    "no causal mask": (Attention(causal=False), ("sees those after it", "causal mask")),
    "never forgets": (NeverForgets(), (BEFORE,)),
    "keeps one too many": (KeepsOneTooMany(), (BEFORE,)),
    "keeps the caller's list": (KeepsTheList(), (BEFORE, "a copy")),
    "appends keys": (AppendsKeys(), ("your model",)),
    "rows reversed": (changed(lambda logits, *_: logits[::-1].copy()), ("reverse order",)),
    "the last row again": (changed(lambda logits, t, n: np.repeat(logits[-1:], n, axis=0)), ("all your rows are the same",)),
    "all -inf": (changed(lambda logits, *_: logits * 0 - np.float32(np.inf)), ("infinite",)),
    "inf": (changed(lambda logits, *_: np.where(logits == logits.max(), np.float32(np.inf), logits)), ("infinite",)),
    "NaN": (changed(lambda logits, *_: logits * np.float32(np.nan)), ("NaN",)),
    "float64": (changed(lambda logits, *_: logits.astype(float)), ("logits are float32; yours are float64",)),
    "float16": (changed(lambda logits, *_: logits.astype(np.float16)), ("logits are float32; yours are float16",)),
    "one row": (changed(lambda logits, t, n: logits[-1]), ("(n_last, n_vocab) = (1, 3); yours have (3,)",)),
    "always one row": (changed(lambda logits, t, n: logits[-1:]), ("one row for each of the last n_last tokens",)),
    "all rows": (changed(lambda logits, t, n: TABLE(t, len(t))), ("only the last n_last rows",)),
    "a batch": (changed(lambda logits, *_: logits[None]), ("no batch axis",)),
    "a list": (changed(lambda logits, *_: logits.tolist()), ("a NumPy array; yours are a list",)),
    "None": (changed(lambda *_: None), ("a NumPy array; yours are None",)),
    "(logits, cache)": (changed(lambda logits, *_: (logits, None)), ("a NumPy array; yours are a tuple",)),
    "an output object": (changed(lambda l, *_: SimpleNamespace(logits=l)), ("a NumPy array",)),
    "noise": (changed(lambda l, *_: l + np.random.rand(*l.shape).astype(np.float32)), ("gives two answers", "dropout")),
    "its own noise": (changed(lambda l, *_: l + NOISE.random(l.shape, np.float32)), ("your model",)),
    "coarse": (
        changed(lambda l, t, n: l if n == 1 else (np.round(l * 64) / 64).astype(np.float32), ATTENTION),
        ("imprecise", "bfloat16"),
    ),
    "n_last matters": (changed(lambda l, t, n: l + np.float32(n) * l**2), ("the number of rows asked for",)),
    "no n_vocab": (lambda tokens, n_last=1: TABLE(tokens, n_last), ("an attribute n_vocab",)),
    "the class": (Attention, ("not its class",)),
    "fails": (changed(lambda l, t, n: l[len(t) + 5]), ("your model fails for tokens = ", "IndexError")),
    "no n_last": (type("Model", (), {"n_vocab": 3, "n_ctx": 9, "__call__": lambda s, tokens: TABLE(tokens)})(),
                  ("your model fails", "n_last")),
}  # fmt: skip


class WritesToTheTokens(Attention):
    def __call__(self, tokens, n_last=1):
        logits = Attention.__call__(self, tokens, n_last)
        tokens.append(int(logits[-1].argmax()))
        return logits


class RowsOneEarlier(Attention):
    def __call__(self, tokens, n_last=1):
        if len(tokens) <= n_last:
            return Attention.__call__(self, tokens, n_last)
        return Attention.__call__(self, tokens, n_last + 1)[:-1]


class PositionsFromZero(Cached):
    """Runs the new tokens alone, at positions from 0, without what is before."""

    def __call__(self, tokens, n_last=1):
        n = min(self.keep(tokens), len(tokens) - n_last)
        self.seen = list(tokens)
        return Attention.__call__(self, tokens[n:], n_last)


class SmallLogits(PositionsFromZero):
    """As a model at the start of its training has them."""

    def __call__(self, tokens, n_last=1):
        return PositionsFromZero.__call__(self, tokens, n_last) * np.float32(1e-3)


WRONG |= {
    "writes to the tokens": (WritesToTheTokens(), ("writes to its arguments",)),
    "rows one earlier": (RowsOneEarlier(), ("rows are one off",)),
    "positions from zero": (PositionsFromZero(), (BEFORE,)),
    "small logits": (SmallLogits(), (BEFORE,)),
}
