"""A race: the samplers take turns on one prompt after the other, timed. Every table of times comes from a race.

The clock starts after the prompt has been processed and a few warm-up tokens generated. Prefill is timed separately if
the models whose caches must be emptied first are passed in. Since the samplers take turns on each prompt, a machine
that slows down slows all of them. intervals.py says how far the prompts can be trusted.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from time import perf_counter

import numpy as np

from ..generation import collect
from ..models.by_paths import Wrapper
from .intervals import ratio

N_WARM = 4  # tokens generated before the clock starts
N_LAPS = 5  # times that all texts are generated, if several are generated at once


@dataclass(frozen=True)
class Run:
    """One generation and its time, in plain numbers."""

    seconds: float  # without prefill
    draft_seconds: float  # the part of `seconds` spent drafting
    tokens: list  # the new tokens
    lengths: list  # for each target call, the number of new tokens
    drafted: int
    accepted: int
    rejected: int  # rounds that end in a correction
    prefill_seconds: float = 0.0  # the extra time of the first call with empty caches; 0 if none were emptied

    @property
    def target_calls(self):
        return len(self.lengths)


def at_once(name, measure):
    """A `keep` that stores nothing."""
    return measure()


def under(prefix, keep):
    """A `keep` for an experiment inside a larger one: it puts a prefix before the names."""
    return lambda name, measure: keep(f"{prefix}, {name}", measure)


def race(samplers, prompts, n_tokens, *, seed=0, keep=at_once, caches=()):
    """Run each sampler (dict name -> Sampler) on each prompt: dict name -> list of Run, one for each prompt.

    `caches` are all models whose prefill is to be timed; a model with a cache has a method `reset`.
    """

    def run(name, i):
        sampler, prompt = samplers[name], prompts[i]
        for model in caches:
            Wrapper(model).reset()
        warm = collect(prompt, sampler.rounds(prompt, min(n_tokens, N_WARM), seed + i))  # fills the caches
        rounds = sampler.rounds(prompt, n_tokens, seed + i)
        started = perf_counter()
        generation = collect(prompt, rounds)
        seconds = perf_counter() - started
        with_prefill, without = (sum(each.rounds[0].seconds.values()) for each in (warm, generation))
        prefill = max(0.0, with_prefill - without) if caches else 0.0
        tokens, draft_seconds = generation.tokens.tolist(), generation.stats.seconds["draft"]
        return run_of(generation.rounds, tokens, seconds, draft_seconds, prefill)

    return in_turn([*samplers], run, len(prompts), "prompt", keep)


def race_together(generate, n_texts, *, keep=at_once):
    """Let each function (dict name -> function) generate all texts N_LAPS times, in turn: dict name -> list of Run.

    A function yields (i, Generation) as the texts end. The times include everything, such as the prompts and idle lanes
    at the end. Drafting is not timed separately, because a pass serves several texts.
    """

    def run(name, i):
        started = perf_counter()
        ended = dict(generate[name]())
        seconds = perf_counter() - started
        texts = [ended[number] for number in range(n_texts)]
        tokens, rounds = [text.tokens.tolist() for text in texts], [r for text in texts for r in text.rounds]
        return run_of(rounds, tokens, seconds, draft_seconds=0.0)

    runs = in_turn([*generate], run, N_LAPS, "lap", keep)
    return {name: [replace(run, tokens=[*chain(*run.tokens)]) for run in of_name] for name, of_name in runs.items()}


def in_turn(names, run, n_laps, kind, keep):
    """dict name -> list of Run, one for each lap: run(name, i) in lap i, which is a part. Names take turns to start."""

    def lap(i):
        first = i % len(names)
        runs = {name: run(name, i) for name in names[first:] + names[:first]}
        return [asdict(runs[name]) for name in names]

    laps = [keep(f"{kind} {i + 1}", partial(lap, i)) for i in range(n_laps)]
    return {name: [Run(**runs[number]) for runs in laps] for number, name in enumerate(names)}


def run_of(rounds, tokens, seconds, draft_seconds, prefill_seconds=0.0):
    """The `Run` of these rounds."""
    stats, lengths = collect([], rounds).stats, [len(r.tokens) for r in rounds]
    counts = stats.drafted, stats.accepted, stats.rejected
    return Run(seconds, draft_seconds, tokens, lengths, *counts, prefill_seconds)


def total(runs):
    """The sum of the runs, as one Run."""
    values = {name: [getattr(run, name) for run in runs] for name in Run.__dataclass_fields__}
    joined = {name: list(chain(*values.pop(name))) for name in ("tokens", "lengths")}
    return Run(**joined, **{name: sum(numbers) for name, numbers in values.items()})


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


def repetition(tokens, n=4):
    """The share of n-grams that occurred earlier in the text: 1 - distinct / all; 0.0 for fewer than n tokens.

    Greedy text of small models repeats itself, and repetition is easy to draft.
    Source: seq-rep-n of Welleck et al., arXiv:1908.04319, section 4.

    >>> round(repetition([1, 2, 3, 4, 5, 1, 2, 3, 4]), 3)  # of six 4-grams the last occurred before
    0.167
    """
    ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0
