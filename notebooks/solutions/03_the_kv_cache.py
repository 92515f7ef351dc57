"""Solutions to the exercises of 03_the_kv_cache.ipynb."""

import math

import numpy as np

import gpt2np
from gpt2np.cache import KVCache
from gpt2np.reference import softmax


def n_that_stay(cached, tokens, n_last):
    """How many of the cached tokens can stay for a call with `tokens`, int.

    Parameters
    ----------
    cached : list of int
        The tokens whose keys and values are in the cache.
    tokens : list of int
        The whole sequence of the call.
    n_last : int
        The call must return the logits of the last n_last tokens. Logits are not cached,
        so these tokens have to be run in any case.

    Examples
    --------
    >>> n_that_stay([5, 6, 7, 8], [5, 6, 9], n_last=1)
    2
    >>> n_that_stay([5, 6, 7], [5, 6, 7], n_last=1)
    2
    """
    # Count while both agree, and stop before the tokens whose logits are wanted.
    n = 0
    while n < min(len(cached), len(tokens) - n_last) and cached[n] == tokens[n]:
        n += 1
    return n


def attend(q, k, v):
    """Causal attention of the last n_new of n_seq tokens, for one head.

    Parameters
    ----------
    q : array [n_new, d_head]
        The queries of the new tokens, at the positions n_seq - n_new to n_seq - 1.
    k, v : arrays [n_seq, d_head]
        The keys and values of all tokens, the cached ones first.

    Returns
    -------
    array [n_new, d_head]
        Each new token's sum of the values of all tokens up to itself, weighted by the
        softmax of q · k / √d_head.
    """
    # The new token in row i is at position n_past + i, so the diagonal of the mask moves n_past columns to the right.
    n_new, n_seq = len(q), len(k)
    visible = np.tri(n_new, n_seq, n_seq - n_new, dtype=bool)
    scores = np.where(visible, q @ k.T / math.sqrt(q.shape[1]), -np.inf)
    return softmax(scores) @ v


class CachedModel:
    """A language model that runs only the new tokens; its logits depend on all of them.

    Attributes
    ----------
    params, hparams
        For `gpt2np.forward(new_tokens, params, n_head, n_last, cache)`.
    n_vocab, n_ctx : int
    cache : KVCache
        It contains `cache.length` tokens: `forward` appends, `cache.truncate` forgets.
    """

    def __init__(self, params, hparams):
        self.params, self.hparams = params, hparams
        self.n_vocab, self.n_ctx = hparams.n_vocab, hparams.n_ctx
        h = hparams
        self.cache = KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head)
        # add what you need
        self.tokens = []  # those in the cache

    def __call__(self, tokens, n_last=1):
        """Logits [n_last, n_vocab] float32, of the last n_last tokens.

        `tokens` is the whole sequence, a list or an array. It belongs to the caller, who
        may change it later.
        """
        # Compare, truncate, run the rest: no other code ever truncates the cache. The list is a copy of the caller's.
        tokens = [int(token) for token in tokens]
        n = n_that_stay(self.tokens, tokens, n_last)
        self.cache.truncate(n)
        self.tokens = tokens
        return gpt2np.forward(tokens[n:], self.params, self.hparams.n_head, n_last, self.cache)
