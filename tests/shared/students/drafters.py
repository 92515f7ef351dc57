"""Drafters as students write them: RIGHT in many styles, WRONG with the words that the first line must contain."""

import inspect
import random  # noqa: F401 (an answer draws from it)

import numpy as np

from speculative import Draft, Sampling, sample_token
from speculative.testing import TableModel
from students.edits import edited

MODEL = TableModel.random(3, seed=2, n_ctx=12)
GENERATOR = np.random.default_rng(0)
TWO, COUNTS, KNOWN = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]]), np.ones(3), {}


class Drafter:
    def propose(self, tokens, K, rng):
        text, drafted, rows = list(tokens), [], []
        for _ in range(K):
            row = Sampling()(MODEL(text))[0]
            token = sample_token(row, rng)
            drafted.append(token)
            rows.append(row)
            text.append(token)
        return Draft(np.array(drafted, np.int64), np.reshape(np.array(rows, float), (len(drafted), 3)))


def counted(token):
    COUNTS[token] += 1
    return COUNTS / COUNTS.sum()


def changed(*changes):
    return edited(inspect.getsource(Drafter), "Drafter", *changes, kept=globals())()


ROW, TOKEN, KEEP = "Sampling()(MODEL(text))[0]", "sample_token(row, rng)", "rows.append(row)"
TOKENS, ROWS = "np.array(drafted, np.int64)", "np.reshape(np.array(rows, float), (len(drafted), 3))"
DRAFT, LISTS = f"Draft({TOKENS}, {ROWS})", "list(tokens), [], []"
OWN_SAMPLING = "class Drafter:", "class Drafter:\n    sampling = None\n", ROW, "self.sampling(MODEL(text))[0]"
OTHER = "your drafter uses a source of randomness other than rng"

RIGHT = {name: changed(*changes) for name, changes in {
    "plain": (),
    "choice": (TOKEN, "rng.choice(3, p=row)"),
    "greedy, one-hot": (TOKEN, "int(row.argmax())", KEEP, "rows.append(np.eye(3)[token])"),
    "nothing": (DRAFT, "Draft(np.empty(0, int), np.empty((0, 3)))"),
    "uint16": (TOKENS, "np.array(drafted, np.uint16)"),
    "uniform": (TOKEN, "int(rng.integers(3))", KEEP, "rows.append(np.full(3, 1 / 3))"),
    "forgets its own draft token": ("text.append(token)", ""),
    "adds lists": (LISTS, "[] + tokens, [], []"),
    "a mixture": (ROW, "TWO[int(rng.random() < 0.5)]"),  # by a coin for each token, and the row of the one that it was
    "stops by a coin": ("range(K)", "range(K if rng.random() < 0.5 else min(K, 1))"),
    "stops after the unlikely": ("text.append(token)", "text.append(token)\n            if row[token] < 0.3: break"),
    "cached": (ROW, "KNOWN.setdefault(tuple(text), Sampling()(MODEL(text))[0])"),
    "told the sampling": OWN_SAMPLING,
}.items()}  # fmt: skip
NOTES = {"nothing": "note: your drafter is right, but proposes nothing for any of the texts",
         "adds lists": "note: your drafter is right for a list of tokens"}  # fmt: skip

WRONG = {name: (changed(*changes), tuple(hint.split(" ... "))) for name, (hint, *changes) in {
    "np.random.choice": (f"{OTHER}: np.random", TOKEN, "int(np.random.choice(3, p=row))"),
    "random.choices": (f"{OTHER}: the module random", TOKEN, "random.choices(range(3), row)[0]"),
    "its own generator": (f"{OTHER}: a generator of", TOKEN, "sample_token(row, GENERATOR)"),
    "default_rng(0)": (f"{OTHER} ... default_rng", TOKEN, "sample_token(row, np.random.default_rng(0))"),
    "grows a table": (f"{OTHER} ... between calls", ROW, "counted(text[-1])"),
    "soft row of a greedy draft": ("picks a token deterministically ... not one-hot", TOKEN, "int(row.argmax())"),
    "full row of top-k": ("some tokens of your row are never drafted", TOKEN,
                          "sample_token(np.where(row >= np.sort(row)[-2], row, 0), rng)"),
    "row at another temperature": ("at a different temperature than its row says (the row to the power 0.5)", TOKEN,
                                   "sample_token(row**0.5 / (row**0.5).sum(), rng)"),
    "logits": ("is a distribution ... these look like logits", KEEP, "rows.append(MODEL(text)[0] + 1.0)"),
    "log-probabilities": ("is a distribution ... logarithms of probabilities", KEEP, "rows.append(np.log(row))"),
    "NaN": ("is a distribution ... NaN or infinity", KEEP, "rows.append(row * np.nan)"),
    "counts": ("is a distribution ... adds up to 7", KEEP, "rows.append(row * 7)"),
    "counts in the second row": ("adds up to 7 in row 1", KEEP, "rows.append(row * (7 if rows else 1))"),
    "float32, not normalised again": ("float32 is too coarse", KEEP, "rows.append(np.float32(row).astype(float))"),
    "float32 rows": ("rows of a draft are float64 ... float32", ROWS, "np.float32(rows).reshape(-1, 3)"),
    "through float32": ("the row is not exactly what the draft token was drawn from", KEEP,
                        "rows.append(np.float64(np.float32(row)) / np.float32(row).sum(dtype=float))"),
    "probability of the token alone": ("a row of n_vocab probabilities for each token", ROWS,
                                       "np.array([row[x] for row, x in zip(rows, drafted)])"),
    "another vocabulary": ("you have 0 tokens and probs of shape (0, 4)", ROWS, "np.full((len(drafted), 4), 0.25)"),
    "np.array([])": ("where nothing is drafted, the rows are np.empty((0, n_vocab))", ROWS, "np.array(rows)"),
    "rows one later": ("rows are one off: row i depends on draft token i itself", KEEP,
                       "rows.append(Sampling()(MODEL([*text, token]))[0])"),
    "rows one earlier": ("rows are one off", KEEP, "rows.append(Sampling()(MODEL(text[:-1] or [0]))[0])"),
    "first row for all": ("rows are one off, or all the same", KEEP, "rows.append(rows[0] if rows else row)"),
    "all from the first row": ("is drawn from the row of the token before it", TOKEN,
                               "sample_token(Sampling()(MODEL(tokens))[0], rng)"),
    "one coin for the draft": ("a coin for the whole draft?", LISTS, f"{LISTS}\n        one = TWO[rng.integers(2)]",
                               TOKEN, "sample_token(one, rng)", KEEP, "rows.append(TWO.mean(axis=0))"),
    "throws away the unlikely": ("is dropped, and the kept", TOKEN,
                                 f"{TOKEN}\n            if row[token] <= 0.3: break"),
    "uniform draft tokens, model's rows": ("drawn uniformly from all tokens", TOKEN, "int(rng.integers(3))"),
    "sorted rows": ("the right probabilities for the wrong tokens", KEEP, "rows.append(np.sort(row))"),
    "one-hot row of a draw": ("row is one-hot ... at random", KEEP, "rows.append(np.eye(3)[row.argmax()])"),
    "forgets the sampling": ("with the `sampling` that samplers fill in ... a different temperature", *OWN_SAMPLING, KEEP,
                             "rows.append(Sampling()(MODEL(text))[0])"),
    "one at least": ("at most K = 0 tokens ... you have 1", "range(K)", "range(max(K, 1))"),
    "tokens in two dimensions": ("in one dimension; yours has the shape (1, 0)", TOKENS, "np.array([drafted], int)"),
    "list of tokens": ("arrays of NumPy ... your tokens are a list", TOKENS, "drafted"),
    "list of rows": ("arrays of NumPy ... your probs are a list", ROWS, "rows"),
    "floats": ("whole numbers; yours are float64", TOKENS, "np.array(drafted, float)"),
    "-1": ("from 0 to n_vocab - 1 = 2; yours is -1", TOKENS, "np.full(K, -1)"),
    "token 3": ("from 0 to n_vocab - 1 = 2; yours is 3", TOKENS, "np.full(K, 3)"),
    "a tuple": ("returns Draft(tokens, probs); yours returns (", DRAFT, "(drafted, rows)"),
    "None": ("returns Draft(tokens, probs); yours returns None", f"return {DRAFT}", "pass"),
    "writes to the text": ("writes to its arguments", LISTS, "tokens, [], []"),
    "until it is likely": ("cannot be enumerated ... an endless loop", TOKEN,
                           "next(x for x in iter(lambda: sample_token(row, rng), None) if row[x] > 0.2)"),
    "fails for K = 0": ("your drafter fails for tokens = [0], K = 0: ValueError", ROWS, "np.stack(rows)"),
    "asserts": ("your drafter fails ... assert len(text) > 3", KEEP, f"{KEEP}\n            assert len(text) > 3"),
}.items()}  # fmt: skip
WRONG |= {"the class": (Drafter, ("not its class",)),
          "a function": (lambda tokens, K, rng: None, ("a method propose(tokens, K, rng)",))}  # fmt: skip
