"""The layers of GPT-2 as pure functions, in reading order: each uses only those above it.

Every function takes float32 arrays and returns new ones; no argument is written to. The parameters come in as keyword
arguments under the checkpoint's own names, so that `linear(x, **c_fc)` needs no glue. All of them work without a cache;
`attention` and `block` take the cache of their layer where one is kept (cache.py), and x is then the new tokens alone.
Several steps work in place, on an array made in the same function: at these sizes a needless array costs as much as
the arithmetic. Leaves out: dropout, and everything else that only training needs.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); pre-norm blocks as in section 2.3.
Shapes: n_new tokens are computed now, n_past are in the cache, n_seq = n_past + n_new.
Next: cache.py
"""

import math
from functools import lru_cache

import numpy as np

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


def softmax(x):
    """exp(x) over its sum along the last axis; the largest entry is subtracted first, so that nothing overflows."""
    y = x - np.maximum.reduce(x, axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= np.add.reduce(y, axis=-1, keepdims=True)
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
    """x @ w + b; the checkpoint stores w as [n_in, n_out]."""
    y = x @ w  # [n_new, n_in] -> [n_new, n_out]
    y += b
    return y


@lru_cache
def causal_mask(n_new):
    """[n_new, n_new]: 0 where row i may see column j, that is j <= i, and -inf elsewhere."""
    mask = np.triu(np.full((n_new, n_new), -np.inf, dtype=np.float32), 1)
    mask.setflags(write=False)
    return mask


def split_heads(x, n_head):
    """[n_new, n_embd] -> [n_head, n_new, d_head]"""
    return x.reshape(len(x), n_head, -1).transpose(1, 0, 2)


def attention(x, c_attn, c_proj, n_head, cache=None):
    """Causal self-attention of the new tokens over the cached ones and themselves (arXiv:1706.03762, equation 1)."""
    q, k, v = np.split(linear(x, **c_attn), 3, axis=-1)  # [n_new, n_embd] -> 3 of [n_new, n_embd]
    q, k, v = split_heads(q, n_head), split_heads(k, n_head), split_heads(v, n_head)
    if cache is not None:
        k, v = cache.append(k, v)  # [n_head, n_new, d_head] -> [n_head, n_seq, d_head]
    n_new, n_seq = q.shape[1], k.shape[1]
    scores = q @ k.transpose(0, 2, 1)  # -> [n_head, n_new, n_seq]
    scores *= 1 / math.sqrt(q.shape[2])
    if n_new > 1:  # a new token sees every past one, and of the new ones those up to itself
        scores[:, :, n_seq - n_new :] += causal_mask(n_new)
    heads = softmax(scores) @ v  # -> [n_head, n_new, d_head]
    return linear(heads.transpose(1, 0, 2).reshape(x.shape), **c_proj)  # -> [n_new, n_embd]


def mlp(x, c_fc, c_proj):
    """Two linear layers with a gelu between, n_embd -> 4 * n_embd -> n_embd, on each token by itself."""
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def block(x, params, n_head, cache=None):
    """A transformer block: attention, then the MLP, each of the normalised stream x [n_new, n_embd] and added to it."""
    x = x + attention(layer_norm(x, **params["ln_1"]), **params["attn"], n_head=n_head, cache=cache)
    x += mlp(layer_norm(x, **params["ln_2"]), **params["mlp"])
    return x
