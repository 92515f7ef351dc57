"""Lookahead decoding: the comb, the pool, and texts that begin, end or are interrupted."""

import pytest

from speculative import ByPaths, SpeculativeSampler
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.testing import TableModel

TARGET = TableModel.random(3, seed=1)


def test_the_comb_and_the_pool_by_hand():
    """W = 2, N = 3: the second call has levels 0 and 1; its answers complete two trigrams."""
    target = ByPaths(TARGET)
    drafter = LookaheadDrafter(3, W=2, N=3)
    first = drafter.propose([0, 1], 4, None)
    assert first.tokens.tolist() == [1, 0] and first.parents.tolist() == [-1, 0]
    drafter.observe([0, 1, 1, 0], target([0, 1, 1, 0], n_last=3), [-1, 0])
    answers = drafter.best[1:]
    second = drafter.propose([0, 1, 2], 4, None)
    assert second.tokens.tolist() == [1, answers[0], 0, answers[1]] and second.parents.tolist() == [-1, 0, 0, 2]
    parents = second.parents.tolist()
    drafter.observe(None, target([0, 1, 2, *second.tokens], n_last=5, parents=parents), parents)
    newest = drafter.best[2], drafter.best[4]
    third = drafter.propose([0, 1, 2, 1], 4, None)
    assert drafter.pool == {1: [[answers[0], newest[0]]], 0: [[answers[1], newest[1]]]}
    assert third.tokens.tolist()[:1] == [answers[0]]  # what followed 1 in the pool comes first


@pytest.mark.parametrize(
    ("G", "pools"), [(2, [[[4]], [[4], [5]], [[5], [4]], [[4], [6]]]), (3, [[[4]], [[4], [5]], [[5], [4]]])]
)
def test_the_pool_keeps_the_latest_each_once(G, pools):
    """What followed 3 most recently comes first; another text starts with none."""
    drafter = LookaheadDrafter(9, W=1, N=2, G=G)
    for answer, pool in zip((4, 5, 4, 6), pools):
        drafter.levels = [[3]]
        drafter.learn([answer])
        assert drafter.pool == {3: pool}
    drafter.tokens = [0]
    assert drafter.propose([0, 3], 1, None).tokens.tolist()[:2] == [pools[-1][1][0], pools[-1][0][0]]
    drafter.propose([5, 3], 1, None)
    assert drafter.pool == {}


def test_one_that_was_interrupted_starts_again(monkeypatch):
    """Else the answers would be learned twice, and the levels, then one too many, never dropped again."""
    target = TableModel.random(9)
    drafter, texts = LookaheadDrafter(9, W=1, N=2, G=2), ([1, 2, 3], [1, 2, 3, 4])
    drafter.propose(texts[0], 4, None)
    drafter.observe(None, target([*texts[0], 5], n_last=2), [-1])

    def interrupted(self, answers):
        self.levels.append(answers)
        raise KeyboardInterrupt  # before the oldest level is dropped

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LookaheadDrafter, "learn", interrupted)
        drafter.propose(texts[1], 4, None)
    drafts = [some.propose(texts[1], 4, None) for some in (drafter, LookaheadDrafter(9, W=1, N=2, G=2))]
    assert drafts[0].tokens.tolist() == drafts[1].tokens.tolist() and len(drafter.levels) == 1


def test_the_comb_needs_as_many_levels_as_it_has():
    drafter = LookaheadDrafter(3, W=2, N=3)
    assert drafter.propose([0, 1], 2, None).tokens.tolist() == [1, 0]
    assert drafter.propose([2, 1], 1, None).tokens.tolist() == []


def test_a_comb_cut_off_by_the_context_has_no_answers():
    for seed in range(5):
        target = ByPaths(TableModel.random(3, seed=seed, n_ctx=16))
        sampler = SpeculativeSampler(target, LookaheadDrafter(3, W=4, N=3, G=2), K=8)
        assert len(sampler.generate([0, 1], 14, seed).tokens) == 14


def test_sizes_out_of_range_are_refused():
    with pytest.raises(ValueError, match="expected W of 1 or more, N of 2 or more and G of 1 or more, got 1, 1 and 5"):
        LookaheadDrafter(3, W=1, N=1)
