"""Language models as students write them: RIGHT, and WRONG with the words that the first line must contain."""

import inspect
from types import SimpleNamespace

import numpy as np

from speculative.testing import TableModel
from speculative.testing.mistakes import models as catalogue
from students.edits import edited

TABLE = TableModel.random(3, seed=3)


def edit(*changes):
    """A model with a cache, attention to all tokens, and a mistake."""
    return edited(inspect.getsource(catalogue.TreeAttention), "TreeAttention", *changes, kept=vars(catalogue))()


def changed(change, model=TABLE):
    """A model whose logits, or (logits, tokens, n_last), go through `change`."""

    class Changed:
        n_vocab, n_ctx = model.n_vocab, model.n_ctx

        def __call__(self, tokens, n_last=1):
            return change(model(tokens, n_last), tokens, n_last)

    return Changed()


def softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


ATTENTION, INF = catalogue.TreeAttention(), np.float32(np.inf)
KEPT, LOGITS = "self.keep(tokens[:n_text])", "(x @ self.to_logits)"
FORGETS = KEPT, "min(len(self.text), n - 1)"
RIGHT = {
    "a cache": ATTENTION,
    "a table with zeros": TableModel([[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.3, 0.5]]),
    "not normalised": changed(lambda logits, *_: logits * 3 + 7),
    "constant": TableModel(np.tile([0.5, 0.3, 0.2], (3, 1))),
}
BEFORE = "answer depends on what it was asked before"
NO_N_LAST = type("Model", (), {"n_vocab": 3, "n_ctx": 9, "__call__": lambda self, tokens: TABLE(tokens)})
WRONG = {name: (wrong, tuple(hint.split(" ... "))) for name, (wrong, hint) in {
    "probabilities": (changed(lambda l, *_: softmax(l)), "probabilities, not logits"),
    "no causal mask": (edit("np.tril(np.ones((n, n), dtype=bool))", "np.ones((n, n), bool)"),
                       "sees those after it ... causal mask"),
    "keeps the caller's list": (edit("[int(token) for token in tokens]", "tokens", "tokens[:n_text],", "tokens,",
                                     KEPT, f"min({KEPT}, n - 1)"), f"{BEFORE} ... a copy"),
    "never forgets": (edit(*FORGETS), BEFORE),
    "small logits": (edit(*FORGETS, LOGITS, f"({LOGITS} / 1000)"), BEFORE),
    "too few rows of a shorter text": (edit(KEPT, f"{KEPT}\n        shrunk = n_last > 1 and n < len(self.text)",
                                            LOGITS, "(x[shrunk:] @ self.to_logits)"), BEFORE),
    "keeps one rejected token": (edit(KEPT, f"min({KEPT} + (len(self.text) == {KEPT} + 1), n - 1)"), BEFORE),
    "positions from 0 after a cache": (edit("[*range(n_text),", "[*range(n_kept), *range(n_text - n_kept),"),
                                       "how many tokens its cache holds ... the positions n, n + 1"),
    "rows reversed": (changed(lambda l, *_: l[::-1].copy()), "reverse order"),
    "the last row again": (changed(lambda l, t, n: np.repeat(l[-1:], n, axis=0)), "all your rows are the same"),
    "rows one earlier": (changed(lambda l, t, n: ATTENTION(t, n + 1)[:-1] if len(t) > n else l, ATTENTION),
                         "your rows are one off"),
    "all -inf": (changed(lambda l, *_: l * 0 - INF), "infinite"),
    "inf": (changed(lambda l, *_: np.where(l == l.max(), INF, l)), "infinite"),
    "NaN": (changed(lambda l, *_: l * np.float32(np.nan)), "NaN"),
    "float64": (changed(lambda l, *_: l.astype(float)), "logits are float32; yours are float64"),
    "one row": (changed(lambda l, *_: l[-1]), "(n_last, n_vocab) = (1, 3); yours have (3,)"),
    "always one row": (changed(lambda l, *_: l[-1:]), "one row for each of the last n_last tokens"),
    "all rows": (changed(lambda l, t, n: TABLE(t, len(t))), "only the last n_last rows"),
    "a batch": (changed(lambda l, *_: l[None]), "no batch axis"),
    "None": (changed(lambda *_: None), "a NumPy array; yours are None"),
    "a list": (changed(lambda l, *_: l.tolist()), "a NumPy array; yours are a list"),
    "(logits, cache)": (changed(lambda l, *_: (l, None)), "a NumPy array; yours are a tuple"),
    "an output object": (changed(lambda l, *_: SimpleNamespace(logits=l)), "a NumPy array; yours are a types.Simple"),
    "noise": (changed(lambda l, *_: l + np.random.rand(*l.shape).astype(np.float32)), "gives two answers ... dropout"),
    "coarse": (changed(lambda l, t, n: l if n == 1 else (np.round(l * 64) / 64).astype(np.float32), ATTENTION),
               "imprecise ... bfloat16"),
    "n_last matters": (changed(lambda l, t, n: l + np.float32(n) * l**2), "the number of rows asked for"),
    "no n_vocab": (lambda tokens, n_last=1: TABLE(tokens, n_last), "an attribute n_vocab"),
    "the class": (TableModel, "not its class"),
    "no call": (SimpleNamespace(n_vocab=3, n_ctx=9), "cannot be called"),
    "fails": (changed(lambda l, t, n: l[len(t) + 5]), "your model fails for tokens = [0, 1, 0, 1], n_last = 1: Index"),
    "no n_last": (NO_N_LAST(), "your model fails ... n_last"),
    "writes to the tokens": (changed(lambda l, t, n: (t.append(0), l)[1]), "writes to its arguments"),
}.items()}  # fmt: skip
