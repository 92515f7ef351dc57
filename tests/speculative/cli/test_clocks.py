"""The clock around a model: it counts what a cache would compute."""

import numpy as np
import pytest
from helpers import random_gpt2

from gpt2np import HParams
from speculative import AutoregressiveSampler, ByPaths, ModelDrafter, Shape, SpeculativeSampler
from speculative.cli.clocks import Timed, per_token
from speculative.drafters.model_tree import TreeDrafter
from speculative.interfaces import Laps
from speculative.testing import TableModel, check_language_model

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def test_a_timed_model_has_the_logits_of_the_model():
    check_language_model(Timed(ByPaths(TARGET)))
    np.testing.assert_array_equal(Timed(TARGET)([0, 1, 2], n_last=2), TARGET([0, 1, 2], n_last=2))


@pytest.mark.parametrize("K", [1, 4])
def test_tokens_are_counted_as_a_model_with_a_cache_runs_them(K):
    """The target runs the prompt and the draft once, then in each round its last token and the draft."""
    target, draft = Timed(TARGET, load_seconds=0.5), Timed(DRAFT)
    generation = SpeculativeSampler(target, ModelDrafter(draft), K=K).generate([0, 1, 2, 0], 30, 0)
    first, *others = generation.rounds
    assert target.prompt_tokens == 4 + len(first.drafted)
    assert target.eval_tokens == sum(1 + len(r.drafted) for r in others)
    assert draft.prompt_tokens == 4
    pairs = zip(generation.rounds, generation.rounds[1:])
    caught_up = sum(1 for r, later in pairs if r.n_accepted == len(r.drafted) and len(later.drafted))
    assert draft.eval_tokens == generation.stats.drafted - 1 + caught_up  # the last draft token, which it has not run
    assert target.report()["load time"] == 500 and target.report()["eval tokens"] == target.eval_tokens
    assert 0 < target.eval_seconds < target.seconds < 60
    target.reset()
    assert (target.prompt_tokens, target.eval_tokens, target.seconds) == (0, 0, 0)


def test_the_nodes_of_a_tree_are_counted_as_a_cache_keeps_them():
    """The branch that was accepted is not run again."""
    target = Timed(ByPaths(TARGET))
    drafter = TreeDrafter(ByPaths(DRAFT), Shape.widths(3, 2, 1))
    first, *others = SpeculativeSampler(target, drafter, K=3).generate([0, 1, 2, 0], 60, 0).rounds
    assert any(r.n_accepted > 1 for r in others)
    assert target.prompt_tokens == 4 + len(first.drafted)
    assert target.eval_tokens == sum(1 + len(r.drafted) for r in others)


def test_a_caller_may_go_on_appending_to_its_parents():
    """A drafter of trees keeps one list, and calls the model for each level."""
    timed, parents = Timed(ByPaths(TableModel.random(5, seed=0, n_ctx=12))), [-1, -1]
    timed([0, 1, 2, 3], n_last=2, parents=parents)
    parents += [0, 1]
    timed([0, 1, 2, 3, 4, 4], n_last=2, parents=parents)
    timed([0, 1, 2, 4, 4], n_last=1)
    assert (timed.prompt_tokens, timed.eval_tokens) == (4, 2 + 1)


def test_rows_that_are_asked_for_again_are_run_again():
    target, counts = Timed(TARGET), []
    for tokens, n_last in (([0, 1, 2], 1), ([0, 1, 2], 3), ([0, 1, 2], 1), ([0, 1], 1), ([0, 2, 2, 2], 1)):
        before = target.eval_tokens
        target(tokens, n_last)
        counts.append(target.eval_tokens - before)
    assert counts == [0, 3, 1, 1, 3] and target.prompt_tokens == 3
    alone = Timed(TARGET)
    AutoregressiveSampler(alone).generate([0, 1, 2], 10, 0)
    assert (alone.prompt_tokens, alone.eval_tokens) == (3, 9)


@pytest.mark.parametrize("wrap", [ByPaths, Timed])
def test_what_is_around_a_model_passes_on_reset_and_refuses_what_the_model_cannot(wrap):
    model = random_gpt2(HParams(5, 16, 16, 1, 1))
    wrapped = Timed(wrap(model))
    wrapped([1, 2, 3])
    assert model.cache.length == 3
    wrapped.reset()
    assert model.cache.length == 0
    if wrap is not ByPaths:
        with pytest.raises(ValueError, match="takes chains only: give its call the parameter parents, or use ByPaths"):
            wrap(TARGET)([0, 1, 2], 3, (-1, -1))


def test_the_report_reads_as_that_of_llama_cpp(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr("speculative.cli.clocks.perf_counter", lambda: next(now) / 4)
    target = Timed(TARGET, load_seconds=0.0125)
    assert "0 tokens (   0.00 ms per token,      0.0 tokens per second)" in str(target)
    for tokens in ([0, 1, 2, 0, 1], [0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2, 2]):
        target(tokens)
    assert str(target).splitlines() == [
        "load time        =      12.5 ms",
        "prompt eval time =     250.0 ms /     5 tokens (  50.00 ms per token,     20.0 tokens per second)",
        "eval time        =     500.0 ms /     2 tokens ( 250.00 ms per token,      4.0 tokens per second)",
    ]
    assert "0.00 ms per token,      0.0 tokens per second" in per_token(0.0, 5)


def test_laps_add_up_to_the_time_between(monkeypatch):
    times = iter([10.0, 11.0, 13.0, 17.0])
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: next(times))
    laps = Laps()
    assert laps.seconds == {"draft": 0, "target": 0, "verify": 0}
    for name in laps.seconds:
        laps.end(name)
    assert laps.seconds == {"draft": 1, "target": 2, "verify": 4}
