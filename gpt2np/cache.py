"""The keys and values of the tokens already seen, so that each token goes through the model once.

Attention is the only layer that looks at other tokens, and of those it needs only k and v. Without a cache, n tokens
one after the other cost 1 + 2 + ... + n token passes; with one, n. The arrays are laid out once for the whole context,
so growing copies nothing, and forgetting is setting a length: what lies beyond it is overwritten later.
Leaves out: which tokens these are; model.py keeps the token ids beside the cache and decides what to forget.
Next: model.py
"""

import numpy as np


class KVCache:
    """Keys and values of the first `length` tokens in every layer, with room for n_ctx.

    It takes 2 * n_layer * n_ctx * n_embd numbers of `dtype`, each page of memory when it is first written.
    """

    def __init__(self, n_layer, n_head, n_ctx, d_head, dtype=np.float32):
        self.keys = np.empty((n_layer, n_head, n_ctx, d_head), dtype)
        self.values = np.empty((n_layer, n_head, n_ctx, d_head), dtype)
        self.length = 0
        self.layers = [LayerCache(self, i) for i in range(n_layer)]

    def truncate(self, length):
        """Forget all tokens from position `length` on."""
        self.length = min(self.length, length)


class LayerCache:
    """One layer of a KVCache, as `layers.attention` sees it."""

    def __init__(self, cache, layer):
        self.cache = cache
        self.keys, self.values = cache.keys[layer], cache.values[layer]

    def append(self, k, v):
        """Write k and v [n_head, n_new, d_head] behind the past; return views of past and new, [n_head, n_seq, d_head].

        The cache's length stays until every layer has appended; `model.forward` then sets it.
        """
        n_past, n_seq = self.cache.length, self.cache.length + k.shape[1]
        self.keys[:, n_past:n_seq] = k
        self.values[:, n_past:n_seq] = v
        return self.keys[:, :n_seq], self.values[:, :n_seq]
