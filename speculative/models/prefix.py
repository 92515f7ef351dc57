"""The first step of every adapter: how much of its cache can be reused by the next call.

To this library a language model is a function of its tokens (interfaces.py); to an engine it is a cache that grows. So
an adapter remembers the tokens in the engine's cache, compares them with those of the call, removes those that differ,
and runs the rest. Samplers, drafters and experiments then work as they are.
Limitation: bitwise equality is not guaranteed. An engine computes a position among K + 1 in a different order than
alone, so the greedy text with a draft is the engine's own except where two logits differ by less than rounding.
"""

import operator

from ..tree import n_common


def split(cached, tokens, n_last, n_ctx):
    """(number of cached tokens to keep, tokens as a list of int). The rest, at least n_last tokens, must be run.

    >>> split([5, 6, 7, 8], [5, 6, 9], 1, 1024)
    (2, [5, 6, 9])
    """
    tokens, n_last = [operator.index(token) for token in tokens], operator.index(n_last)
    if not 1 <= len(tokens) <= n_ctx:
        raise ValueError(f"expected 1 to n_ctx = {n_ctx} tokens, got {len(tokens)}")
    if not 1 <= n_last <= len(tokens):
        raise ValueError(f"expected n_last from 1 to the number of tokens, {len(tokens)}, got {n_last}")
    return min(n_common(cached, tokens), len(tokens) - n_last), tokens


def checked_n_vocab(n_vocab: int | None, n_of_model: int) -> int:
    """n_vocab, or the model's number of tokens if n_vocab is None. ValueError if the model has fewer."""
    if n_vocab is not None and not 1 <= n_vocab <= n_of_model:
        raise ValueError(f"expected n_vocab from 1 to the model's {n_of_model} tokens, got {n_vocab}")
    return n_vocab or n_of_model
