"""The race: who runs on what, with which seed; and experiments that were interrupted."""

import json
import math

import pytest

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler
from speculative.measuring import Run, calibrate, compared, race, repetition, total
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
PROMPTS = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]


def test_in_a_race_everyone_runs_on_every_prompt_with_the_same_seeds():
    samplers = {"alone": AutoregressiveSampler(TARGET), "short": SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=1)}
    results = race(samplers, PROMPTS, 5, seed=7)
    assert results.keys() == samplers.keys()
    for name, runs in results.items():
        assert len(runs) == len(PROMPTS)
        for i, (prompt, run) in enumerate(zip(PROMPTS, runs)):
            generation = samplers[name].generate(prompt, 5, 7 + i)
            assert run.seconds > run.draft_seconds >= 0 and run.tokens == generation.tokens.tolist()
            stats = generation.stats
            assert (run.drafted, run.accepted, run.rejected) == (stats.drafted, stats.accepted, stats.rejected)
            assert run.tokens_per_call == 5 / stats.target_calls
            assert run.lengths == [len(r.tokens) for r in generation.rounds]
    both = total(results["short"][:2])
    assert both.lengths == results["short"][0].lengths + results["short"][1].lengths
    assert both.tokens_per_call == 10 / both.target_calls


def test_who_starts_a_race_changes_from_prompt_to_prompt():
    order = []

    class Seen:
        def __init__(self, name):
            self.name, self.sampler = name, AutoregressiveSampler(TARGET)

        def rounds(self, *arguments):
            order.append(self.name)
            return self.sampler.rounds(*arguments)

    race({name: Seen(name) for name in "abc"}, [[0]] * 4, 3)
    assert "".join(order) == "aabbccbbccaaccaabbaabbcc"  # each with a warm-up


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
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: model.seconds)
    samplers = {"alone": AutoregressiveSampler(model), "short": SpeculativeSampler(model, ModelDrafter(DRAFT), K=1)}
    for caches, seconds in (([model, DRAFT], 4), ((), 0)):
        for runs in race(samplers, PROMPTS, 5, caches=caches).values():
            assert [run.prefill_seconds for run in runs] == [seconds] * len(PROMPTS)


def test_speedup_and_calls_by_hand():
    """Times are per token: the second text ended after half of its tokens."""
    alone, drafted = (
        [Run(seconds, 0, [7] * n, [1] * calls, 0, 0, 0) for seconds, n, calls in some]
        for some in (((4.0, 4, 4), (2.0, 2, 2)), ((2.0, 4, 2), (1.0, 2, 1)))
    )
    found = compared(alone, drafted)
    assert (found["speedup"], found["low"], found["high"]) == (2.0, 2.0, 2.0)
    assert (found["tokens_per_call"], found["same_texts"], found["n_texts"]) == (2.0, 2, 2)
    assert compared(alone[:1], drafted[:1])["low"] is None


def test_repetition_by_hand():
    assert repetition([1, 2, 3, 4]) == repetition([1, 2, 3]) == repetition([]) == 0
    assert repetition([7] * 9) == pytest.approx(5 / 6)
    assert repetition([1, 2, 1, 2, 1], n=2) == pytest.approx(2 / 4)


# ------------------------------------------------------------------------------------------------ parts


class Interrupted(Exception):
    pass


EXPERIMENTS = {
    "calibrate": lambda **how: calibrate(TARGET, ModelDrafter(DRAFT), PROMPTS, 8, **how),
    "race": lambda sampling, keep: race(
        {"alone": AutoregressiveSampler(TARGET, sampling=sampling)}, PROMPTS, 8, keep=keep
    ),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_interrupted_experiment_resumes_where_it_stopped(name):
    kept, measured, most = {}, [], [3]

    def keep(part, measure):
        if part not in kept:
            if len(measured) == most[0]:
                raise Interrupted
            measured.append(part)
            kept[part] = json.loads(json.dumps(measure()))
        return kept[part]

    with pytest.raises(Interrupted):
        EXPERIMENTS[name](sampling=Sampling(), keep=keep)
    before, most[0] = json.dumps(kept), math.inf
    report = EXPERIMENTS[name](sampling=Sampling(), keep=keep)
    assert len(before) > 50 and json.dumps({part: kept[part] for part in measured[:3]}) == before
    assert len(set(measured)) == len(measured) >= 6
    assert EXPERIMENTS[name](sampling=Sampling(), keep=keep) == report and len(measured) == len(kept)
