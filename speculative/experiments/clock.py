"""Samplers in turn on one prompt after the other, with a clock: what every table of times is made of.

Times are those of texts whose prompts are in all caches already, behind a few tokens that do not count. Samplers take
turns on each prompt, so that a machine that slows down slows all of them. An interval comes from drawing the prompts
anew (a bootstrap of 1,000 draws, 95 %): it covers the texts and the machine's moods, as far as they differ from prompt
to prompt.
Next: assisted.py
"""

from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter

import numpy as np

from ..interfaces import Sampler, collect
from ..rng import Gumbel

N_WARM = 4  # tokens before the clock starts


@dataclass(frozen=True)
class Run:
    """One generation and its time, in plain numbers."""

    seconds: float
    draft_seconds: float  # of these
    tokens: list  # the new ones
    target_calls: int
    drafted: int
    accepted: int
    rejected: int  # rounds that end in a correction

    @property
    def tokens_per_call(self):
        return len(self.tokens) / self.target_calls


@dataclass(frozen=True)
class SharedNoise:
    """A sampler that makes Gumbel(seed) of its seed: with the verifier exact_match, one seed gives one text."""

    sampler: Sampler

    def rounds(self, prompt, n_tokens, seed):
        return self.sampler.rounds(prompt, n_tokens, Gumbel(seed))

    def generate(self, prompt, n_tokens, seed):
        return collect(prompt, self.rounds(prompt, n_tokens, seed))


def at_once(name, measure):
    """The `keep` of an experiment that keeps nothing."""
    return measure()


def under(prefix, keep):
    """The `keep` of an experiment that is a part of another: with longer names."""
    return lambda name, measure: keep(f"{prefix}, {name}", measure)


def race(samplers, prompts, n_tokens, *, seed=0, progress=iter, keep=at_once):
    """Run each sampler on each prompt.

    Parameters
    ----------
    samplers : dict name -> Sampler
    prompts : list of sequences of int
    n_tokens : int
        To generate for each prompt.
    seed : int
        Of the first prompt's random numbers; the next has the next.
    progress : callable
        Put around the prompts, such as tqdm.
    keep : callable
        See __init__.py; here a part is a prompt.

    Returns
    -------
    dict name -> list of Run, one for each prompt
    """
    results = {name: [] for name in samplers}
    for i, prompt in enumerate(progress(prompts)):
        runs = keep(f"prompt {i + 1}", partial(lap, samplers, prompt, n_tokens, seed + i, i % len(samplers)))
        for name, run in zip(samplers, runs):
            results[name].append(Run(**run))
    return results


def lap(samplers, prompt, n_tokens, seed, first):
    """Each sampler on one prompt, the one with number `first` first: the runs as dicts, in the samplers' order."""
    names, runs = list(samplers), {}
    for name in names[first:] + names[:first]:
        samplers[name].generate(prompt, min(n_tokens, N_WARM), seed)  # the prompt into the caches, all code once
        rounds = samplers[name].rounds(prompt, n_tokens, seed)
        started = perf_counter()
        generation = collect(prompt, rounds)
        seconds, stats = perf_counter() - started, generation.stats
        runs[name] = Run(
            seconds, stats.seconds["draft"], generation.tokens.tolist(), stats.target_calls, stats.drafted,
            stats.accepted, stats.rejected,
        )  # fmt: skip
    return [asdict(runs[name]) for name in names]


def total(runs):
    """All runs as one."""
    sums = {name: sum(getattr(run, name) for run in runs) for name in Run.__dataclass_fields__ if name != "tokens"}
    return Run(tokens=[token for run in runs for token in run.tokens], **sums)


def ratio(above, below, n_draws=1000):
    """(ratio, low, high) of the sums of two arrays [n_prompts], and its interval; None where there is nothing below."""
    drawn = np.random.default_rng(0).integers(len(above), size=(n_draws, len(above)))
    above_sums, below_sums = above[drawn].sum(axis=1), below[drawn].sum(axis=1)
    if not below.sum():
        return None, None, None
    ratios = above_sums[below_sums > 0] / below_sums[below_sums > 0]
    return (float(above.sum() / below.sum()), *np.quantile(ratios, [0.025, 0.975]).tolist())


def gain(plain, other, n_draws=1000):
    """(speedup, low, high) of the seconds [n_prompts] of two samplers: the ratio of their sums, and its interval.

    >>> gain(np.array([3.0, 3.0]), np.array([2.0, 2.0]))
    (1.5, 1.5, 1.5)
    """
    return ratio(plain, other, n_draws)


def gain_of(plain, other):
    """The `gain` of two lists of Run as a dict: speedup, low, high."""
    seconds = (np.array([run.seconds for run in runs]) for runs in (plain, other))
    return dict(zip(("speedup", "low", "high"), gain(*seconds)))
