"""The cache of one layer: keys and values in the layout of attention.py, and attention over them."""

import numpy as np

from . import matmul
from .attention import PIECE, moved_together, padded, round_up, skips_zeros, triangle, weighted_sums
from .memory import aligned_zeros


class LayerCache:
    """Keys [n_head, d_head, n_columns] and values [n_head, n_columns, at least d_head + 1], float32.

    They grow with the text, up to n_ctx tokens. `whole` is the cache of all layers; `append` adds after its first
    `length` tokens, or without `whole` at slot 0.
    """

    def __init__(self, n_head, n_ctx, d_head, strategy=None, whole=None):
        self.strategy = strategy or matmul.strategy(n_ctx, d_head)
        self.whole, self.n_seq = whole, 0
        self.n_ctx, self.shape = n_ctx, (n_head, d_head)
        self.keys, self.values = self.room_for(min(n_ctx, PIECE))

    def room_for(self, n_tokens):
        """New arrays for the keys and the values of this many tokens."""
        n_head, d_head = self.shape
        n_columns = round_up(n_tokens, PIECE)
        return aligned_zeros((n_head, d_head, n_columns)), aligned_zeros((n_head, n_columns, round_up(d_head + 1)))

    def fit(self, n_seq):
        """Make room for n_seq tokens. If there is too little room, at least double it."""
        n = self.keys.shape[2]
        if n_seq > n:
            keys, values = self.room_for(min(self.n_ctx, max(2 * n, n_seq)))
            keys[..., :n], values[:, :n] = self.keys, self.values[:, :n]
            self.values = values  # first: Ctrl-C may come now, and the width of the keys says how much room there is
            self.keys = keys

    def append(self, k, v):
        """Append k and v [n_head, n_new, d_head]; `attend` looks at all tokens up to these."""
        n_past = self.whole.length if self.whole else 0
        n_new, d_head = k.shape[1:]
        self.n_seq = n_past + n_new
        self.fit(self.n_seq)
        self.keys[..., n_past : self.n_seq] = k.transpose(0, 2, 1)
        self.values[:, n_past : self.n_seq, :d_head] = v
        self.values[:, n_past : self.n_seq, d_head] = 1

    def move(self, slots, begin):
        """Copy the keys and values in these slots to the slots from `begin` on."""
        end = begin + len(slots)
        self.keys[..., begin:end] = self.keys[..., slots]
        self.values[:, begin:end] = self.values[:, slots]

    def attend(self, q, mask=None):
        """softmax(q k / √d_head + mask) v for the last n_new tokens: [n_new, n_embd], the heads side by side.

        q is [n_head, n_new, d_head]. The last rows of the mask [.., n_seq] are for these tokens; without one, each
        attends to itself and to all before it.
        """
        n_head, n_new, d_head = q.shape
        n_columns = self.keys.shape[2]
        n = padded(self.n_seq, n_columns, self.strategy)
        keys, values = self.keys[..., :n], self.values[:, :n]
        sums_of = weighted_sums
        if mask is None:
            mask = triangle(min(n_columns, 1 << (n - 1).bit_length()))[: self.n_seq]  # few sizes: rarely built
        elif not skips_zeros(self.strategy):
            sums_of = moved_together
        sums = sums_of(q, keys, values, mask[-n_new:], self.strategy)
        heads = np.empty((n_new, n_head, d_head), np.float32)
        np.divide(sums[..., :d_head], sums[..., d_head, None], out=heads.transpose(1, 0, 2))
        return heads.reshape(n_new, -1)


def cache_for(w, n_head, n_ctx):
    """An empty LayerCache for the layer whose c_attn is w [n_embd, 3 * n_embd], packed or an array."""
    return LayerCache(n_head, n_ctx, w.shape[0] // n_head, getattr(w, "strategy", None))
