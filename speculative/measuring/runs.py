"""A race: the samplers take turns on one prompt after the other, timed. Every table of times comes from a race.

The clock starts after the prompt has been processed and a few warm-up tokens generated. Since the samplers take turns
on each prompt, a machine that slows down slows all of them. intervals.py says how far the prompts can be trusted.
"""

from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter

from ..interfaces import Sampler, collect
from ..rng import Gumbel

N_WARM = 4  # tokens generated before the clock starts


@dataclass(frozen=True)
class Run:
    """One generation and its time, in plain numbers."""

    seconds: float
    draft_seconds: float  # the part of them spent drafting
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
    """A sampler on common random numbers, Gumbel(seed): with the verifier exact_match, one seed gives one text."""

    sampler: Sampler

    def rounds(self, prompt, n_tokens, seed):
        return self.sampler.rounds(prompt, n_tokens, Gumbel(seed))

    def generate(self, prompt, n_tokens, seed):
        return collect(prompt, self.rounds(prompt, n_tokens, seed))


def at_once(name, measure):
    """A `keep` that stores nothing."""
    return measure()


def under(prefix, keep):
    """A `keep` for an experiment inside another: it puts a prefix before the names."""
    return lambda name, measure: keep(f"{prefix}, {name}", measure)


def race(samplers, prompts, n_tokens, *, seed=0, progress=iter, keep=at_once):
    """Run each sampler on each prompt.

    Parameters
    ----------
    samplers : dict name -> Sampler
    prompts : list of sequences of int
    n_tokens : int
        How many to generate for each prompt.
    seed : int
        The seed for the first prompt; the next prompt uses seed + 1, and so on.
    progress : callable
        A wrapper for the list of prompts, such as tqdm.
    keep : callable
        See __init__.py. Here each prompt is a part.

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
    """Run each sampler on one prompt, starting with sampler number `first`; the runs as dicts, in the given order."""
    names, runs = list(samplers), {}
    for name in names[first:] + names[:first]:
        samplers[name].generate(prompt, min(n_tokens, N_WARM), seed)  # fills the caches, runs all code once
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
    """The sum of the runs, as one Run."""
    sums = {name: sum(getattr(run, name) for run in runs) for name in Run.__dataclass_fields__ if name != "tokens"}
    return Run(tokens=[token for run in runs for token in run.tokens], **sums)
