"""Token ids in those of another tokenizer, and the model of the tokens that two vocabularies share."""

import itertools

import numpy as np
import pytest
from helpers import random_gpt2
from toy_tokenizers import LARGER_DRAFT, LARGER_TARGET, OF_DRAFT, OF_TARGET, ToyTokenizer

import speculative as sp
from gpt2np import HParams
from speculative import Sampling, SharedTokensModel, SpeculativeSampler
from speculative.models.shared_tokens import Translation, latest, shared_tokens
from speculative.testing import TableModel

DRAFT = TableModel.random(7, seed=2)


def test_the_model_of_shared_tokens_by_hand():
    """The draft's probabilities of b and a, 1/8 and 1/2, renormalised, are 1/5 and 4/5 of the target's b and a."""
    model = SharedTokensModel(TableModel([[1 / 8, 1 / 2, 3 / 8]] * 3), OF_TARGET, OF_DRAFT)
    np.testing.assert_allclose(Sampling()(model([0, 1])), [[4 / 5, 0, 1 / 5]], atol=1e-7)


def test_the_shared_tokens():
    of_target, of_draft = shared_tokens(LARGER_TARGET, LARGER_DRAFT)
    assert dict(zip(of_target.tolist(), of_draft.tolist())) == {0: 5, 2: 1, 4: 4, 5: 0}  # a, b, half an é, the end
    model = SharedTokensModel(DRAFT, LARGER_TARGET, LARGER_DRAFT, n_vocab=9)  # more tokens than its tokenizer has
    assert model([0]).shape == (1, 9) and np.isneginf(model([0])[0, 6:]).all()


def test_no_token_in_common():
    with pytest.raises(ValueError, match=r"^the two tokenizers, of 2 and 1 tokens, have no token in common: choose"):
        SharedTokensModel(TableModel([[1.0]]), ToyTokenizer(b"ab", None), ToyTokenizer(b"b"))


TO_DRAFT = Translation(LARGER_TARGET, LARGER_DRAFT)
TO_LITTLE = Translation(LARGER_DRAFT, ToyTokenizer(b"a", b"\xc3", b"b"))
TO_BYTES = Translation(LARGER_TARGET, ToyTokenizer(b"a", b"\xc3", b"\xa9"))


@pytest.mark.parametrize(
    ("translation", "tokens", "whole", "unfinished"),
    [
        (TO_DRAFT, [0, 1, 2], [5, 5, 1, 1], [5, 5, 1, 1]),  # "aabb", in which the draft's longest tokens are these
        (TO_DRAFT, [2, 0], [3], [3]),  # "ba", which the draft has as one token
        (TO_DRAFT, [3, 4], [2], [2]),  # both halves of a character
        (TO_DRAFT, [2, 3], [1], [1]),  # a first half, for which the draft has no token
        (TO_DRAFT, [4, 2], [4, 1], [4, 1]),  # a second half, for which it has one
        (TO_DRAFT, [0, 5, 5, 0], [5, 0, 0, 5], [5, 0, 0, 5]),
        (TO_DRAFT, [], [], []),
        (TO_LITTLE, [2, 5], [1, 0], [1, 0]),  # no token for the second half of é
        (TO_LITTLE, [0, 3], [2, 0], [2, 0]),  # ... nor for the end of a text
        (TO_BYTES, [0, 3], [0, 1], [0]),  # the rest of the character may follow
        (TO_BYTES, [3, 0, 3, 4], [1, 0, 1, 2], [1, 0, 1, 2]),
    ],
)
def test_tokens_in_those_of_another_tokenizer(translation, tokens, whole, unfinished):
    assert translation(tokens) == whole and translation(np.array(tokens, int), is_whole=False) == unfinished


def test_a_draft_sees_the_end_of_a_text_that_is_too_long_for_it():
    seen, text = [], [0, 2, 2, 0, 2, 2, 0, 2]

    class Short(TableModel):
        def __call__(self, tokens, n_last=1):
            seen.append(tokens)
            return super().__call__(tokens, n_last)

    model = SharedTokensModel(Short(DRAFT.probs, n_ctx=4), LARGER_TARGET, LARGER_DRAFT)
    for n in range(9):
        model(text[:n])
    assert seen[0] == [0] and all(1 <= len(tokens) <= 4 for tokens in seen) and seen[-1] == latest(TO_DRAFT(text), 4)
    for n, room in itertools.product(range(30), range(1, 9)):
        kept = latest([*range(n)], room)
        assert kept == [*range(n)][n - len(kept) :] and min(n, room // 2 + 1) <= len(kept) <= room


# ------------------------------------------------------------------------------------------------ real tokenizers


def any_text(rng, n=12):
    """Code points of all planes, as many of the first ones as of all others."""
    return "".join(chr(rng.integers(0, most)) for most in rng.choice([0x100, 0x800, 0x10000, 0x110000], n))


@pytest.mark.parametrize("n", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_greedy_texts_are_those_of_the_target_alone(n, gpt2_tokenizer, tiny_pair):
    """After any characters, and after any tokens, which may be no text; either tokenizer may be the target's."""
    rng, greedy, tokenizers = np.random.default_rng(0), Sampling(0), (tiny_pair[2], gpt2_tokenizer)
    models = [random_gpt2(HParams(one.n_vocab, 96, 8, 2, 1)) for one in tokenizers]
    for i in range(n):
        (target, draft), (of_target, of_draft) = models[:: 1 - i % 2 * 2], tokenizers[:: 1 - i % 2 * 2]
        draft = random_gpt2(HParams(draft.n_vocab, 40, 8, 2, 1), seed=1) if i < 2 else draft  # for some texts too short
        prompt = [*of_target.encode(any_text(rng)), *rng.integers(0, target.n_vocab, 9).tolist()]
        wanted = sp.AutoregressiveSampler(target, sampling=greedy).generate(prompt, 16).tokens.tolist()
        for drafter in (
            sp.ModelDrafter(SharedTokensModel(draft, of_target, of_draft)),
            sp.TextDrafter(sp.ModelDrafter(draft), of_target, of_draft, n_ctx=draft.n_ctx),
        ):
            found = SpeculativeSampler(target, drafter, K=4, sampling=greedy).generate(prompt, 16)
            assert found.tokens.tolist() == wanted and found.stats.drafted > 0
