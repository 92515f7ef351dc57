"""The layers of GPT-2 as pure functions, in reading order: each uses only those above it.

Every function takes float32 arrays and returns new ones; no argument is written to. The parameters come in as keyword
arguments under the checkpoint's own names, so that `linear(x, **c_fc)` needs no glue. All of them work without a cache;
`attention` and `block` take the cache of their layer where one is kept (cache.py), and x is then the new tokens alone.
Every row comes out the same to the bit, whatever other rows are computed with it, where the weights are in panels.
Several steps work in place, on an array made in the same function: at these sizes a needless array costs as much as
the arithmetic. Leaves out: dropout, and everything else that only training needs.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); pre-norm blocks as in section 2.3.
Shapes: n_new tokens are computed now, n_past are in the cache, n_seq = n_past + n_new.
Next: cache.py
"""

import math
from functools import lru_cache

import numpy as np

from .cache import KVCache
from .matmul import product, round_up

GELU_SCALE = math.sqrt(2 / math.pi)


def gelu(x):
    """Gaussian error linear unit, 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) (arXiv:1606.08415, section 2)."""
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
    """Each row of x at mean 0 and variance 1, then scaled by g and shifted by b (arXiv:1607.06450, equation 4)."""
    n_embd = x.shape[-1]
    y = x - np.add.reduce(x, axis=-1, keepdims=True) / n_embd
    variance = np.vecdot(y, y)[..., None] / n_embd  # [n_new, n_embd] -> [n_new, 1]
    y /= np.sqrt(variance + eps)
    y *= g
    y += b
    return y


def linear(x, w, b):
    """x @ w + b; the checkpoint stores w as [n_in, n_out], a model that was loaded has it in panels (matmul.py)."""
    y = x @ w  # [n_new, n_in] -> [n_new, n_out]
    y += b
    return y


@lru_cache
def triangle(n):
    """[n, n]: 0 where row i may see column j, that is j <= i, and -inf elsewhere."""
    mask = np.triu(np.full((n, n), -np.inf, dtype=np.float32), 1)
    mask.setflags(write=False)
    return mask


def attention(x, c_attn, c_proj, n_head, cache=None):
    """Causal self-attention of the new tokens over the cached ones and themselves (arXiv:1706.03762, equation 1).

    The columns of the scores are padded, see `matmul.product`; those behind a row's own token have the weight 0.
    """
    n_new, n_embd = x.shape
    d_head = n_embd // n_head
    cache = cache or KVCache(1, n_head, n_new, d_head).layers[0]
    q, k, v = (
        linear(x, **c_attn).reshape(n_new, 3, n_head, d_head).transpose(1, 2, 0, 3)
    )  # 3 of [n_head, n_new, d_head]
    n_past, keys, values = cache.append(k, v)
    scores = product(q, keys, cache.most_rows)  # -> [n_head, n_new, n_seq], padded
    scores *= 1 / math.sqrt(d_head)
    n_behind = scores.shape[2] - n_past
    scores[..., n_past:] += triangle(round_up(max(n_new, n_behind)))[:n_new, :n_behind]
    # Softmax, whose sum comes out of the product with the values: they have a 1 as their last number.
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    weights = np.exp(scores, out=scores)
    heads = product(weights, values, cache.most_rows)  # -> [n_head, n_new, d_head + 1], padded
    y = np.empty((n_new, n_head, d_head), np.float32)
    np.divide(heads[..., :d_head], heads[..., d_head, None], out=y.transpose(1, 0, 2))
    return linear(y.reshape(n_new, n_embd), **c_proj)


def mlp(x, c_fc, c_proj):
    """Two linear layers with a gelu between, n_embd -> 4 * n_embd -> n_embd, on each token by itself."""
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def block(x, params, n_head, cache=None):
    """A transformer block: attention, then the MLP, each of the normalised stream x [n_new, n_embd] and added to it."""
    x = x + attention(layer_norm(x, **params["ln_1"]), **params["attn"], n_head=n_head, cache=cache)
    x += mlp(layer_norm(x, **params["ln_2"]), **params["mlp"])
    return x
