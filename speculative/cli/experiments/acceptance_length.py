"""Tokens per call and speedup by the definitions of Spec-Bench and SPEED-Bench, and Spec-Bench's file of answers.

Benchmarks give the same names to different averages. Those here are all computed from one list for each question: how
many tokens each target call brought, correction or bonus included. Without a draft every call brings one.
Sources: Spec-Bench (Xia et al., arXiv:2401.07851), evaluation/eval.py for the answers and evaluation/speed.py for its
metrics; SPEED-Bench (arXiv:2604.09557) for the rates, which are in Joint_Acceptance_Rate and the like there.
"""

from collections import Counter

import numpy as np


def acceptance_lengths(lengths):
    """What SPEED-Bench and Spec-Bench report of acceptance.

    Parameters
    ----------
    lengths : list of list of int
        For each question, the number of tokens that each target call brought.

    Returns
    -------
    dict
        mean_accepted_tokens: of all calls (Spec-Bench; tokens per call elsewhere here); average_AL: the mean of the
        questions' own means (SPEED-Bench); histogram: {length: calls}; joint: {k: P(length >= k)}; conditional:
        {k: joint[k] / joint[k - 1]}, for k from 2 on.

    Examples
    --------
    >>> found = acceptance_lengths([[3, 1], [2, 2, 2, 2]])
    >>> round(found["mean_accepted_tokens"], 2), found["average_AL"], found["histogram"]
    (2.0, 2.0, {1: 1, 2: 4, 3: 1})
    >>> [round(share, 2) for share in found["joint"].values()], round(found["conditional"][3], 2)
    ([0.83, 0.17], 0.2)
    """
    calls = [length for some in lengths for length in some]
    joint = {k: sum(length >= k for length in calls) / len(calls) for k in range(1, max(calls) + 1)}
    return {
        "mean_accepted_tokens": float(np.mean(calls)),
        "average_AL": float(np.mean([np.mean(some) for some in lengths])),
        "histogram": dict(sorted(Counter(calls).items())),
        "joint": {k: share for k, share in joint.items() if k > 1},
        "conditional": {k: share / joint[k - 1] for k, share in joint.items() if k > 1},
    }


def mean_speedup(alone, runs):
    """Spec-Bench's speedup: the mean over questions of the tokens per second, over that of the target alone.

    `gain_of` is the ratio of the total times, in which a slow question counts for more. Both lists are of `Run`, and
    prefill is in the times, as in Spec-Bench.
    """
    means = (np.mean([len(run.tokens) / (run.seconds + run.prefill_seconds) for run in some]) for some in (runs, alone))
    return float(next(means) / next(means))


def spec_bench_answer(question_id, category, text, lengths, seconds, model_id, time):
    """A line of Spec-Bench's file of answers, as a dict.

    Parameters
    ----------
    question_id, category : int or str, str
    text : str
        The new text.
    lengths : list of int
        The number of tokens that each target call brought; all are 1 without a draft.
    seconds : float
        Prefill included.
    model_id : str
    time : float
        Seconds since the epoch.
    """
    choice = {
        "index": 0,
        "turns": [text],
        "decoding_steps": [len(lengths)],
        "new_tokens": [sum(lengths)],
        "wall_time": [seconds],
        "accept_lengths": lengths,
    }
    about = {"question_id": question_id, "category": category, "model_id": model_id}
    return {**about, "answer_id": f"{model_id}, {question_id}", "choices": [choice], "tstamp": time}
