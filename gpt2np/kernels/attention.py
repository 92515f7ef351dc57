"""Attention's inner loop: three lines of reference.py, batch-invariant, for the new tokens and a cache.

Padding. The matmuls have a multiple of 16 columns, so that the kernels always add in the same order. The mask
    sets the padding's weight to 0.
A column of ones. Every row of the values ends in a 1, so that one matmul computes both the weighted sum of the values
    and the sum of the weights: the numerator and the denominator of the softmax.
Trees. Between the tokens that a token attends to, there may be others that it does not see. Where zero weights between
    nonzero ones change bits, the columns that a row sees are moved together first.
"""

import math
from functools import lru_cache

import numpy as np

from .panels import N_ROWS, SMALL, grouped
from .threads import in_parts

PIECE = 128  # maximum rows and columns of one matmul with "slabs"
LONG = 384  # tokens; a longer prompt is split in halves


def product(x, w, strategy):
    """x [n, n_new, n_in] @ w [n, n_in, n_out] -> [n, n_new, n_out], for each of the n heads.

    It is batch-invariant if n_out is a multiple of 16 and 2 * n_in * n_out (two rows) is at most SMALL, even if w has
    more rows where x is zero. With "slabs", all calls have the same shape, whatever the number of tokens: a sum
    over tokens is accumulated in pieces of PIECE tokens, and scores are computed PIECE tokens at a time.
    """
    n, n_new, n_in = x.shape
    n_out = w.shape[2]
    if strategy == "plain":
        return np.matmul(x, w)
    if strategy == "panels":
        most = max(2, min(N_ROWS, SMALL // (n_in * n_out) // 2 * 2))
        if n_new <= most and n_new % 2 == 0:  # one matmul for each head
            return np.matmul(x, w)
        groups = grouped(x, most)
        return np.matmul(groups, w[:, None], order="C").reshape(n, -1, n_out)[:, :n_new]
    deep = PIECE if n_in % PIECE == 0 else n_in
    wide = PIECE if n_out % PIECE == 0 else n_out
    y = np.empty((n, n_in // deep, n_new, n_out), np.float32)
    np.matmul(  # each [n, n_in // deep, n_new, n_out // wide, ...]
        x.reshape(n, n_new, 1, 1, -1, deep).transpose(0, 4, 1, 2, 3, 5),
        w.reshape(n, -1, 1, deep, n_out // wide, wide).swapaxes(3, 4),
        y.reshape(n, -1, n_new, n_out // wide, 1, wide),
    )
    return y[:, 0] if deep == n_in else np.add.reduce(y, axis=1)


def round_up(n, unit=16):
    """The next multiple of `unit`."""
    return -(-n // unit) * unit


def padded(n, n_columns, strategy):
    """The number of columns, of the cache's n_columns, that are computed for n tokens (see `product`)."""
    return min(n_columns, round_up(n, PIECE if strategy == "slabs" else 16))


@lru_cache
def skips_zeros(strategy):
    """Whether zero weights between others, as on a tree's other branches, leave a sum bitwise unchanged."""
    rng = np.random.default_rng(0)
    weights, values = rng.standard_normal((1, 2, 512), np.float32), rng.standard_normal((1, 512, 80), np.float32)
    seen = np.sort(rng.permutation(512)[:200])
    scattered, together = np.zeros_like(weights), np.zeros_like(weights)
    scattered[..., seen], together[..., :200] = weights[..., seen], weights[..., seen]
    moved = np.concatenate([values[:, seen], values[:, :312]], axis=1)
    return np.array_equal(product(scattered, values, strategy), product(together, moved, strategy))


@lru_cache(maxsize=8)
def triangle(n):
    """The causal mask [n, n] float32: 0 where row i attends to column j (j <= i), -inf elsewhere."""
    mask = np.triu(np.full((n, n), -np.inf, dtype=np.float32), 1)
    mask.setflags(write=False)
    return mask


def weighted_sums(q, keys, values, mask, strategy):
    """The sums of `LayerCache.attend` before the division: [n_head, n_new, d_head + 1], padded.

    The mask is [n_new, n_seq], or [n_head, n_new, n_seq] for few new tokens.
    """
    own = [mask] if mask.ndim == 3 else []
    if not own and len(mask) >= LONG:  # the first half does not need all columns
        half = len(mask) // 2
        n_seen = 1 + np.flatnonzero((mask[:half] == 0).any(axis=0))[-1]
        n = padded(n_seen, keys.shape[2], strategy)
        first = weighted_sums(q[:, :half], keys[..., :n], values[:, :n], mask[:half], strategy)
        return np.concatenate([first, weighted_sums(q[:, half:], keys, values, mask[half:], strategy)], axis=1)

    def of_heads(q, keys, values, mask=mask):
        n_head, n_new, d_head = q.shape
        if strategy == "panels" and n_new % 2:  # add a row of zeros, as both matmuls would
            q, rows = np.zeros((n_head, n_new + 1, d_head), np.float32), q
            q[:, :n_new] = rows
        scores = product(q, keys, strategy)  # -> [n_head, n_new, n_columns]
        scores *= 1 / math.sqrt(d_head)
        n_seq = mask.shape[-1]
        unpadded = scores[:, :n_new, :n_seq]
        unpadded += mask[..., : scores.shape[2]]
        if n_seq < scores.shape[2]:  # a tree's mask, unlike the triangle, does not cover the padding
            scores[..., n_seq:] = -np.inf
        scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        weights = np.exp(scores, out=scores)  # the numerator of the softmax
        return product(weights, values, strategy)[:, :n_new]

    sums = np.empty((*q.shape[:2], values.shape[2]), np.float32)
    return in_parts(of_heads, (q, keys, values, *own), sums, keys.size, n_rows=mask.shape[-2])


def moved_together(q, keys, values, mask, strategy):
    """`weighted_sums`, row by row; slots that are overwritten on the way are restored."""
    rows = []
    for i, row in enumerate(mask):
        # the slots that the row sees are to become 0, 1, 2, ...; the slots before the first gap stay
        seen = np.flatnonzero(row == 0)
        first = np.argmax(np.append(seen, -1) != np.arange(len(seen) + 1))  # the first one that has to move
        slots = slice(first, len(seen))
        # close the gaps: the contents of the overwritten slots are saved first
        saved = keys[..., slots].copy(), values[:, slots].copy()
        keys[..., slots], values[:, slots] = keys[..., seen[slots]], values[:, seen[slots]]
        # now the row sees a prefix of the cache, as if the path to its node were the text, so bits are identical
        all_seen = np.zeros((1, len(seen)), np.float32)
        rows.append(weighted_sums(q[:, i : i + 1], keys, values, all_seen, strategy))
        keys[..., slots], values[:, slots] = saved
    return np.concatenate(rows, axis=1)
