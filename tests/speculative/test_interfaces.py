"""What drafts, verdicts, rounds and generations say of themselves: filled-in chains, counts, seconds, rows."""

from dataclasses import replace

import numpy as np
import pytest

from speculative import AutoregressiveSampler, Draft, ModelDrafter, SpeculativeSampler, Verdict
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def test_the_parents_and_nodes_of_a_chain_are_filled_in():
    draft, verdict = Draft(np.array([5, 6]), np.eye(7)[5:]), Verdict(2, 0)
    assert draft.parents.tolist() == [-1, 0] and draft.parents.dtype == np.int64 and verdict.nodes == (0, 1)
    for name in ("tokens", "probs", "parents"):
        array, copied = getattr(draft, name), getattr(draft.copy(), name)
        assert np.array_equal(array, copied) and not np.shares_memory(array, copied)


def test_a_verdict_has_the_number_and_the_nodes():
    for verdict in (Verdict([0, 3], 7), Verdict((0, 3), 7), replace(Verdict([0, 3], 1), next_token=7)):
        assert (verdict.n_accepted, verdict.nodes, verdict.next_token) == (2, (0, 3), 7)
    assert Verdict(range(2), 7) == Verdict(2, 7) == Verdict(np.int64(2), 7)


def test_stats_are_counted_from_the_rounds():
    """Of a verifier that accepts 2, 0, 3, 0 and 0 draft tokens; the last round has none."""
    accepted = iter([2, 0, 3, 0, 0])
    rule = lambda draft, target_probs, rng: Verdict(next(accepted), 0)  # noqa: E731
    generation = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), verifier=rule).generate([0], 10, 0, keep_probs=True)
    rounds, stats = generation.rounds, generation.stats
    assert [r.origins[-1] for r in rounds] == ["correction", "correction", "bonus", "correction", "plain"]
    assert [r.draft.parents.tolist() for r in rounds] == [[-1, 0, 1]] * 3 + [[-1], []]
    assert (stats.n_tokens, stats.target_calls, stats.drafted, stats.accepted, stats.rejected) == (10, 5, 10, 5, 3)
    assert stats.drafted_by_position == [4, 3, 3] and stats.accepted_by_position == [2, 2, 1]
    assert stats.acceptance_by_position == [0.5, 2 / 3, 1 / 3]
    assert stats.tokens_per_target_call == 2 and stats.acceptance == 0.5
    assert len(repr(rounds[0])) < 180 and len(repr(generation)) < 400
    assert str(stats) == "10 tokens in 5 calls of the target, 2.00 per call; 5 of 10 draft tokens accepted (50%)"


def test_stats_where_nothing_was_drafted():
    generation = AutoregressiveSampler(TARGET).generate([0], 3, 0, keep_probs=True)
    rounds, stats = generation.rounds, generation.stats
    assert [(r.origins, r.target_probs.shape, r.draft_probs.shape) for r in rounds] == [(["plain"], (1, 3), (0, 3))] * 3
    assert (stats.drafted, stats.acceptance, stats.acceptance_by_position, stats.rejected) == (0, 0.0, [], 0)
    assert stats.tokens_per_target_call == 1
    nothing = SpeculativeSampler(TARGET, ModelDrafter(DRAFT)).generate([0], 0)
    assert nothing.stats.tokens_per_target_call == 0 and nothing.tokens.dtype == np.int64


def test_rounds_of_trees_are_counted_by_depth(of_trees):
    generation = of_trees(n_tokens=58)  # the last round is cut
    for r in generation.rounds:
        assert r.tokens[: r.n_accepted].tolist() == r.drafted[list(r.nodes)].tolist() and r.n_accepted == len(r.nodes)
        assert r.origins[-1] == ("correction" if r.draft.children((-1, *r.nodes)[-1]) else "bonus")
        assert r.target_probs.shape == (len(r.drafted) + 1, 3)
    depths, stats = [r.draft.depth for r in generation.rounds], generation.stats
    assert stats.drafted > sum(depths) and depths[-1] == 1 and max(depths) == 3
    assert stats.drafted_by_position == [sum(depth > i for depth in depths) for i in range(3)]
    assert stats.accepted == sum(stats.accepted_by_position)


@pytest.mark.parametrize(("K", "drafts"), [(None, 0), (1, 3)])
def test_the_seconds_of_a_part_are_those_of_its_calls(monkeypatch, K, drafts):
    """Of 6 tokens; the target as its own draft model, so that with K = 1 each of 3 rounds drafts one token."""
    now = [0.0]
    monkeypatch.setattr("speculative.generation.perf_counter", lambda: now[0])

    class Slow(TableModel):
        def __call__(self, tokens, n_last=1):
            now[0] += 1.0
            return super().__call__(tokens, n_last)

    target = Slow(TARGET.probs)
    sampler = SpeculativeSampler(target, ModelDrafter(target), K=K) if K else AutoregressiveSampler(target)
    stats = sampler.generate([0], 6, 0).stats
    assert stats.seconds == {"draft": drafts, "target": stats.target_calls, "verify": 0}
