"""The numbers of an experiment: a row compares the runs of a setting with those of the target alone."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from textwrap import shorten

import numpy as np

from ..theory import expected_tokens, speedup
from ..tree import n_common
from .experiment import total
from .intervals import ratio, share


@dataclass(frozen=True)
class Result:
    """A setting after its experiment, with the runs of the target alone on the same prompts."""

    about: dict  # the first columns: "setting" (dict option -> text), "target", "draft", "costs"
    exactness: str
    is_one_text: bool  # whether the texts should be those of the target alone
    K: int | None  # the length of each draft, if the drafts are chains of one length
    n_tokens: int
    prompts: list  # of Prompt
    alone: list  # of Run: one for each prompt, or each of all prompts
    runs: list
    decode: Callable = str
    gap: tuple | None = None  # of another engine: the largest `gap_between` of two greedy texts
    is_together: bool = False  # whether the texts were generated together, so that each run is of all prompts


def gain_of(alone, runs, prefill=False):
    """The speedup, from two lists of Run, as a dict: speedup, low, high. `prefill` adds prefill to the times.

    Times are per token, as a text may end early.
    """

    def per_token(timed):
        return np.array([(run.seconds + prefill * run.prefill_seconds) / len(run.tokens) for run in timed])

    return dict(zip(("speedup", "low", "high"), ratio(per_token(alone), per_token(runs))))


def compared(alone, runs):
    """A dict: tokens_per_call, calls_low, calls_high; `gain_of`; n_texts, and same_texts, which equal the target's."""
    tokens, calls = np.array([(len(run.tokens), run.target_calls) for run in runs], dtype=float).T
    same = sum(a.tokens == b.tokens for a, b in zip(alone, runs))
    per_call = dict(zip(("tokens_per_call", "calls_low", "calls_high"), ratio(tokens, calls)))
    return {**per_call, **gain_of(alone, runs), "same_texts": same, "n_texts": len(runs)}


def numbers_of(alone, runs):
    """A dict of plain numbers: `compared`, the acceptance rate alpha, the cost coefficient c, times and counts."""
    before, after = total(alone), total(runs)
    accepted, rejected = np.array([(run.stats.accepted, run.stats.rejected) for run in runs]).T
    step, alpha = before.seconds / len(before.tokens), share(accepted, accepted + rejected, counted=True)
    counts = {name: getattr(after.stats, name) for name in ("target_calls", "drafted", "accepted", "rejected")}
    return {
        **compared(alone, runs), "with_prefill": gain_of(alone, runs, prefill=True)["speedup"],
        **dict(zip(("alpha", "alpha_low", "alpha_high"), alpha)),
        "c": after.draft_seconds / after.drafted / step if after.drafted else None,
        "seconds": after.seconds, "alone_seconds": before.seconds,
        "tokens_per_second": len(after.tokens) / after.seconds, "alone_tokens_per_second": 1 / step,
        "n_tokens": len(after.tokens), **counts,
        "repetition": sum(repetition(run.tokens) for run in alone) / len(alone),
    }  # fmt: skip


def row_of(result, numbers=None, by="", has_texts=False):
    """The row (dict) of a setting over all of its runs, or those with these numbers, which are called `by`."""
    numbers = range(len(result.runs)) if numbers is None else numbers
    alone, runs = ([all_runs[n] for n in numbers] for all_runs in (result.alone, result.runs))
    row = {**result.about, "by": by, **numbers_of(alone, runs)}
    row |= expected(row, result.K if result.K and drafts_K_tokens(runs, result.K, result.n_tokens) else None)
    row |= {"exactness": result.exactness, "is_one_text": result.is_one_text}
    row |= {"c": None} if result.is_together else {}  # because a pass serves several texts
    row |= {"gap": result.gap} if result.gap is not None else {}
    if has_texts:
        both = [run.tokens for run in (alone[0], runs[0])]
        row |= {"prompt": result.prompts[numbers[0]].text, "texts": [*map(result.decode, both)], "tokens": both}
    return row


def rows_of(results, by="", best=""):
    """The rows of several settings.

    by="prompt" or "category" adds a row for each of these; best="K" keeps the fastest of the rows that differ in K.
    """
    rows = [
        row_of(result, numbers, name if by else "", by == "prompt" and len(numbers) == 1)
        for result in results
        for name, numbers in parts_of(result, by)
    ]
    if not best:
        return rows
    fastest = {}
    for row in rows:
        key = str((row["by"], {**row["setting"], best: ""}))
        fastest[key] = max(fastest.get(key, row), row, key=lambda row: row["speedup"])
    return [*fastest.values()]


def parts_of(result, by):
    """[(name, numbers of the runs)] of each prompt or category, if requested, and of all."""
    everything = ("all", [*range(len(result.runs))])
    if not by or result.is_together:
        return [everything]
    starts = [f"{each.question_id} {shorten(each.text, 30, placeholder='...')}" for each in result.prompts]
    names = [each.category or "(none)" for each in result.prompts] if by == "category" else starts
    parts = {name: [i for i, other in enumerate(names) if other == name] for name in names}
    return [*parts.items(), everything]


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
    lengths = [[call[0] for call in run.calls] for run in runs]
    starts = [start for of_text in lengths for start in accumulate([0, *of_text[:-1]])]  # of each round, in its text
    longest = [min(K, n_tokens - start - 1) for start in starts]
    return sum(longest) == sum(run.drafted for run in runs)


def gap_between(ordinary, other, prompt, target, sampling):
    """(gap, ulps, dtype) where two greedy texts first differ: how far apart the logits of their tokens are; else None.

    The dtype is that in which the target computed them: float32, or bfloat16 or float16 if the low bits are 0. An ulp,
    the unit in the last place, is the dtype's spacing at the largest logit.
    """
    if ordinary == other:
        return None
    i = n_common(ordinary, other)
    text = [*prompt, *ordinary[:i]]
    logits = np.array(target(text), np.float32)
    finite = logits[np.isfinite(logits)]
    n_bits = next(n for n in (8, 11, 24) if (np.ldexp(np.frexp(finite)[0], n) % 1 == 0).all())
    ulp = 2.0 ** (np.frexp(abs(finite).max())[1] - n_bits)
    row = sampling.adjusted(logits, text)[0]
    gap = abs(float(row[ordinary[i]]) - float(row[other[i]]))
    return gap, gap / float(ulp), {8: "bfloat16", 11: "float16", 24: "float32"}[n_bits]


def repetition(tokens, n=4):
    """The share of n-grams that occurred earlier in the text: 1 - distinct / all; 0.0 for fewer than n tokens.

    Greedy text of small models repeats itself, and repetition is easy to draft.
    Source: seq-rep-n of Welleck et al., arXiv:1908.04319, section 4.

    >>> round(repetition([1, 2, 3, 4, 5, 1, 2, 3, 4]), 3)  # of six 4-grams the last occurred before
    0.167
    """
    ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0
