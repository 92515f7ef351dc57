"""The KV cache: the keys and values of earlier tokens, so that each token goes through the model only once.

Attention is the only layer that looks at other tokens, and all it needs of them is k and v. Generating n tokens one by
one takes 1 + 2 + ... + n token passes without a cache and n with one. The arrays are allocated once, for the whole
context, so appending copies nothing. To forget tokens is to reduce a length: what lies beyond it is overwritten later.
Leaves out: which tokens these are; token_tree.py compares them and finds what to keep.
Next: token_tree.py
"""

import numpy as np

from .matmul import PIECE, padded, round_up
from .memory import aligned_zeros


class KVCache:
    """Keys and values of the first `length` tokens in every layer, with room for n_ctx.

    It has 1.13 times 2 * n_layer * n_ctx * n_embd entries of `dtype` for GPT-2's shapes, and 1.25 times for
    tiny-target's. The operating system commits the whole key array at the first token, because keys are stored
    transposed; the value array is committed as the text grows.
    """

    def __init__(self, n_layer, n_head, n_ctx, d_head, dtype=np.float32):
        self.length = 0
        self.layers = [LayerCache(self, n_head, n_ctx, d_head, dtype) for _ in range(n_layer)]

    def truncate(self, length):
        """Forget all tokens from position `length` on."""
        self.length = min(self.length, length)

    def keep(self, slots):
        """Append what lies in these slots, beyond the length: the branch of a tree along which the text continues."""
        n = self.length
        if slots != list(range(n, n + len(slots))):
            for layer in self.layers:
                layer.keys[..., n : n + len(slots)] = layer.keys[..., slots]
                layer.values[:, n : n + len(slots)] = layer.values[:, slots]
        self.length = n + len(slots)  # set last: if the copy is interrupted, the first n are right


class LayerCache:
    """One layer of a KVCache, laid out for the two products of `layers.attention`.

    keys [n_head, d_head, n_columns] are transposed. Each row of values [n_head, n_columns, d_head + 1] ends in a 1, so
    that one product gives both the weighted sum of the values and the sum of the weights. Both are padded, see
    matmul.py.
    """

    def __init__(self, cache, n_head, n_ctx, d_head, dtype):
        self.cache = cache
        self.n_columns = round_up(n_ctx, PIECE)
        self.keys = aligned_zeros((n_head, d_head, self.n_columns), dtype)
        self.values = aligned_zeros((n_head, self.n_columns, round_up(d_head + 1)), dtype)

    def append(self, k, v, strategy=None):
        """Append k and v [n_head, n_new, d_head]; returns n_past, and the keys and values of all tokens, with padding.

        The cache's length does not change here: `model.forward` sets it when every layer has appended.
        """
        n_past, n_seq, d_head = self.cache.length, self.cache.length + k.shape[1], k.shape[2]
        self.keys[..., n_past:n_seq] = k.transpose(0, 2, 1)
        self.values[:, n_past:n_seq, :d_head] = v
        self.values[:, n_past:n_seq, d_head] = 1
        n = padded(n_seq, self.n_columns, strategy)
        return n_past, self.keys[..., :n], self.values[:, :n]
