"""Logits processors: what each makes of a row and of the text before it, and how `Sampling` applies them."""

import re

import numpy as np
import pytest

from speculative import FrequencyPenalty, MinTokens, NoRepeatNGram, PresencePenalty, Sampling

INF = np.inf
LOGITS = np.array([1.0, 2.0, 3.0])
LOGITS.setflags(write=False)


@pytest.mark.parametrize(
    ("processor", "text", "wanted"),
    [
        (PresencePenalty(0.5, 2), [0, 1, 2, 2], [1, 2, 2.5]),
        (PresencePenalty(-0.5, 0), [0, 1, 1], [1.5, 2.5, 3]),
        (FrequencyPenalty(0.5, 2), [0, 1, 2, 2], [1, 2, 2]),
        (FrequencyPenalty(0.5, 2), [0], [1, 2, 3]),  # a shorter text has no new tokens
        (NoRepeatNGram(1), [0, 2], [-INF, 2, -INF]),
        (NoRepeatNGram(2), [1, 2, 1], [1, 2, -INF]),  # 1 was followed by 2
        (NoRepeatNGram(2), [1], [1, 2, 3]),
        (NoRepeatNGram(3), [0, 0, 0], [-INF, 2, 3]),  # occurrences may overlap
        (NoRepeatNGram(3), [0, 1, 2, 2, 1, 0, 1], [1, 2, -INF]),
        (NoRepeatNGram(5), [0, 1], [1, 2, 3]),
        (MinTokens(2, 1, n_prompt=3), [0, 0, 0, 0], [1, -INF, 3]),
        (MinTokens(2, 1, n_prompt=3), [0, 0, 0, 0, 0], [1, 2, 3]),
    ],
    ids=str,
)
def test_each_by_hand(processor, text, wanted):
    np.testing.assert_array_equal(processor(LOGITS, text), wanted)


REFUSED = [
    (lambda: PresencePenalty(INF, 0), "expected a penalty from -1e100 to 1e100, got inf"),
    (lambda: FrequencyPenalty("1", 0), "expected a penalty from -1e100 to 1e100, got '1'"),
    (lambda: FrequencyPenalty(1e101, 0), "expected a penalty from -1e100 to 1e100, got 1e+101"),
    (lambda: NoRepeatNGram(0), "expected an n-gram size of 1 or more, got 0"),
    (lambda: Sampling(processors=[NoRepeatNGram(1)])(LOGITS[None]), "a logits processor looks at the tokens before"),
    (lambda: Sampling(processors=[lambda *_: None])(LOGITS[None], [0]), "return logits of shape (3,), got ()"),
]


def test_what_is_refused():
    for wrong, words in REFUSED:
        with pytest.raises(ValueError, match=re.escape(words)):
            wrong()


# ------------------------------------------------------------------------------------------------ in Sampling


@pytest.mark.parametrize(
    ("parents", "wanted"),
    [
        ((), [(9, 8), (9, 8, 7), (9, 8, 7, 6), (9, 8, 7, 6, 5)]),
        ([-1, -1, 0], [(9, 8), (9, 8, 7), (9, 8, 6), (9, 8, 7, 5)]),
    ],
)
def test_each_row_gets_the_text_on_its_path(parents, wanted):
    """And copies, so that writing to them harms nobody."""
    seen = []

    def writing(logits, tokens):
        seen.append(tuple(tokens))
        tokens.clear()
        logits[:] = 0
        return LOGITS

    rows = Sampling(processors=[writing, writing])(np.tile(LOGITS, (4, 1)), [9, 8, 7, 6, 5], parents)
    assert seen[::2] == seen[1::2] == wanted
    np.testing.assert_array_equal(rows, np.tile(Sampling()(LOGITS[None]), (4, 1)))


def test_they_come_after_the_repetition_penalty_and_before_the_temperature():
    sampling = Sampling(2, repetition_penalty=2, processors=[FrequencyPenalty(1, 0)])
    wanted = np.exp(np.array([[1, 2, 3 / 2 - 2]]) / 2)
    np.testing.assert_allclose(sampling(LOGITS[None], [2, 2]), wanted / wanted.sum())
    assert sampling.processors == (FrequencyPenalty(1, 0),) and hash(sampling) is not None


def test_a_processor_that_would_leave_no_token_is_passed_over():
    only_0, not_0 = (lambda row, tokens: np.where([1, 0, 0], row, -INF)), MinTokens(9, 0, 0)
    np.testing.assert_array_equal(Sampling(processors=[only_0, not_0])(LOGITS[None], [1]), [[1, 0, 0]])
    assert Sampling(processors=[not_0, only_0])(LOGITS[None], [1])[0, 0] == 0
    assert (Sampling(processors=[NoRepeatNGram(1)])(LOGITS[None], [0, 1, 2]) > 0).all()
