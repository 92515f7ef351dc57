"""Rounding or a bug? How much a row of logits changes with the number of rows that are computed with it.

Greedy text with a draft should equal greedy text without. In this library the two are bitwise identical. Other engines
compute a row alone with different kernels than among K + 1 rows, and these add its terms in a different order; where
two logits are nearly equal, the text then changes. A bug has the same symptom: positions, masks or caches that are
wrong for blocks of several tokens. Two numbers tell rounding from a bug:

    width_audit       the distance of a row among m rows from the same row alone, in ulps of the dtype
    first_difference  the distance between the two tokens' logits where two greedy texts first differ

Rounding changes a row by a few ulps; a bug, in float32, by 100,000 times as many. In bfloat16 a small bug can hide
below the rounding. Then repeat the test in float32, where rounding shrinks and a bug does not.
"""

from dataclasses import dataclass

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..logits.probs import Sampling
from ..sampler import SpeculativeSampler

MOST_UNITS = {"float32": 64, "float16": 12, "bfloat16": 12}  # in ulps of the dtype; a larger change is not rounding
BITS = {"float32": 24, "float16": 11, "bfloat16": 8}
WIDTHS = tuple(range(2, 10))
ROUNDING = "rounding"


@dataclass(frozen=True)
class Width:
    """The changes when m rows are computed together."""

    m: int
    largest: float  # the largest difference of a logit from that of the row alone
    by_row: list  # [m]: the same for row 0, 1, ..., m - 1


@dataclass(frozen=True)
class Audit:
    """The result of `width_audit`."""

    widths: list  # a `Width` for each number of rows
    dtype: str  # "float32", "float16" or "bfloat16": that of the values, even if an adapter has converted them
    unit: float  # one ulp: the spacing of the dtype at the largest logit
    taken_back: float  # the largest difference of a row alone, after later tokens were rolled back

    @property
    def largest(self):
        return max(width.largest for width in self.widths)

    @property
    def units(self):
        return self.largest / self.unit


@dataclass(frozen=True)
class Difference:
    """The first position at which two greedy texts differ."""

    position: int  # among the new tokens
    alone: int  # the token without a draft ...
    drafted: int  # ... and with one
    margins: tuple  # how far apart their logits are, without and with a draft
    row: float  # the largest difference between the two rows of logits


class Recording:
    """A model that keeps the last row it returned for each text. Rows computed later, at other widths, differ."""

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx, self.rows = model, model.n_vocab, model.n_ctx, {}

    def __call__(self, tokens, n_last=1):
        logits = self.model(tokens, n_last=n_last)
        for i, row in enumerate(np.array(logits)):
            self.rows[tuple(tokens[: len(tokens) - n_last + i + 1])] = row
        return logits


def dtype_of(rows):
    """The dtype in which numbers in float32 were computed; if it is a shorter one, their low bits are 0."""
    rows = np.ascontiguousarray(rows[np.isfinite(rows)], np.float32)
    if not (rows.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if (rows.astype(np.float16) == rows).all() else "float32"


def unit_of(rows, dtype):
    """The spacing of a dtype at the largest number."""
    largest = abs(rows[np.isfinite(rows)]).max(initial=np.finfo(np.float32).tiny)
    return float(2.0 ** (np.floor(np.log2(largest)) - BITS[dtype] + 1))


def gaps(a, b):
    """The largest difference in each row; two equal infinities do not differ."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0, abs(a - b)).max(axis=-1)


def width_audit(model, tokens, *, widths=WIDTHS, n_places=24):
    """Compare each row among m with the same row from generation token by token.

    Both ways use the model as samplers do. Alone, the text grows by one token per call. Together, m - 1 draft tokens
    follow the text, in calls that share a cache, if there is one.

    Parameters
    ----------
    model : LanguageModel
    tokens : sequence of int
        A text, of at least n_places + max(widths) - 1 tokens.
    widths : sequence of int
        The numbers of rows m.
    n_places : int
        The number of prefixes at which rows are compared, spread over the text.

    Returns
    -------
    Audit
    """
    tokens, last = list(tokens), len(tokens) - max(widths) + 1
    if last < n_places:
        raise ValueError(
            f"expected at least {n_places + max(widths) - 1} tokens for {n_places} places and {max(widths)} rows, got "
            f"{len(tokens)}: give a longer text or fewer places"
        )
    places = sorted({round(n) for n in np.linspace(last / n_places, last, n_places)})
    alone = {n: np.array(model(tokens[:n], n_last=1))[0] for n in range(places[0], len(tokens) + 1)}
    found, taken_back = [], 0.0
    for n in reversed(places):  # the tokens after it were added one by one, and are rejected
        taken_back = max(taken_back, float(gaps(np.array(model(tokens[:n], n_last=1)), alone[n][None])[0]))
    for m in widths:
        by_row = np.zeros(m)
        for n in places:
            model(tokens[:n], n_last=1)
            rows, wanted = np.array(model(tokens[: n + m - 1], n_last=m)), np.array([alone[n + i] for i in range(m)])
            by_row = np.maximum(by_row, gaps(rows, wanted))
        found.append(Width(m, float(by_row.max()), by_row.tolist()))
    every = np.array(list(alone.values()))
    dtype = dtype_of(every)
    return Audit(found, dtype, unit_of(every, dtype), taken_back)


def first_difference(target, drafter, prompt, n_tokens, K):
    """The first `Difference` of the greedy texts without and with a draft; None if they are equal.

    The margins come from the rows that each of the two runs used.
    """
    alone, drafted = Recording(target), Recording(target)
    greedy = Sampling(temperature=0)
    texts = [
        AutoregressiveSampler(alone, sampling=greedy).generate(prompt, n_tokens, 0).tokens.tolist(),
        SpeculativeSampler(drafted, drafter, K=K, sampling=greedy).generate(prompt, n_tokens, 0).tokens.tolist(),
    ]
    i = next((i for i, (a, b) in enumerate(zip(*texts)) if a != b), None)
    if i is None:
        return None
    before, (a, b) = (*map(int, prompt), *texts[0][:i]), (texts[0][i], texts[1][i])
    rows = [model.rows[before] for model in (alone, drafted)]
    margins = float(rows[0][a] - rows[0][b]), float(rows[1][b] - rows[1][a])
    return Difference(i, a, b, margins, float(gaps(*rows)))


def verdict(audit, difference=None):
    """Rounding or a bug, in one sentence."""
    units = f"{audit.largest:.2g}, {audit.units:,.3g} unit{'s' * (audit.units != 1)} of {audit.dtype}"
    if audit.largest > 0 and audit.units >= MOST_UNITS[audit.dtype]:
        return f"rows change by up to {units}: NOT rounding, a bug; {where_it_is(audit)}"
    if difference and min(difference.margins) > 2 * max(audit.largest, difference.row):
        return (
            f"rows change by up to {units}, but the two tokens were {min(difference.margins):.2g} apart: NOT rounding; "
            "the text differs for a reason other than these logits"
        )
    if difference and difference.row > MOST_UNITS[audit.dtype] * audit.unit:
        return (
            f"rows change by up to {units} in short blocks, but by {difference.row:.2g} where the texts differ: NOT "
            "rounding; something grows from call to call, such as a cache that is not cut after a rejection"
        )
    if audit.largest == 0:
        return "bitwise identical: a row does not depend on the rows computed with it"
    if audit.dtype == "float32":
        return f"rows change by up to {units}: {ROUNDING}"
    return (
        f"rows change by up to {units}: as {ROUNDING} would, but a small bug can hide below it; repeat in float32: "
        "rounding shrinks, a bug does not"
    )


def where_it_is(audit):
    """The likely cause, inferred from which rows of a block are wrong and whether a row alone is."""
    limit = MOST_UNITS[audit.dtype] * audit.unit
    wrong = next(width for width in audit.widths if width.largest >= limit)
    if audit.taken_back >= limit:
        return "a row alone is wrong as well after a rollback: the cache keeps rejected tokens"
    n_right = next(i for i, row in enumerate(audit.widths[-1].by_row) if row >= limit)
    if n_right:
        rows = "row 0 is right" if n_right == 1 else f"rows 0 to {n_right - 1} are right"
        return f"{rows}, the others not: the rows of a block do not see each other, or their order is wrong"
    return f"all rows of a block are wrong, from m = {wrong.m} on: their positions, or what they see of the text"
