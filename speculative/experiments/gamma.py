"""The table of draft lengths: speedup in time and in target calls for K = 1, 2, ..., and what one alpha and one c say.

Theory has two numbers. alpha, the probability that a guess is accepted, gives the tokens per call; c, the cost of a
guess over that of a plain step, gives the time: a round of k guesses takes 1 + c k plain steps. Here c is all that a
guess costs, to draft and to check: where a check is free, as in the paper, it is the draft's alone.
Sources: the table of LMFlow (arXiv:2306.12420, its speculative_inference example), in form; arXiv:2211.17192, equation
(1) and theorem 3.8.
Next: alpha.py
"""

import math

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..theory import expected_time, expected_tokens
from .clock import at_once, gain_of, race, total
from .repeated import repetition


def gamma_table(
    target, drafter, prompts, n_tokens, *, sampling, lengths=tuple(range(1, 11)), seed=0, progress=iter, keep=at_once
):
    """What each draft length gives, and the theory with one alpha and one c beside it, as a dict.

    Parameters
    ----------
    target : LanguageModel
    drafter : Drafter
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The target's.
    lengths : sequence of int

    Returns
    -------
    dict
        alpha, c: fitted to all rows; c_draft: the part of c that is drafting, measured; repetition: the mean
        `repetition` of the target's own texts; rows, for each K: speedup, low, high; tokens_per_call, which is the
        speedup in target calls; alpha and c, as this row alone implies them; theory_tokens_per_call, theory_speedup.
    """
    samplers = {K: SpeculativeSampler(target, drafter, K=K, sampling=sampling) for K in lengths}
    samplers["alone"] = AutoregressiveSampler(target, sampling=sampling)
    runs = race(samplers, prompts, n_tokens, seed=seed, progress=progress, keep=keep)
    alone, everything = runs["alone"], total([run for K in lengths for run in runs[K]])
    if not everything.drafted:
        raise ValueError(
            "no guess was made in these texts, so there is no alpha and no c to fit: take longer texts, or a drafter "
            "that guesses in them"
        )
    totals, gains = {K: total(runs[K]) for K in lengths}, {K: gain_of(alone, runs[K]) for K in lengths}
    drafted_per_call = [totals[K].drafted / totals[K].target_calls for K in lengths]
    tokens_per_call = [totals[K].tokens_per_call for K in lengths]
    alpha, c = fit(lengths, tokens_per_call, [gains[K]["speedup"] for K in lengths], n_tokens, drafted_per_call)
    rows = []
    for K, made, drafted in zip(lengths, tokens_per_call, drafted_per_call):
        rows.append({
            "K": K, **gains[K], "tokens_per_call": made,
            "alpha": implied_alpha(K, made, n_tokens),
            "c": implied_c(drafted, made, gains[K]["speedup"]),
            "theory_tokens_per_call": theory(alpha, K, n_tokens),
            "theory_speedup": theory(alpha, K, n_tokens, c),
        })  # fmt: skip
    step = total(alone).seconds / (n_tokens * len(prompts))
    return {
        "alpha": alpha, "c": c,
        "c_draft": everything.draft_seconds / everything.drafted / step,
        "repetition": float(np.mean([repetition(run.tokens) for run in alone])),
        "rows": rows,
    }  # fmt: skip


def theory(alpha, K, n_tokens=math.inf, c=0.0):
    """The speedup over a text of n_tokens for one alpha and one c; without c, the tokens per call.

    The last rounds of a text draft less, to end where it ends: of 64 tokens they cost some per cent.

    >>> round(theory(0.8, 4), 2), round(theory(0.8, 4, 64), 2), round(theory(0.8, 4, c=0.1), 2)
    (3.36, 3.28, 2.4)
    """
    if n_tokens == math.inf:
        return expected_tokens(alpha, K) / (1 + c * K)
    return n_tokens / expected_time([alpha] * n_tokens, K, c)


def implied_c(drafted_per_call, tokens_per_call, speedup):
    """The c of one row: a call with its guesses took tokens_per_call / speedup plain steps, and that is 1 + c k."""
    return (tokens_per_call / speedup - 1) / drafted_per_call if drafted_per_call else None


def implied_alpha(K, tokens_per_call, n_tokens=math.inf):
    """The alpha with which K guesses make this many tokens per call: `theory` grows with alpha, so halve the interval.

    >>> round(implied_alpha(4, 3.3616), 6)
    0.8
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if theory(middle, K, n_tokens) < tokens_per_call else (low, middle)
    return (low + high) / 2


def fit(lengths, tokens_per_call, speedups, n_tokens=math.inf, drafted_per_call=None):
    """(alpha, c) that explain all rows best, by least squares: alpha the tokens per call, c the time of a call.

    Parameters
    ----------
    lengths : sequence of int
        The K of the rows.
    tokens_per_call, speedups : sequences of float
    n_tokens : int
        The length of the texts.
    drafted_per_call : sequence of float, optional
        A little less than K where a text ends; K by default.

    Examples
    --------
    LMFlow's ten rows (gpt2-xl with gpt2, greedy, 512 tokens):

    >>> calls = 1.96, 2.89, 3.77, 4.63, 5.44, 6.23, 6.94, 7.64, 8.33, 9.00
    >>> times = 1.75, 2.29, 2.71, 3.06, 3.35, 3.65, 3.82, 3.96, 4.05, 4.14
    >>> alpha, c = fit(range(1, 11), calls, times)
    >>> round(alpha, 3), round(c, 3)
    (0.959, 0.119)
    """

    def error(alpha):
        return sum((theory(alpha, K, n_tokens) - made) ** 2 for K, made in zip(lengths, tokens_per_call))

    guesses = [implied_alpha(K, made, n_tokens) for K, made in zip(lengths, tokens_per_call)]
    low, high = min(guesses), max(guesses)  # in between every row's error changes its sign once
    for _ in range(12):  # a net of 5, then the two intervals around its best point
        net = np.linspace(low, high, 5)
        best = int(np.argmin([error(alpha) for alpha in net]))
        low, high = net[max(best - 1, 0)], net[min(best + 1, 4)]
    k = np.array(lengths if drafted_per_call is None else drafted_per_call, dtype=float)
    steps = np.array(tokens_per_call) / np.array(speedups)  # of a call, in plain steps: 1 + c k
    return float((low + high) / 2), float((k * (steps - 1)).sum() / (k * k).sum())
