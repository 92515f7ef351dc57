"""A drafter of what a grammar leaves no choice about: what it drafts, and why the draft is verified."""

import numpy as np
from exactness import largest_difference
from toy_tokenizers import ToyTokenizer

import speculative as sp
from speculative import ForcedDrafter, Grammar, Sampling, SpeculativeSampler
from speculative.logits.probs import inheriting
from speculative.testing import TableModel

TOKENIZER = ToyTokenizer(b"a", b"b", b"ab", None)  # takes the longest token first
GRAMMAR = Grammar("ab(ab|b)ab", [b"a", b"b", b"ab", b""], end=3, n_prompt=1)
SAMPLING = Sampling(processors=[GRAMMAR])
TARGET = TableModel.random(4, seed=2, n_ctx=12)
FORCED = ForcedDrafter(TOKENIZER.encode, 4)


def drafted(text, K=9):
    return inheriting(FORCED, SAMPLING).propose([3, *text], K, None).tokens.tolist()


def test_what_must_follow_is_drafted_as_the_tokenizer_has_it():
    assert [drafted(text) for text in ([], [0], [2], [2, 1], [2, 0], [2, 1, 2], [1])] == [
        [2], [1], [], [2, 3], [1, 2, 3], [3], [],
    ]  # fmt: skip
    assert drafted([2, 0], K=2) == [1, 2]
    own = ForcedDrafter(TOKENIZER.encode, 4, grammar=GRAMMAR)  # without a grammar, it is the sampler's
    assert own.propose([3], 3, None).tokens.tolist() == [2] and len(FORCED.propose([3], 3, None).tokens) == 0


def test_another_drafter_is_asked_where_there_is_a_choice():
    """And is told the sampler's sampling, so that what it drafts is allowed, and shown the target's answers."""
    both = inheriting(ForcedDrafter(TOKENIZER.encode, 4, otherwise=sp.ModelDrafter(TARGET)), SAMPLING)
    for seed in range(20):
        draft = both.propose([3, 2], 2, np.random.default_rng(seed))
        assert len(draft.tokens) == 2 and GRAMMAR.state([3, 2, *draft.tokens]) is not None
    learning = ForcedDrafter(TOKENIZER.encode, 4, otherwise=sp.JacobiDrafter(4))
    SpeculativeSampler(TARGET, learning, K=2, sampling=SAMPLING).generate([3], 3, 0)
    assert len(learning.otherwise.text) > 1


def test_forced_text_that_is_not_verified_changes_the_distribution():
    """The text "ab" is forced, but not that it is one token."""
    sampler = SpeculativeSampler(TARGET, FORCED, sampling=SAMPLING)

    def jumps_forward(rng):
        text = []
        while len(text) < 3:
            text += drafted(text) or sampler.generate([3, *text], 1, rng).tokens.tolist()
        return text[:3]

    found, right = sp.exact_distribution(jumps_forward), TARGET.distribution([3], 3, SAMPLING)
    assert all(GRAMMAR.state([3, *tokens]) is not None for tokens in found)
    assert largest_difference(found, right) > 0.1
