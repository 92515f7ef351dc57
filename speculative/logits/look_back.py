"""History-dependent logits processors: penalties for repetition, a ban on repeated n-grams, a minimum length.

Each is a stateless function of one row's logits and the tokens before it, for `Sampling(processors=...)`. Row i of a
draft sees the prompt, the accepted tokens and the first i draft tokens, but no rejected tokens and no siblings. So
every exact verifier stays exact with it.

Names and meanings follow vLLM (presence_penalty, frequency_penalty, min_tokens) and Hugging Face's `generate`
(no_repeat_ngram_size). The two penalties and the minimum length count new tokens only, while n-grams are searched for
in the prompt as well. Elsewhere the same name may mean something else: llama.cpp's presence
and frequency penalties look at the last 64 tokens, including the prompt.
Source: Keskar et al., arXiv:1909.05858, section 4.1, for penalties in general; presence and frequency as in OpenAI's
API.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .probs import check


@dataclass(frozen=True)
class PresencePenalty:
    """Subtracts `penalty` from the logit of each token that occurs among the new tokens.

    Parameters
    ----------
    penalty
        Below 0 it rewards repetition.
    n_prompt
        The number of tokens in the prompt, which are not counted.

    Examples
    --------
    >>> PresencePenalty(1.5, n_prompt=2)(np.zeros(3), [0, 0, 2, 2])
    array([ 0. ,  0. , -1.5])
    """

    penalty: float
    n_prompt: int

    def __post_init__(self):
        check("a penalty from -1e100 to 1e100", self.penalty, lambda value: abs(value) <= 1e100)

    def __call__(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        return logits - self.penalty * (counts(tokens[self.n_prompt :], len(logits)) > 0)


class FrequencyPenalty(PresencePenalty):
    """Subtracts `penalty` from the logit of each token once per occurrence of the token among the new tokens.

    Parameters as in `PresencePenalty`.

    >>> FrequencyPenalty(1.5, n_prompt=2)(np.zeros(3), [0, 0, 2, 2])
    array([ 0.,  0., -3.])
    """

    def __call__(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        return logits - self.penalty * counts(tokens[self.n_prompt :], len(logits))


@dataclass(frozen=True)
class NoRepeatNGram:
    """Bans each token that would complete an n-gram that occurs earlier in the text, including the prompt.

    Parameters
    ----------
    size
        The n of the n-grams, 1 or more; with 1, no token occurs twice.

    Examples
    --------
    >>> NoRepeatNGram(2)(np.zeros(3), [0, 1, 0, 2, 0])  # 0 was followed by 1 and by 2
    array([  0., -inf, -inf])
    """

    size: int

    def __post_init__(self):
        check("an n-gram size of 1 or more", self.size, lambda value: operator.index(value) >= 1)

    def __call__(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        n = self.size - 1
        last = tokens[len(tokens) - n :]
        banned = [tokens[i + n] for i in range(len(tokens) - n) if tokens[i : i + n] == last]
        return without(logits, banned)


@dataclass(frozen=True)
class MinTokens:
    """Bans the token `end`, or several, until there are `least` new tokens.

    Parameters
    ----------
    least
        How many new tokens.
    end
        The token that ends a text, or a list of them: the sampler's `stop_tokens`.
    n_prompt
        The number of tokens in the prompt, which are not counted.

    Examples
    --------
    >>> MinTokens(2, end=0, n_prompt=1)(np.zeros(2), [1, 1])
    array([-inf,   0.])
    """

    least: int
    end: int | list[int]
    n_prompt: int

    def __call__(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        return without(logits, self.end) if len(tokens) - self.n_prompt < self.least else logits


def counts(tokens, n_vocab):
    """The number of times each token occurs [n_vocab]."""
    return np.bincount(np.array(tokens, dtype=np.intp), minlength=n_vocab)


def without(logits, tokens):
    """The logits with these tokens banned."""
    logits = logits.copy()
    logits[tokens] = -np.inf
    return logits
