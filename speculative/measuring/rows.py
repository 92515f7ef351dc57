"""The rows of a table of measurements, from races of the target alone against settings with a draft."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import shorten

import numpy as np

from ..theory import expected_tokens, speedup
from .intervals import share
from .runs import compared, gain_of, repetition, total


@dataclass(frozen=True)
class Raced:
    """A setting after its race, with the runs of the target alone on the same prompts."""

    about: dict  # the first columns: "setting" (dict option -> text), "target", "draft", "costs"
    exactness: str
    is_one_text: bool  # whether the texts should be those of the target alone
    K: int | None  # the length of each draft, if the drafts are chains of one length
    n_tokens: int
    prompts: list  # of (id, category, text)
    alone: list  # of Run: one for each prompt, or for each lap over all of them
    runs: list
    decode: Callable
    gaps: Sequence = ()  # of another engine: how far apart two logits are where a greedy text is not the target's own
    is_together: bool = False  # whether the texts were generated together, so that a run is a lap


def rows_of(raced, by="", best=""):
    """The rows (dicts) of a list of `Raced`.

    by="prompt" or "category" adds a row for each of these; best="K" keeps the fastest of the rows that differ in K.
    """
    rows = [
        row_of(each, numbers, name if by else "", by == "prompt")
        for each in raced
        for name, numbers in parts_of(each, by)
    ]
    if not best:
        return rows
    fastest = {}
    for row in rows:
        key = str((row["by"], {**row["setting"], best: ""}))
        fastest[key] = max(fastest.get(key, row), row, key=lambda row: row["speedup"])
    return [*fastest.values()]


def parts_of(raced, by):
    """[(name, numbers of the runs)] of each prompt or category, if requested, and of all."""
    everything = ("all", [*range(len(raced.runs))])
    if not by or raced.is_together:
        return [everything]
    starts = [f"{number} {shorten(text, 30, placeholder='...')}" for number, _, text in raced.prompts]
    names = [category or "(none)" for _, category, _ in raced.prompts] if by == "category" else starts
    parts = {name: [i for i, other in enumerate(names) if other == name] for name in names}
    return [*parts.items(), everything]


def row_of(raced, numbers, by, has_texts):
    """The row of a setting over some of the runs."""
    alone, runs = ([some[n] for n in numbers] for some in (raced.alone, raced.runs))
    row = {**raced.about, "by": by, **numbers_of(alone, runs)}
    row |= expected(row, raced.K if raced.K and drafts_K_tokens(runs, raced.K, raced.n_tokens) else None)
    row["exactness"] = raced.exactness
    row |= {"c": None} if raced.is_together else {}  # because a pass serves several texts
    row["is_one_text"] = raced.is_one_text
    row |= {"gap": max(raced.gaps)} if raced.gaps else {}
    if has_texts and len(numbers) == 1:
        row["texts"] = [raced.decode(run.tokens) for run in (alone[0], runs[0])]
    return row


def numbers_of(alone, runs):
    """A dict of plain numbers: `compared`, the acceptance rate alpha, the cost coefficient c, times and counts."""
    before, after = total(alone), total(runs)
    accepted, rejected = np.array([(run.accepted, run.rejected) for run in runs]).T
    step, alpha = before.seconds / len(before.tokens), share(accepted, accepted + rejected, counted=True)
    return {
        **compared(alone, runs), "with_prefill": gain_of(alone, runs, prefill=True)["speedup"],
        **dict(zip(("alpha", "alpha_low", "alpha_high"), alpha)),
        "c": after.draft_seconds / after.drafted / step if after.drafted else None,
        "seconds": after.seconds, "alone_seconds": before.seconds,
        "tokens_per_second": len(after.tokens) / after.seconds, "alone_tokens_per_second": 1 / step,
        "n_tokens": len(after.tokens), "target_calls": after.target_calls,
        "drafted": after.drafted, "accepted": after.accepted, "rejected": after.rejected,
        "repetition": sum(repetition(run.tokens) for run in alone) / len(alone),
    }  # fmt: skip


def expected(row, K):
    """The speedup and the tokens per call that follow from a row's alpha and c for drafts of K tokens; None without K.

    The formulas are those of arXiv:2211.17192 (theory/expected.py), where verification takes an autoregressive step.
    """
    if row["alpha"] is None or not K:
        return {"expected_speedup": None, "expected_tokens_per_call": None}
    return {
        "expected_speedup": speedup(row["alpha"], K, row["c"]),
        "expected_tokens_per_call": expected_tokens(row["alpha"], K),
    }


def drafts_K_tokens(runs, K, n_tokens):
    """Whether every draft is a chain of K tokens, or at the end of the text of as many as can be accepted."""
    starts = [start for run in runs for start in accumulate([0, *run.lengths[:-1]])]  # of each round, in its text
    longest = [min(K, n_tokens - start - 1) for start in starts]
    return sum(longest) == sum(run.drafted for run in runs)
