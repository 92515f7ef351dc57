"""The layers that models run: reference.py with a cache and in place. Read the two files side by side.

The layers, their order and, up to rounding, their results are the same as in reference.py. There are four differences,
each marked in the code by its number:

    1. Cache. x holds only the new tokens, which attend to the cached keys and values as well.
    2. In place. A step overwrites an array that the same function made, because an extra array of this size costs as
       much as the arithmetic. Arguments are never written to.
    3. Batch-invariant. A row's result is bitwise identical whatever other rows are computed with it: the weights are
       packed and multiplied in pieces, and attention's inner loop also works in pieces (kernels/).
    4. Last rows. Most tokens of a prompt need no logits. For these, the last block computes only keys and values.

Leaves out: dropout, and everything else that only training needs.

Shapes: n_new tokens are computed now, n_past are in the cache, n_seq = n_past + n_new; n_last rows are requested.
"""

import math

import numpy as np

from .kernels.layer_cache import cache_for
from .kernels.threads import by_rows

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


def exact_gelu(x):
    """x Φ(x), which `gelu` approximates: for models whose config says "gelu". The error is below 5e-7.

    Φ(-|x|) is a polynomial in t times exp(-x²/2): Abramowitz and Stegun, "Handbook of Mathematical Functions", equation
    7.1.26. NumPy has no error function.
    """
    z = np.abs(x) * math.sqrt(0.5)
    t = 1 / (1 + 0.3275911 * z)
    tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    tail *= 0.5 * np.exp(-z * z)
    return x * np.where(x < 0, tail, 1 - tail)


def layer_norm(x, g, b, eps=1e-5):
    """g (x - mean) / √(variance + eps) + b for each row, in place (2.); the variance uses the centred row."""
    n_embd = x.shape[-1]
    y = x - np.add.reduce(x, axis=-1, keepdims=True) / n_embd
    variance = np.vecdot(y, y)[..., None] / n_embd  # [n_new, n_embd] -> [n_new, 1]
    y /= np.sqrt(variance + eps)
    y *= g
    y += b
    return y


def linear(x, w, b):
    """x @ w + b; in a loaded model, w is packed (3.)."""
    y = x @ w  # [n_new, n_in] -> [n_new, n_out]
    y += b
    return y


def last_rows(x, last):
    """The rows `last` of x [..., n_new, n], a slice or an array of int; all of them if it is None (4.)."""
    return x if last is None else x[..., last, :]


def attention(x, c_attn, c_proj, n_head, cache=None, mask=None, last=None):
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
    last : slice or array of int, optional
        The rows of the result, such as slice(-n_last, None); by default, all rows.
    """
    n_new = len(x)
    qkv = linear(x, **c_attn)  # [n_new, n_embd] -> [n_new, 3 * n_embd]
    q, k, v = qkv.reshape(n_new, 3, n_head, -1).transpose(1, 2, 0, 3)  # -> 3 of [n_head, n_new, d_head]
    cache = cache or cache_for(c_attn["w"], n_head, n_new)
    cache.append(k, v)  # 1.
    heads = cache.attend(last_rows(q, last), mask)  # 3. and 4. -> [n_last, n_embd]
    return linear(heads, **c_proj)


def mlp(x, c_fc, c_proj, activation=gelu):
    """Two linear layers with a gelu between them, applied to each token separately."""
    x = by_rows(activation, linear(x, **c_fc))  # [n_new, n_embd] -> [n_new, 4*n_embd]
    return linear(x, **c_proj)  # -> [n_new, n_embd]


def block(x, params, n_head, cache=None, mask=None, last=None):
    """A transformer block on the residual stream x [n_new, n_embd]; cache, mask and last as in `attention`."""
    normed = layer_norm(x, **params["ln_1"])
    x = last_rows(x, last) + attention(normed, **params["attn"], n_head=n_head, cache=cache, mask=mask, last=last)
    x += mlp(layer_norm(x, **params["ln_2"]), **params["mlp"])  # 2. x was made in this function
    return x
