"""Drafting through the text: exact whatever is proposed, and what is proposed."""

import numpy as np
import pytest
from exactness import error_by_rounds
from toy_tokenizers import LARGER_DRAFT, LARGER_TARGET

from speculative import (
    ByPaths,
    Draft,
    ModelDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    TextDrafter,
    TreeDrafter,
    block,
    exact_match,
    rejection,
)
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(6, seed=1), TableModel.random(7, seed=2)
PROMPT = (0, 1, 3, 5, 2, 3)  # "aab", half a character, the end of a text, "b", and half a character again


def through_the_text(drafter, **options):
    return TextDrafter(drafter, LARGER_TARGET, LARGER_DRAFT, **options)


@pytest.mark.parametrize("own", [None, Sampling(0.9, top_k=2)], ids=["greedy", "drawn"])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.5, top_k=2), Sampling(0)], ids=str)
def test_a_text_drafted_through_the_text_has_the_distribution_of_the_target(sampling, own):
    drafter = through_the_text(ModelDrafter(DRAFT, sampling=own))
    assert error_by_rounds(SpeculativeSampler(TARGET, drafter, K=2, sampling=sampling), 3, PROMPT) < 1e-12
    for verifier in (rejection, block, exact_match):  # of short drafts
        sampler = SpeculativeSampler(TARGET, drafter, verifier=verifier, K=1, sampling=sampling)
        assert error_by_rounds(sampler, 2, PROMPT) < 1e-12
    drafter = through_the_text(TreeDrafter(ByPaths(DRAFT), Shape.widths(2, 1), sampling=own))
    assert error_by_rounds(SpeculativeSampler(ByPaths(TARGET), drafter, K=2, sampling=sampling), 2, PROMPT) < 1e-12


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


@pytest.mark.parametrize(
    ("drafted", "K", "proposed"),
    [
        ([3, 3], 4, [2, 1, 0]),  # "baba": b, ab, a; nothing is cut at the end
        ([3, 3], 2, [2, 1]),  # but no more than K
        ([2, 1], 4, [3, 4, 2]),  # é in two tokens, b
        ([4, 1], 4, [4, 2]),  # the second half of a character that the text began, b
        ([1, 6], 4, [2, 2]),  # b, b, and the first half of a character, which is left out
        ([6, 5], 4, [2, 3, 0]),  # b, and half a character that is never finished, a
        ([1, 0, 5], 4, [2, 5, 0]),  # b, the end of the text, a
        ([], 4, []),
    ],
)
def test_what_is_proposed(drafted, K, proposed):
    draft = through_the_text(Fixed(drafted), n_vocab=8).propose([0, 3], K, None)
    assert draft.tokens.tolist() == proposed and draft.parents.tolist() == [*range(-1, len(proposed) - 1)]
    np.testing.assert_array_equal(draft.probs, np.eye(8)[proposed])


def test_the_texts_of_a_tree_share_their_first_tokens():
    drafter = through_the_text(Fixed([5, 1, 3, 5], [-1, 0, 0, 1]))  # "aba" and "aba", and "aba" cut differently
    assert drafter.propose([0], 4, None).tokens.tolist() == [1, 0]
    drafter = through_the_text(Fixed([5, 1, 5], [-1, 0, 0]))  # "ab", "aa"
    draft = drafter.propose([0], 4, None)
    assert draft.tokens.tolist() == [1, 0, 0] and draft.parents.tolist() == [-1, -1, 1]


def test_it_asks_for_as_many_tokens_as_the_text_needs():
    """The text "aabb" is 3 tokens of the target and 4 of the draft: 2 tokens of the target may need 3."""
    fixed = Fixed([])
    through_the_text(fixed).propose([0, 1, 2], 2, None)
    through_the_text(fixed, n_ctx=6).propose([0, 1, 2], 2, None)
    through_the_text(fixed).propose([3], 2, None)
    assert fixed.asked == [([5, 5, 1, 1], 3), ([5, 1, 1], 3), ([0], 2)]
