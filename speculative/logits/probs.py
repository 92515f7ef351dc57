"""From logits to probabilities to a token, and the two formulas of speculative sampling.

One function turns logits into probabilities, for target and draft alike: `Sampling`. Probabilities are float64 for
models of any precision. A token is drawn with one uniform number, by inverting the cumulative distribution.
p is the target's distribution and q the draft's.
"""

import math
import operator
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from ..interfaces import RandomSource, Tokens
from ..tree import texts_of_rows


@dataclass(frozen=True)
class Sampling:
    """A callable (logits, tokens, parents) -> probs that turns logits [n, n_vocab] into probs [n, n_vocab] float64.

    The steps, in this order: repetition penalty, logits processors, temperature, top-k, top-p, min-p. Each is applied
    to the renormalised result of the step before.

    The order matters, and so do ties. Hugging Face's `generate` uses the same order; vLLM applies min-p after the
    temperature and before top-k and top-p; llama.cpp applies top-k, top-p and min-p first and the temperature last.
    With the same settings these keep different tokens. Where top-k or top-p cuts between equal probabilities, this
    class keeps the lower token ids, and exactly top_k tokens; Hugging Face keeps every token that ties with the k-th.

    Parameters
    ----------
    temperature
        The logits are divided by it. 0 puts all probability on the largest logit (the command line's default).
    top_k
        Keep the k most probable tokens; 0 keeps all.
    top_p
        Keep the most probable tokens until their sum reaches top_p; the token that crosses it stays
        (arXiv:1904.09751, section 3.1).
    min_p
        Keep the tokens with at least min_p times the highest probability (arXiv:2407.01082).
    repetition_penalty
        Logits of tokens that occur earlier in the text are divided by it if positive and multiplied by it if negative
        (arXiv:1909.05858, section 4.1, sign-aware). Between 1e-100 and 1e100.
    processors
        Logits processors, applied one after the other: (logits [n_vocab], tokens) -> logits [n_vocab], where `tokens`
        are all tokens before the row: penalties, bans (look_back.py), a grammar (grammar.py), or any function. Each
        gets copies. A processor that would leave no token (all logits -inf) is skipped in that row. A Grammar is not
        skipped if earlier processors are the reason: a ValueError says that it should be the first.

    Penalties and processors see only the text on a row's own path (texts_of_rows in tree.py), without rejected tokens.

    Examples
    --------
    >>> Sampling()(np.log([[1.0, 3.0]])).round(6)
    array([[0.25, 0.75]])
    >>> Sampling(temperature=0)(np.log([[1.0, 3.0]]))
    array([[0., 1.]])
    >>> Sampling(top_p=0.6)(np.log([[4.0, 3.0, 2.0, 1.0]])).round(6)
    array([[0.571429, 0.428571, 0.      , 0.      ]])
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    processors: Sequence[Callable[[np.ndarray, list[int]], np.ndarray]] = ()

    def __post_init__(self):
        object.__setattr__(self, "processors", tuple(self.processors))
        check("a temperature of 0 or more", self.temperature, lambda value: value >= 0)
        check("a top_k of 1 or more, or 0 for all tokens", self.top_k, lambda value: operator.index(value) >= 0)
        check("a top_p above 0 and at most 1", self.top_p, lambda value: 0 < value <= 1)
        check("a min_p from 0 to 1", self.min_p, lambda value: 0 <= value <= 1)
        penalty = self.repetition_penalty
        check("a repetition_penalty above 0", penalty, lambda value: value > 0)
        check("a repetition_penalty from 1e-100 to 1e100", penalty, lambda value: abs(math.log10(value)) <= 100)

    def __repr__(self):
        """The fields that differ from the defaults."""
        given = (f"{f.name}={getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Sampling({', '.join(given)})"

    def __call__(
        self, logits: np.ndarray, tokens: Tokens | None = None, parents: Sequence[int] | np.ndarray = ()
    ) -> np.ndarray:
        """Row i of the logits [n, n_vocab] predicts the token after tokens[: len(tokens) - n + 1 + i].

        With `parents`, the last len(parents) tokens are a tree, and each node's row predicts the token after its path.
        ValueError if the largest logit of a row is NaN or infinite, or if penalties or processors get no tokens.
        """
        logits = np.asarray(self.adjusted(logits, tokens, parents), dtype=np.float64)
        rows, best = np.arange(len(logits)), np.argmax(logits, axis=-1)  # argmax finds a NaN if there is one
        largest = logits[rows, best]
        if not np.isfinite(largest).all():
            raise ValueError("expected finite logits, got NaN or infinity: are the model's weights complete?")
        if self.temperature == 0:
            probs = np.zeros(logits.shape)
            probs[rows, best] = 1
            return probs
        with np.errstate(over="ignore"):  # a tiny temperature sends all but the largest to -inf, as it should
            probs = np.exp((logits - largest[:, None]) / self.temperature)
        probs /= probs.sum(axis=-1, keepdims=True)
        return self.truncated(probs) if self.top_k or self.top_p < 1 or self.min_p > 0 else probs

    def adjusted(
        self, logits: np.ndarray, tokens: Tokens | None = None, parents: Sequence[int] | np.ndarray = ()
    ) -> np.ndarray:
        """The logits [n, n_vocab] after penalties and processors, in float64, or unchanged. They rank candidates."""
        if self.repetition_penalty == 1 and not self.processors:
            return logits
        logits = np.asarray(logits, dtype=np.float64)
        if tokens is None:
            name = "repetition penalty" if self.repetition_penalty != 1 else "logits processor"
            raise ValueError(f"a {name} looks at the tokens before each row: pass them, sampling(logits, tokens)")
        processors = list(self.processors)
        if self.repetition_penalty != 1:
            processors.insert(0, partial(penalised, self.repetition_penalty))
        texts = texts_of_rows(np.asarray(tokens).tolist(), len(logits), parents)
        return np.array([processed(row, text, processors) for row, text in zip(logits, texts)], dtype=np.float64)

    def truncated(self, probs):
        """probs [n, n_vocab] after top-k, top-p and min-p."""
        order = np.argsort(-probs, axis=-1, kind="stable")
        ranked = np.take_along_axis(probs, order, axis=-1)  # most probable first
        if self.top_k:
            ranked[:, self.top_k :] = 0
            ranked /= ranked.sum(axis=-1, keepdims=True)
        if self.top_p < 1:  # a token stays if the sum before it is below top_p, so the token that crosses top_p stays
            ranked[:, 1:][np.cumsum(ranked, axis=-1)[:, :-1] >= self.top_p] = 0
        ranked[ranked < self.min_p * ranked[:, :1]] = 0
        ranked /= ranked.sum(axis=-1, keepdims=True)
        kept = np.zeros(probs.shape)
        np.put_along_axis(kept, order, ranked, axis=-1)
        return kept


def processed(row, text, processors):
    """The logits `row` [n_vocab] float64 after the processors, one after the other; `text` are the tokens before it.

    A processor that would leave no token is skipped, unless it has `never_passed_over` and earlier processors are the
    reason: then it is a ValueError.
    """
    logits = row
    for processor in processors:
        changed = processor(logits.copy(), text.copy())
        if np.shape(changed) != logits.shape:
            raise ValueError(
                f"expected a logits processor to return logits of shape {logits.shape}, got {np.shape(changed)}"
            )
        if not np.isneginf(changed).all():
            logits = changed
        elif getattr(processor, "never_passed_over", False) and n_forbidden(logits) > n_forbidden(row):
            raise ValueError(f"{processor!r:.80} forbids all tokens that are left: put it first")
    return logits


def n_forbidden(logits):
    return np.isneginf(logits).sum()


def penalised(penalty, logits, tokens):
    """The logits [n_vocab] after a repetition penalty for these tokens."""
    logits, seen = logits.copy(), np.unique(np.array(tokens, dtype=np.int64))
    logits[seen] = np.where(logits[seen] > 0, logits[seen] / penalty, logits[seen] * penalty)
    return logits


def check(expected, value, is_right):
    """Raise ValueError unless the value is a finite number for which is_right(value) is true."""
    try:
        right = math.isfinite(value) and is_right(value)
    except (TypeError, OverflowError):  # not a number, not an integer, or an integer beyond all floats
        right = False
    if not right:
        raise ValueError(f"expected {expected}, got {value!r:.100}")


def inheriting(drafter, sampling):
    """The drafter itself, or a copy with this sampling if the drafter's sampling is None."""
    if getattr(drafter, "sampling", sampling) is None:
        drafter = copy(drafter)
        object.__setattr__(drafter, "sampling", sampling)  # it may be a frozen dataclass
    return drafter


def sample_token(probs: np.ndarray, rng: RandomSource) -> int:
    """A token id (int) drawn from probs [n_vocab] float64 with one uniform number, `rng.random()`.

    The cumulative sum may not end at exactly 1, so the uniform number is scaled by its last value. A token of
    probability 0 is never drawn. A source with its own method `draw` (rng.py) draws instead.
    """
    if hasattr(rng, "draw"):
        return rng.draw(probs)
    cdf = np.cumsum(probs)
    last = cdf.searchsorted(cdf[-1])  # last token of positive probability; guards against a random() rounded up to 1
    return int(min(cdf.searchsorted(rng.random() * cdf[-1], side="right"), last))


def sample_distinct(probs: np.ndarray, k: int, rng: RandomSource) -> tuple[np.ndarray, np.ndarray]:
    """Up to k different tokens, drawn from probs [n_vocab] one after the other: the siblings in a token tree.

    A source with its own method `draw_distinct`, such as `Gumbel`, draws instead, from the same distribution.

    Returns
    -------
    tokens : array [n] int64
        In the order in which they were drawn; n < k where fewer than k tokens have a positive probability.
    rows : array [n, n_vocab] float64
        The distribution of each token given the earlier ones: probs without them, renormalised.

    Examples
    --------
    >>> tokens, rows = sample_distinct(np.array([0.5, 0.25, 0.25, 0.0]), 4, np.random.default_rng(0))
    >>> tokens, rows.round(3)
    (array([1, 0, 2]), array([[0.5  , 0.25 , 0.25 , 0.   ],
           [0.667, 0.   , 0.333, 0.   ],
           [0.   , 0.   , 1.   , 0.   ]]))
    """
    ranked = rng.draw_distinct(probs, k) if hasattr(rng, "draw_distinct") else None
    k = k if ranked is None else len(ranked)
    tokens, rows = [], []
    left = probs  # becomes probs without the tokens drawn so far
    while len(tokens) < k and left.any():
        tokens.append(sample_token(left, rng) if ranked is None else ranked[len(tokens)])
        rows.append(left)
        left = np.where(np.arange(len(probs)) == tokens[-1], 0, left)
        left = left / left.sum() if left.any() else left
    return np.array(tokens, dtype=np.int64), np.reshape(rows, (len(tokens), len(probs)))


def acceptance_probability(p: Sequence[float] | np.ndarray, q: Sequence[float] | np.ndarray, token: int) -> float:
    """min(1, p(x) / q(x)) for a draft token x (arXiv:2211.17192, section 2.3); p, q [n_vocab], q(x) > 0.

    >>> acceptance_probability([0.5, 0.5], [0.25, 0.75], 1)
    0.6666666666666666
    """
    return min(1.0, float(p[token]) / float(q[token]))


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """norm(max(0, p - q)) [n_vocab]: the distribution of the correction (arXiv:2211.17192, section 2.3).

    If p - q is nowhere positive, then p = q and a rejection has probability 0; p itself is returned.

    >>> residual(np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.4, 0.4]))
    array([0.75, 0.25, 0.  ])
    """
    excess = np.maximum(p - q, 0)
    mass = excess.sum()
    return excess / mass if mass > 0 else p
