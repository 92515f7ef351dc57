"""An experiment: settings x prompts -> runs.

Each setting is a sampler; the first is the target alone, with which rows.py compares the others. They take turns on one
prompt after the other, timed, so a machine that slows down slows all of them. `main.py` is the experiment with one
setting and one prompt, and `main.py compare` the one with many.

The clock starts after the prompt has been processed and a few warm-up tokens generated. Prefill is timed separately if
the models whose caches must be emptied first are passed in.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from math import inf
from time import perf_counter

from ..generation import Stats, collect
from ..models.by_paths import Wrapper

N_WARM = 4  # tokens generated before the clock starts
N_TOGETHER = 5  # runs over all prompts, if several texts are generated at once


@dataclass(frozen=True)
class Run:
    """One text and its time, in plain numbers; or several texts that were generated together."""

    tokens: list  # the new tokens
    calls: list  # for each call of the target, the numbers that `Stats.of` takes
    seconds: float  # without prefill
    draft_seconds: float = 0.0  # the part of `seconds` spent drafting; 0 for several texts, which share passes
    prefill_seconds: float = 0.0  # the extra time of the first call with empty caches; 0 if none were emptied
    laps: list = field(default_factory=list)  # the seconds of each lap, of which `seconds` is the median

    @cached_property
    def stats(self):
        return Stats.of(self.calls)

    @property
    def target_calls(self):
        return self.stats.target_calls

    @property
    def drafted(self):
        return self.stats.drafted


def total(runs):
    """The sum of the runs, as one Run."""
    names = Run.__dataclass_fields__
    return Run(**{name: sum((getattr(run, name) for run in runs), type(getattr(runs[0], name))()) for name in names})


@dataclass(frozen=True)
class Experiment:
    """Samplers on prompts: `run` measures, or resumes."""

    samplers: dict  # name -> Sampler; the first is the target alone
    prompts: Sequence  # of token ids
    n_tokens: int
    seed: int = 0  # of the first prompt; the others have the numbers after it
    laps: int = 1  # how often each text is generated; the lap with the median time counts
    patience: float = inf  # if the first lap of a text takes more seconds, it is the only one
    caches: Sequence = ()  # the models whose prefill is timed; one with a cache has a method `reset`
    n_lanes: int = 0  # so many texts at once, all of which are then one run; 0: one by one
    name: str = ""  # what the names of the parts begin with

    def run(self, keep=lambda name, measure: measure(), watch=None):
        """dict name -> list of Run: one for each prompt, or with n_lanes N_TOGETHER, each of all prompts.

        `keep(name, measure)` returns measure(), a dict in plain JSON, or an earlier result: a journal resumes here.
        `watch(name, rounds)` passes on the rounds of the first lap; the clock stands still while it does more.
        """
        runs = {name: [] for name in self.samplers}
        for i in range(N_TOGETHER if self.n_lanes else len(self.prompts)):
            laps = []  # of each, the Runs of all samplers
            for lap in range(self.laps):
                part = keep(f"{self.name}prompt {i + 1}, lap {lap + 1}", partial(self.turns, i, lap, watch))
                laps.append([Run(**run) for run in part["runs"]])
                if sum(run.seconds for run in laps[0]) > self.patience:
                    break
            for name, some in zip(runs, zip(*laps)):
                middle = sorted(some, key=lambda run: run.seconds)[len(some) // 2]
                runs[name].append(replace(middle, laps=[run.seconds for run in some]))
        return runs

    def turns(self, i, lap, watch):
        """A part: every sampler has its turn on prompt i (on all, with n_lanes). They take turns to start."""
        names, first, load = [*self.samplers], (i + lap) % len(self.samplers), load_average()
        runs = {}
        for name in names[first:] + names[:first]:
            runs[name] = self.together(name) if self.n_lanes else self.alone(name, i, watch if lap == 0 else None)
        return {"load": load, "runs": [asdict(runs[name]) for name in names]}

    def alone(self, name, i, watch):
        """The Run of a sampler on one prompt."""
        sampler, prompt, seed = self.samplers[name], self.prompts[i], self.seed + i
        for model in self.caches:
            Wrapper(model).reset()
        warm = collect(prompt, sampler.rounds(prompt, min(self.n_tokens, N_WARM), seed))  # fills the caches
        rounds = Timed(sampler.rounds(prompt, self.n_tokens, seed))
        found = collect(prompt, watch(name, rounds) if watch else rounds)
        with_prefill, without = (sum(each.rounds[0].seconds.values()) for each in (warm, found))
        prefill = max(0.0, with_prefill - without) if self.caches else 0.0
        return Run(found.tokens.tolist(), found.calls, rounds.seconds, found.stats.seconds["draft"], prefill)

    def together(self, name):
        """The Run of a sampler on all prompts; the time includes everything, such as prefill and idle lanes."""
        seeds, started = [self.seed + i for i in range(len(self.prompts))], perf_counter()
        ended = dict(self.samplers[name].as_they_end(self.prompts, self.n_tokens, seeds, self.n_lanes))
        seconds, texts = perf_counter() - started, [ended[i] for i in range(len(self.prompts))]
        tokens = [token for text in texts for token in text.tokens.tolist()]
        return Run(tokens, [call for text in texts for call in text.calls], seconds)


class Timed:
    """An iterator that counts the seconds spent in it."""

    def __init__(self, rounds):
        self.rounds, self.seconds = rounds, 0.0

    def __iter__(self):
        return self

    def __next__(self):
        started = perf_counter()
        try:
            return next(self.rounds)
        finally:
            self.seconds += perf_counter() - started


def race(samplers, prompts, n_tokens, *, seed=0, caches=()):
    """Run each sampler (dict name -> Sampler) on each prompt: dict name -> list of Run, one for each prompt."""
    return Experiment(samplers, prompts, n_tokens, seed, caches=caches).run()


def load_average():
    """The average number of processes ready to run in the last minute; 0.0 if the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
