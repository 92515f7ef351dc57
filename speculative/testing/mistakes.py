"""Mistakes in the acceptance and in the replacement of one draft token, by their effect: for hints.py.

p is the target's distribution and q the draft's, over four tokens.
"""

import numpy as np

from ..probs import residual


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


def with_uniform(row, low, high):
    """The distribution of a draw from a row by its cumulative sum, with a uniform number from [low, high)."""
    edges = np.clip(np.concatenate([[0], np.cumsum(row)]), low, high)
    return np.diff(edges) / (high - low) if high > low else row


def new_number_each(row):
    """The distribution of a draw by the cumulative sum, with a new uniform number for each of its comparisons."""
    below = np.minimum(np.cumsum(row), 1)
    below[-1] = 1  # if none is found, the last
    return below * np.concatenate([[1], np.cumprod(1 - below)[:-1]])


NEW_NUMBERS = (
    "you draw a new uniform number for each step of the cumulative sum; a token is drawn with one number for all"
)
PROBABILITIES = "target_probs and draft.probs are probabilities already: apply no softmax, exp or temperature to them"
WRONG_ACCEPTANCE = [  # (acceptance probabilities of each draft token, the mistake)
    (lambda p, q: np.minimum(1, softmax(p) / softmax(q)), PROBABILITIES),
    (lambda p, q: np.minimum(1, softmax(p) / q), PROBABILITIES),
    (lambda p, q: np.minimum(1, np.exp(p - q)), PROBABILITIES),
    (lambda p, q: np.minimum(1, p / softmax(q)), PROBABILITIES),
    (
        lambda p, q: np.zeros(4),
        "you never accept a draft token; accept a draft token x with probability min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.minimum(1, (p / q) ** 2),
        "you accept with the square of the ratio, as two tests of one draft token do; accept with min(1, p / q), "
        "tested once",
    ),
    (
        lambda p, q: np.minimum(1, q / p),
        "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft",
    ),
    (
        lambda p, q: np.ones(4),
        "you accept every draft token, whatever the target says; accept a draft token x with probability min(1, p(x) "
        "/ q(x))",
    ),
    (
        lambda p, q: np.eye(4)[p.argmax()],
        "you accept only the target's most probable token; that is right for temperature 0 alone",
    ),
    (
        lambda p, q: p >= q,
        "you accept exactly if p(x) >= q(x); if p(x) is less, accept with probability p(x) / q(x)",
    ),
    (
        lambda p, q: 1 - np.minimum(1, p / q),
        "you accept where you should reject, and the other way round: accept if u < p / q",
    ),
    (
        lambda p, q: np.maximum(0, 1 - q / p),
        "you accept where you should reject, with the ratio upside down: accept with probability min(1, p / q)",
    ),
    (
        lambda p, q: np.where(p > q, 0, 1 - p / q),
        "you accept where you should reject, and the other way round: accept if u < p / q",
    ),
    (
        lambda p, q: p,
        "you accept a draft token x with the target's probability p(x) alone; divide by the draft's: min(1, p(x) / "
        "q(x))",
    ),
    (
        lambda p, q: q,
        "you accept a draft token x with the draft's probability q(x); it is min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.minimum(p, q),
        "you accept with probability min(p(x), q(x)), which is how often x is drafted and accepted; given that it is "
        "drafted, accept with min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.clip(p - q, 0, 1),
        "you accept with probability p(x) - q(x); it is the ratio min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.minimum(1, np.abs(p - q)),
        "you accept with probability |p(x) - q(x)|; it is the ratio min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: p / (p + q),
        "you accept with probability p / (p + q); it is min(1, p / q)",
    ),
    (
        lambda p, q: np.clip(np.log(p) - np.log(q), 0, 1),
        "you compare a uniform number with log p - log q; take its logarithm, too: log u < log p(x) - log q(x)",
    ),
]


def at_the_end(p, q, place):
    """The residual without normalisation, with the rest up to 1 added to the token at `place`."""
    row = np.maximum(p - q, 0)
    row[place] += 1 - row.sum()
    return row


NORMALISE = "your residual is not normalised: divide max(0, p - q) by its sum before you draw"
WRONG_RESIDUALS = [  # (weights of the replacement of a rejected x, r the target's next row; the mistake)
    (lambda p, q, x, r: p, "on a rejection you drew from the target; draw from max(0, p - q), normalised"),
    (lambda p, q, x, r: q, "on a rejection you drew from the draft; draw from max(0, p - q), normalised"),
    (
        lambda p, q, x, r: abs(p - q),
        "you drew from |p - q|; the residual keeps only where the target has more: max(0, p - q)",
    ),
    (
        lambda p, q, x, r: residual(q, p),
        "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft",
    ),
    (
        lambda p, q, x, r: np.eye(4)[(p - q).argmax()],
        "you took the most probable token of the residual or of the target; draw from max(0, p - q), normalised",
    ),
    (lambda p, q, x, r: np.eye(4)[x], "the rejected token is returned anyway; draw from max(0, p - q), normalised"),
    (
        lambda p, q, x, r: p * (np.arange(4) != x),
        "you drew from the target without the rejected token, which is right for a one-hot draft alone; draw from "
        "max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: np.minimum(p, q),
        "you drew from min(p, q), what is accepted already; draw from what is missing, max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: np.ones(4),
        "on a rejection you drew from all tokens with equal probability; draw from max(0, p - q), normalised",
    ),
    (lambda p, q, x, r: at_the_end(p, q, 3), NORMALISE),
    (lambda p, q, x, r: at_the_end(p, q, 0), NORMALISE),
    (lambda p, q, x, r: new_number_each(residual(p, q)), NEW_NUMBERS),
    (lambda p, q, x, r: new_number_each(np.maximum(p - q, 0)), NEW_NUMBERS),
    (
        lambda p, q, x, r: residual(r, q),
        "the residual of draft token i is of row i of target and draft; yours takes the target's row after it, i + 1",
    ),
    (lambda p, q, x, r: r, "on a rejection you drew from the target's last row; draw from max(0, p - q) of row i"),
    (
        lambda p, q, x, r: p > q,
        "you drew with equal probability from all tokens with p > q; their weights are max(0, p - q)",
    ),
    (
        lambda p, q, x, r: p / q,
        "you drew from p / q; the residual is the difference max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: np.where(p > q, p, 0),
        "you drew from p where it is more than q; the residual is the difference max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: softmax(p),
        PROBABILITIES,
    ),
    (
        lambda p, q, x, r: np.exp(np.maximum(p - q, 0)),
        "you put a softmax over the residual; divide max(0, p - q) by its sum: these are probabilities, not logits",
    ),
    (
        lambda p, q, x, r: np.exp(p - q),
        "you put a softmax over p - q; the residual is max(0, p - q), divided by its sum",
    ),
]

KINDS = {
    "zeros in p": "right, but not where the target has a token of probability 0: such a token must never be returned",
    "zeros in q": "right, but not where the draft has tokens of probability 0: these come only from the residual",
    "one-hot q": "right, but not where the draft is certain (one-hot rows): accept x with p(x), else draw from the "
    "rest",
    "one-hot p": "right, but not where the target is certain (temperature 0, one-hot rows): the text is the greedy one",
    "one-hot p and q": "right, but not where target and draft are certain (temperature 0, one-hot rows)",
    "equal": "right, but not where target and draft are equal: every draft token is accepted then, and max(0, p - q) "
    "is 0 / 0",
    "tie": "right, but not where p(x) = q(x) for the draft token x: it is accepted then, with probability 1",
    "disjoint": "right, but not where target and draft have no token in common: nothing is accepted then",
}
