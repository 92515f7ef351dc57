"""The table of draft lengths: speedup in time and in target calls for K = 1, 2, ..., and a fit of one alpha and one c.

The theory has two parameters. alpha, the probability that a draft token is accepted, determines the tokens per call. c,
the cost of a draft token over that of an autoregressive step, determines the time: a round with k draft tokens takes
1 + c k steps. Here c is the whole cost of a draft token, to draft it and to verify it. In the paper verification is
free, and c is the cost of drafting alone.
Sources: the table of LMFlow (arXiv:2306.12420, its speculative_inference example), in form; arXiv:2211.17192, equation
(1) and theorem 3.8.
"""

import math

import numpy as np

from speculative.measuring.runs import against_alone, at_once, calls_of, gain_of, repetition, total
from speculative.sampler import SpeculativeSampler
from speculative.theory.expected import expected_time, expected_tokens


def gamma_table(target, drafter, prompts, n_tokens, *, sampling, lengths=tuple(range(1, 11)), seed=0, keep=at_once):
    """Measurements for each draft length K of `lengths`, next to the theory with one alpha and one c.

    Parameters not named here are those of every experiment, see __init__.py.

    Returns
    -------
    dict
        alpha, c: fitted to all rows; c_draft: the part of c that is drafting, measured; repetition: the mean
        `repetition` of the target's own texts; rows, for each K: speedup and tokens_per_call (the speedup in target
        calls); alpha and c as this row alone implies them; theory_tokens_per_call, theory_speedup.
    """
    samplers = {K: SpeculativeSampler(target, drafter, K=K, sampling=sampling) for K in lengths}
    alone, runs = against_alone(target, samplers, prompts, n_tokens, sampling=sampling, seed=seed, keep=keep)
    totals = [total(runs[K]) for K in lengths]
    everything, step = total(totals), total(alone).seconds / (n_tokens * len(prompts))
    if not everything.drafted:
        raise ValueError(
            "nothing was drafted in these texts, so there is no alpha and no c to fit: take longer texts, or another "
            "drafter"
        )
    drafted_per_call = [some.drafted / some.target_calls for some in totals]
    rows = [{"K": K, **gain_of(alone, runs[K]), **calls_of(runs[K])} for K in lengths]
    tokens_per_call, speedups = ([row[name] for row in rows] for name in ("tokens_per_call", "speedup"))
    alpha, c = fit(lengths, tokens_per_call, speedups, n_tokens, drafted_per_call)
    for row, K, drafted in zip(rows, lengths, drafted_per_call):
        row |= {
            "alpha": implied_alpha(K, row["tokens_per_call"], n_tokens),
            "c": (row["tokens_per_call"] / row["speedup"] - 1) / drafted if drafted else None,  # a call took 1 + c k
            "theory_tokens_per_call": theory(alpha, K, n_tokens),
            "theory_speedup": theory(alpha, K, n_tokens, c),
        }
    c_draft = everything.draft_seconds / everything.drafted / step
    mean_repetition = float(np.mean([repetition(run.tokens) for run in alone]))
    return {"alpha": alpha, "c": c, "c_draft": c_draft, "repetition": mean_repetition, "rows": rows}


def theory(alpha, K, n_tokens=math.inf, c=0.0):
    """The speedup over a text of n_tokens with one alpha and one c; without c, the tokens per call.

    The last rounds of a text draft fewer tokens, since the text ends there. For 64 tokens this costs a few per cent.

    >>> round(theory(0.8, 4), 2), round(theory(0.8, 4, 64), 2), round(theory(0.8, 4, c=0.1), 2)
    (3.36, 3.28, 2.4)
    """
    if n_tokens == math.inf:
        return expected_tokens(alpha, K) / (1 + c * K)
    return n_tokens / expected_time([alpha] * n_tokens, K, c)


def implied_alpha(K, tokens_per_call, n_tokens=math.inf):
    """The alpha for which K draft tokens yield this many tokens per call, by bisection: `theory` grows with alpha.

    >>> round(implied_alpha(4, 3.3616), 6)
    0.8
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if theory(middle, K, n_tokens) < tokens_per_call else (low, middle)
    return (low + high) / 2


def fit(lengths, tokens_per_call, speedups, n_tokens=math.inf, drafted_per_call=None):
    """(alpha, c) fitted to all rows by least squares: alpha to the tokens per call, c to the time of a call.

    Parameters
    ----------
    lengths : sequence of int
        The K of the rows.
    tokens_per_call, speedups : sequences of float
    n_tokens : int
        The length of the texts.
    drafted_per_call : sequence of float, optional
        A little less than K, since texts end; K by default.

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

    implied = [implied_alpha(K, made, n_tokens) for K, made in zip(lengths, tokens_per_call)]
    low, high = min(implied), max(implied)  # the best alpha is between them
    for _ in range(12):  # a grid of 5 points, then the two intervals around the best of them
        grid = np.linspace(low, high, 5)
        best = int(np.argmin([error(alpha) for alpha in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 4)]
    k = np.array(lengths if drafted_per_call is None else drafted_per_call, dtype=float)
    steps = np.array(tokens_per_call) / np.array(speedups)  # of a call, in autoregressive steps: 1 + c k
    return float((low + high) / 2), float((k * (steps - 1)).sum() / (k * k).sum())
