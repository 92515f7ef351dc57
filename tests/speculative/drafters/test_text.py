"""Drafting through the text: what is proposed. That it is exact: test_drafters.py."""

import numpy as np
import pytest
from toy_tokenizers import LARGER_DRAFT, LARGER_TARGET

from speculative import Draft, ModelDrafter, Sampling, TextDrafter
from speculative.testing import TableModel

DRAFT = TableModel.random(7, seed=2)


def through_the_text(drafter, **options):
    return TextDrafter(drafter, LARGER_TARGET, LARGER_DRAFT, **options)


def test_it_drafts_greedily_unless_told_otherwise():
    def drafts(own):
        drafter = through_the_text(ModelDrafter(DRAFT, sampling=own))
        return {tuple(drafter.propose([0], 3, np.random.default_rng(seed)).tokens) for seed in range(30)}

    assert len(drafts(None)) == 1 and len(drafts(Sampling())) > 5


class Fixed:
    """Proposes these tokens of the draft's vocabulary, and remembers what it was asked."""

    def __init__(self, tokens, parents=None):
        rows = np.eye(LARGER_DRAFT.n_vocab)[tokens]
        self.draft, self.asked = Draft(np.array(tokens), rows, None if parents is None else np.array(parents)), []

    def propose(self, tokens, K, rng):
        self.asked.append((tokens, K))
        return self.draft


CHAIN = None


@pytest.mark.parametrize(
    ("drafted", "above", "K", "proposed", "parents"),
    [
        ([3, 3], CHAIN, 4, [2, 1, 0], [-1, 0, 1]),  # "baba": b, ab, a; nothing is cut at the end
        ([3, 3], CHAIN, 2, [2, 1], [-1, 0]),  # but no more than K
        ([1, 6], CHAIN, 4, [2, 2], [-1, 0]),  # b, b, and the first half of a character, which is left out
        ([], CHAIN, 4, [], []),
        ([5, 1, 3, 5], [-1, 0, 0, 1], 4, [1, 0], [-1, 0]),  # "aba" and "aba", cut differently
        ([5, 1, 5], [-1, 0, 0], 4, [1, 0, 0], [-1, -1, 1]),  # "ab", "aa"
    ],
)
def test_what_is_proposed(drafted, above, K, proposed, parents):
    draft = through_the_text(Fixed(drafted, above), n_vocab=8).propose([0, 3], K, None)
    assert draft.tokens.tolist() == proposed and draft.parents.tolist() == parents
    np.testing.assert_array_equal(draft.probs, np.eye(8)[proposed])


def test_it_asks_for_as_many_tokens_as_the_text_needs():
    """The text "aabb" is 3 tokens of the target and 4 of the draft: 2 tokens of the target may need 3."""
    fixed = Fixed([])
    through_the_text(fixed).propose([0, 1, 2], 2, None)
    through_the_text(fixed, n_ctx=6).propose([0, 1, 2], 2, None)
    through_the_text(fixed).propose([3], 2, None)
    assert fixed.asked == [([5, 5, 1, 1], 3), ([5, 1, 1], 3), ([0], 2)]
