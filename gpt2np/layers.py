"""reference.py with a cache, in place, padded: the layers that models run. Read the two side by side.

The layers are those of reference.py, in the same order and with the same results up to rounding; the softmax is a part
of `attend`. There are six differences, each marked in the code by its number:

    1. Cache. x holds only the new tokens, which attend to the cached keys and values as well.
    2. In place. A step overwrites an array that the same function made: at these sizes an extra array costs as much as
       the arithmetic. Arguments are never written to.
    3. Padded. Attention's products have a multiple of 16 columns, so that the kernels always add in the same order. The
       mask gives the padding columns weight 0.
    4. A column of ones. Every row of the values ends in a 1, so that one product gives both the weighted sum of the
       values and the sum of the weights: the numerator and the denominator of the softmax.
    5. Trees. With a mask, a token may attend to tokens between which others lie that it does not see (cache.py).
    6. Last rows. Of most tokens of a prompt, the last block has to give nothing but keys and values: nobody asks for
       the logits that follow them.

With 3. to 5., and packed weights (kernels/), a row's result is bitwise identical whatever other rows are computed
with it (batch-invariant). Where it pays, as for a prompt, several threads share the work (kernels/threads.py).
Leaves out: dropout, and everything else that only training needs.

Shapes: n_new tokens are computed now, n_past are in the cache, n_seq = n_past + n_new; n_last rows are asked for.
"""

import math
from functools import lru_cache

import numpy as np

from .cache import KVCache
from .kernels.matmul import padded, product, skips_zeros, strategy_of
from .kernels.threads import MANY, in_parts

LONG = 384  # tokens; from here on, attention takes a prompt in halves
GELU_SCALE = math.sqrt(2 / math.pi)


def gelu(x):
    """0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), with x³ as x (x²), in place (2.)."""
    y = x * x
    y *= GELU_SCALE * 0.044715
    y += GELU_SCALE
    y *= x
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= 0.5
    return y


def layer_norm(x, g, b, eps=1e-5):
    """g (x - mean) / √(variance + eps) + b for each row, in place (2.); the variance is taken of the centred row."""
    n_embd = x.shape[-1]
    y = x - np.add.reduce(x, axis=-1, keepdims=True) / n_embd
    variance = np.vecdot(y, y)[..., None] / n_embd  # [n_new, n_embd] -> [n_new, 1]
    y /= np.sqrt(variance + eps)
    y *= g
    y += b
    return y


def linear(x, w, b):
    """x @ w + b; in a loaded model, w is packed (kernels/matmul.py)."""
    y = x @ w  # [n_new, n_in] -> [n_new, n_out]
    y += b
    return y


@lru_cache(maxsize=8)
def triangle(n):
    """The causal mask [n, n] float32: 0 where row i attends to column j, that is where j <= i; -inf elsewhere."""
    mask = np.triu(np.full((n, n), -np.inf, dtype=np.float32), 1)
    mask.setflags(write=False)
    return mask


def attention(x, c_attn, c_proj, n_head, cache=None, mask=None, n_last=0):
    """softmax(q k / √d_head + mask) v: the new tokens attend to the cached tokens and to each other.

    Parameters
    ----------
    x : array [n_new, n_embd] float32
    c_attn, c_proj : dict
        The parameters of the two linear layers.
    n_head : int
    cache : LayerCache, optional
        The new keys and values are appended to it. Without one, x holds all tokens.
    mask : array [n_new, n_seq] float32, optional
        Added to the scores: 0 where a new token attends to the token in that slot of the cache, -inf elsewhere. By
        default a token attends to its own slot and to all slots before it.
    n_last : int, optional
        The result has the last n_last rows; by default, all rows.
    """
    n_new, n_embd = x.shape
    d_head = n_embd // n_head
    qkv = linear(x, **c_attn)  # [n_new, n_embd] -> [n_new, 3 * n_embd]
    q, k, v = qkv.reshape(n_new, 3, n_head, d_head).transpose(1, 2, 0, 3)  # -> 3 of [n_head, n_new, d_head]
    cache = cache or KVCache(1, n_head, n_new, d_head).layers[0]
    strategy = strategy_of(c_attn["w"], n_embd)
    n_past, keys, values = cache.append(k, v, strategy)  # 1. and 3.
    q = q[:, -n_last:]  # 6. with 0, all of them
    if mask is None:
        mask = triangle(min(cache.n_columns, 1 << (keys.shape[2] - 1).bit_length()))  # of few sizes: seldom built
        sums = attend(q, keys, values, mask[n_past : n_past + n_new][-n_last:], strategy)
    else:
        sums = (attend if skips_zeros(strategy) else closed_up)(q, keys, values, mask[-n_last:], strategy)
    heads = np.empty((q.shape[1], n_head, d_head), np.float32)
    np.divide(sums[..., :d_head], sums[..., d_head, None], out=heads.transpose(1, 0, 2))
    return linear(heads.reshape(-1, n_embd), **c_proj)


def attend(q, keys, values, mask, strategy):
    """The sums of softmax(q k / √d_head + mask) v before the division, [n_head, n_new, d_head + 1], padded."""
    if len(mask) >= LONG:  # the first half need not look at all columns
        half = len(mask) // 2
        n_seen = 1 + np.flatnonzero((mask[:half] == 0).any(axis=0))[-1]
        n = padded(n_seen, keys.shape[2], strategy)
        first = attend(q[:, :half], keys[..., :n], values[:, :n], mask[:half], strategy)
        return np.concatenate([first, attend(q[:, half:], keys, values, mask[half:], strategy)], axis=1)

    def of_heads(q, keys, values):
        scores = product(q, keys, strategy)  # -> [n_head, n_new, n_columns]
        scores *= 1 / math.sqrt(q.shape[-1])  # 2.
        unpadded = scores[..., : mask.shape[1]]
        unpadded += mask[:, : scores.shape[2]]
        if mask.shape[1] < scores.shape[2]:  # 3. the padding, where the mask, unlike the triangle, does not cover it
            scores[..., mask.shape[1] :] = -np.inf
        scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        weights = np.exp(scores, out=scores)  # 2. the numerator of the softmax
        return product(weights, values, strategy)  # 4. the last column sums the weights

    sums = np.empty((*q.shape[:2], values.shape[2]), np.float32)
    return in_parts(of_heads, (q, keys, values), sums, keys.size, n_rows=len(mask))


def closed_up(q, keys, values, mask, strategy):
    """`attend` for kernels where a zero weight between others changes bits: 5. what a row sees is moved together first.

    Row by row; the slots that are written to meanwhile get their contents back.
    """
    rows = []
    for i, row in enumerate(mask):
        seen = np.flatnonzero(row == 0)
        first = np.argmax(np.append(seen, -1) != np.arange(len(seen) + 1))  # of those that have to move
        slots = slice(first, len(seen))
        saved = keys[..., slots].copy(), values[:, slots].copy()
        keys[..., slots], values[:, slots] = keys[..., seen[slots]], values[:, seen[slots]]
        rows.append(attend(q[:, i : i + 1], keys, values, np.zeros((1, len(seen)), np.float32), strategy))
        keys[..., slots], values[:, slots] = saved
    return np.concatenate(rows, axis=1)


def mlp(x, c_fc, c_proj):
    """Two linear layers with a gelu between them, applied to each token separately."""
    hidden = linear(x, **c_fc)  # [n_new, n_embd] -> [n_new, 4 * n_embd]
    hidden = in_parts(gelu, (hidden,), hidden, 48 * hidden.shape[1], n_rows=len(x), most=MANY)  # 48 products an entry
    return linear(hidden, **c_proj)  # -> [n_new, n_embd]


def block(x, params, n_head, cache=None, mask=None, n_last=0):
    """A transformer block on the residual stream x [n_new, n_embd]; cache, mask and n_last as in `attention`."""
    x = x[-n_last:] + attention(
        layer_norm(x, **params["ln_1"]), **params["attn"], n_head=n_head, cache=cache, mask=mask, n_last=n_last
    )
    x += mlp(layer_norm(x, **params["ln_2"]), **params["mlp"])  # 2. this x was made here
    return x
