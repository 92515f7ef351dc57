"""An experiment: samplers x prompts -> runs. All times on a page or in a table come from here.

The first sampler is the target alone, with which rows.py compares the others. They take turns on one prompt after the
other, so that a machine that slows down slows all of them. `main.py` is the experiment with one setting, and `main.py
compare` the one with many.

A text is timed without its prompt: the clock starts after the prompt has been processed and a few warm-up tokens have
been generated. If a text is generated several times, in laps, the lap with the median time counts; laps show how quiet
the machine is, and are no sample of anything else. Prefill, the time of the prompt, is how much longer the first call
takes with empty caches, if the models that have caches are passed in.
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
class Prompt:
    """A text to continue, with the id and category that a benchmark gives it."""

    tokens: Sequence  # token ids
    text: str = ""
    question_id: int | str = 1
    category: str = ""


@dataclass(frozen=True)
class Run:
    """One text and its time, in plain numbers; or several texts that were generated together."""

    tokens: list  # the new tokens
    calls: list  # for each call of the target, the numbers that `Stats.of` takes
    seconds: float  # without prefill
    draft_seconds: float = 0.0  # the parts of `seconds` spent drafting and ...
    verify_seconds: float = 0.0  # ... verifying, without the target's pass; 0 for several texts, which share passes
    prefill_seconds: float = 0.0  # 0 if no caches were emptied
    laps: list = field(default_factory=list)  # the seconds of each lap, of which `seconds` is the median
    load: float = 0.0  # the load average before it

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
    """Samplers on prompts: `run` measures them.

    A sampler may measure something before it starts, such as costs: `settled(prompt)` returns that in plain JSON, and
    `settle` receives it.
    """

    samplers: dict  # name -> Sampler; the first is the target alone
    prompts: Sequence  # of Prompt
    n_tokens: int
    seed: int = 0  # of the first prompt; the others have the numbers after it
    laps: int = 1  # how often each text is generated
    patience: float = inf  # if the first laps of a prompt take more seconds, they are the only ones
    caches: Sequence = ()  # the models whose prefill is timed; one with a cache has a method `reset`
    n_lanes: int = 0  # so many texts at once, all of which are then one run; 0: one by one
    name: str = "experiment"  # what the names of its parts begin with

    @property
    def n_runs(self):
        return N_TOGETHER if self.n_lanes else len(self.prompts)

    def run(self, keep=lambda name, measure: measure(), watch=lambda name, i, rounds: rounds):
        """dict name -> list of Run: one for each prompt, or with n_lanes N_TOGETHER, each of all prompts.

        `keep(name, measure)` returns measure(), a dict in plain JSON, or an earlier result: a journal resumes here.
        `watch(name, i, rounds)` passes on the rounds of prompt i's first lap; the clock stands still outside them.
        """
        about = keep(self.name, self.about)
        for name, settled in about["settled"].items():
            self.samplers[name].settle(settled)
        runs = {name: [] for name in self.samplers}
        for i in range(self.n_runs):
            laps = {name: [] for name in self.samplers}
            for lap in range(self.laps):
                for name in self.turns(lap if self.laps > 1 else i):
                    measure = partial(self.measured, name, i, watch if lap == 0 else None)
                    part = keep(f"{self.name}, prompt {i + 1}, lap {lap + 1}, {name}", measure)
                    laps[name].append(Run(**part))
                if sum(each[0].seconds for each in laps.values()) > self.patience:
                    break
            for name, of_text in laps.items():
                middle = sorted(of_text, key=lambda run: run.seconds)[len(of_text) // 2]
                runs[name].append(replace(middle, laps=[run.seconds for run in of_text]))
        return runs

    def about(self):
        """The first part: the prompts, and what the samplers have measured."""
        prompts = [[prompt.question_id, prompt.category, prompt.text] for prompt in self.prompts]
        measuring = {name: each for name, each in self.samplers.items() if hasattr(each, "settled")}
        settled = {name: sampler.settled(self.prompts[0].tokens) for name, sampler in measuring.items()}
        return {"prompts": prompts, "settled": settled}

    def turns(self, first):
        """The names of the samplers; they take turns to start."""
        names = [*self.samplers]
        first %= len(names)
        return names[first:] + names[:first]

    def measured(self, name, i, watch):
        """A part: the Run of a sampler on prompt i, or with n_lanes on all prompts."""
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        run = self.together(name) if self.n_lanes else self.alone(name, i, watch)
        return asdict(replace(run, load=load))

    def alone(self, name, i, watch):
        sampler, tokens, seed = self.samplers[name], self.prompts[i].tokens, self.seed + i
        for model in self.caches:
            Wrapper(model).reset()
        warm = collect(tokens, sampler.rounds(tokens, min(self.n_tokens, N_WARM), seed))  # fills the caches
        rounds = Timed(sampler.rounds(tokens, self.n_tokens, seed))
        generation = collect(tokens, watch(name, i, rounds) if watch else rounds)
        with_prefill, without = (sum(each.rounds[0].seconds.values()) for each in (warm, generation))
        prefill, parts = max(0.0, with_prefill - without) if self.caches else 0.0, generation.stats.seconds
        return Run(
            generation.tokens.tolist(), generation.calls, rounds.seconds, parts["draft"], parts["verify"], prefill
        )

    def together(self, name):
        """The time includes everything, such as prefill and idle lanes."""
        tokens, seeds = [prompt.tokens for prompt in self.prompts], [self.seed + i for i in range(len(self.prompts))]
        ended = Timed(self.samplers[name].as_they_end(tokens, self.n_tokens, seeds, self.n_lanes))
        texts = [text for _, text in sorted(ended, key=lambda pair: pair[0])]
        new = [token for text in texts for token in text.tokens.tolist()]
        return Run(new, [call for text in texts for call in text.calls], ended.seconds)


class Timed:
    """An iterator that counts the seconds spent in it."""

    def __init__(self, items):
        self.items, self.seconds = iter(items), 0.0

    def __iter__(self):
        return self

    def __next__(self):
        started = perf_counter()
        try:
            return next(self.items)
        finally:
            self.seconds += perf_counter() - started


def race(samplers, prompts, n_tokens, *, seed=0, caches=()):
    """Run each sampler (dict name -> Sampler) on each prompt (token ids): dict name -> list of Run, one a prompt."""
    return Experiment(samplers, [*map(Prompt, prompts)], n_tokens, seed, caches=caches).run()
