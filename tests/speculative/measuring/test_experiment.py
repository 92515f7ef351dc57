"""An experiment: who runs on what, with which seed; laps, and parts that are there."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler
from speculative.measuring import Experiment, Prompt, Run, compared, race, repetition, total
from speculative.measuring.rows import expected, gap_between
from speculative.measuring.table import rounding
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
PROMPTS = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0]]


def test_in_a_race_everyone_runs_on_every_prompt_with_the_same_seeds():
    """Who starts changes from prompt to prompt; each runs twice, once to warm up."""
    alone, short = AutoregressiveSampler(TARGET), SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=1)
    samplers, order = {"a": alone, "b": short, "c": alone}, []

    def seen(name):
        return SimpleNamespace(rounds=lambda *given: order.append(name) or samplers[name].rounds(*given))

    results = race({name: seen(name) for name in samplers}, PROMPTS, 5, seed=7)
    assert "".join(order) == "aabbccbbccaaccaabbaabbcc"
    for name, runs in results.items():
        for i, (prompt, run) in enumerate(zip(PROMPTS, runs, strict=True)):
            generation = samplers[name].generate(prompt, 5, 7 + i)
            assert run.seconds > run.draft_seconds >= 0 and run.tokens == generation.tokens.tolist()
            stats = generation.stats
            assert replace(run.stats, seconds=stats.seconds) == stats and run.laps == [run.seconds]
    both = total(results["b"][:2])
    assert both.calls == results["b"][0].calls + results["b"][1].calls
    assert both.target_calls == len(both.calls) and len(both.tokens) == 10


def test_a_part_that_is_there_is_not_measured_again():
    samplers, parts, shown = {"a": AutoregressiveSampler(TARGET), "b": AutoregressiveSampler(TARGET)}, {}, []

    def keep(name, measure):
        if name not in parts:
            parts[name] = measure()
        return parts[name]

    def watch(name, i, rounds):
        shown.append(f"{name}{i}")
        yield from rounds

    experiment = Experiment(samplers, [Prompt(tokens) for tokens in PROMPTS[:2]], 3, laps=3, name="x")
    runs = experiment.run(keep, watch)
    turns = {1: "ab", 2: "ba", 3: "ab"}
    texts = [f"x, prompt {i}, lap {lap}, {name}" for i in (1, 2) for lap, names in turns.items() for name in names]
    assert [*parts] == ["x", *texts]
    assert shown == ["a0", "b0", "a1", "b1"]  # the first laps
    for found in runs.values():
        assert len(found) == 2 and all(sorted(run.laps)[1] == run.seconds and len(run.laps) == 3 for run in found)
    last, _ = parts.popitem()
    assert experiment.run(keep, watch)["a"][0] == runs["a"][0] and [*parts][-1] == last and len(shown) == 4


class Measuring(AutoregressiveSampler):
    """A sampler that measures something first."""

    def settled(self, prompt):
        return {"costs": len(prompt)}

    def settle(self, measured):
        self.costs = measured["costs"]


def test_what_a_sampler_measures_before_it_starts_is_kept():
    kept, samplers = {}, {"a": AutoregressiveSampler(TARGET), "b": Measuring(TARGET)}
    experiment = Experiment(samplers, [Prompt([0, 1, 2], "a text", 7, "qa")], 3)
    experiment.run(lambda name, measure: kept.setdefault(name, measure()))
    assert kept["experiment"] == {"prompts": [[7, "qa", "a text"]], "settled": {"b": {"costs": 3}}}
    experiment.run(lambda name, measure: {"experiment": {"settled": {"b": {"costs": 5}}}}.get(name, kept[name]))
    assert samplers["b"].costs == 5


def test_no_further_lap_begins_after_a_long_one():
    experiment = Experiment({"a": AutoregressiveSampler(TARGET)}, [Prompt(PROMPTS[0])], 3, laps=3, patience=9.0)
    for seconds, n_laps in ((10.0, 1), (5.0, 3)):
        part = {"tokens": [1], "calls": [[1, 0, 0, 0, False]], "seconds": seconds}
        runs = experiment.run(lambda name, measure, part=part: part if "lap" in name else measure())
        assert len(runs["a"][0].laps) == n_laps


class Cached:
    """A model that takes 5 seconds for a call with an empty cache, and 1 for others."""

    n_vocab, n_ctx, seconds, is_empty = TARGET.n_vocab, TARGET.n_ctx, 0, True

    def reset(self):
        self.is_empty = True

    def __call__(self, tokens, n_last=1):
        self.seconds, self.is_empty = self.seconds + (5 if self.is_empty else 1), False
        return TARGET(tokens, n_last)


def test_prefill_is_what_the_first_call_takes_longer_with_an_empty_cache(monkeypatch):
    model = Cached()
    monkeypatch.setattr("speculative.generation.perf_counter", lambda: model.seconds)
    samplers = {"alone": AutoregressiveSampler(model), "short": SpeculativeSampler(model, ModelDrafter(DRAFT), K=1)}
    for caches, seconds in (([model, DRAFT], 4), ((), 0)):
        for runs in race(samplers, PROMPTS, 5, caches=caches).values():
            assert [run.prefill_seconds for run in runs] == [seconds] * len(PROMPTS)


def test_speedup_and_calls_by_hand():
    """Times are per token: with drafts the second text ended after half of its tokens."""
    alone, drafted = (
        [Run([7] * n, [[1, 0, 0, 0, False]] * calls, seconds) for seconds, n, calls in some]
        for some in (((4.0, 4, 4), (2.0, 2, 2)), ((2.0, 4, 2), (0.5, 1, 1)))
    )
    found = compared(alone, drafted)
    assert (found["speedup"], found["low"], found["high"]) == (2.0, 2.0, 2.0)
    assert (found["tokens_per_call"], found["same_texts"], found["n_texts"]) == (5 / 3, 1, 2)
    assert compared(alone[:1], drafted[:1])["low"] is None


@pytest.mark.parametrize(
    ("logits", "gap", "words"),
    [
        ([4, 3.99999, 0], (1.001358e-05, 21, "float32"), "this engine rounds differently"),
        ([4, 3.96875, 0], (0.03125, 1, "bfloat16"), "this engine rounds differently"),
        ([4.00001, 2, 0], (2.00001, 4194325, "float32"), "more than rounding"),
        ([4, 3.125, -np.inf], (0.875, 28, "bfloat16"), "more than rounding"),
    ],
)
def test_a_gap_is_rounding_by_its_size_in_the_dtype_of_the_logits(logits, gap, words):
    found = gap_between([2, 0], [2, 1], [5], lambda text: np.array([logits], np.float32), Sampling(0))
    assert found == (pytest.approx(gap[0]), pytest.approx(gap[1], rel=1e-3), gap[2]) and words in rounding(found)
    assert gap_between([2], [2], [5], None, Sampling(0)) is None


def test_repetition_by_hand():
    assert repetition([1, 2, 3, 4]) == repetition([1, 2, 3]) == repetition([]) == 0
    assert repetition([7] * 9) == pytest.approx(5 / 6)
    assert repetition([1, 2, 1, 2, 1], n=2) == pytest.approx(2 / 4)


def test_without_an_alpha_nothing_is_expected():
    assert [*expected({"alpha": None}, 3).values()] == [None, None]
