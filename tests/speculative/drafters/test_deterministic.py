"""Drafts in which nothing is drawn: one-hot rows of one vocabulary, and tries."""

import pytest

from speculative import PromptLookupDrafter, SpeculativeSampler, SuffixDrafter
from speculative.drafters.deterministic import merged, one_hot
from speculative.testing import TableModel


def test_rows_are_one_hot():
    draft = one_hot([2, 0], 3)
    assert draft.tokens.tolist() == [2, 0] and draft.probs.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert draft.parents.tolist() == [-1, 0] and one_hot([2, 0], 3, [-1, -1]).parents.tolist() == [-1, -1]
    assert one_hot([], 3).probs.shape == (0, 3)


def test_equal_prefixes_are_shared():
    sequences = [[0, 1, 2], [0, 2], [], [1], [0, 1]]
    tokens, parents, ends = merged(sequences)
    assert tokens == [0, 1, 1, 2, 2] and parents == [-1, -1, 0, 0, 2] and ends == [4, 3, -1, 1, 2]


@pytest.mark.parametrize("token", [-1, 3])
def test_a_token_outside_the_vocabulary_is_refused(token):
    with pytest.raises(ValueError) as error:
        one_hot([0, token], 3)
    assert str(error.value) == (
        f"the drafter copied token {token}, and its n_vocab is 3: draft, target and corpus must share one vocabulary"
    )


@pytest.mark.parametrize("drafter", [PromptLookupDrafter(3), SuffixDrafter(3), SuffixDrafter(3, corpus=[1, 5] * 9)])
def test_a_copy_from_another_vocabulary_is_refused(drafter):
    with pytest.raises(ValueError, match="share one vocabulary"):
        SpeculativeSampler(TableModel.random(6), drafter).generate([4, 1, 4, 1, 4, 1], 3, 0)
