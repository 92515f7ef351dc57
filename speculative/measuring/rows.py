"""A row of a table of measurements: two lists of `Run`s on the same prompts, by the target alone and with a draft."""

from itertools import accumulate

import numpy as np

from ..theory import expected_tokens, speedup
from .intervals import share
from .runs import compared, gain_of, repetition, total


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
