"""Solutions to the exercises of 02_the_forward_pass.ipynb."""

import math

import numpy as np

from gpt2np.reference import gelu, layer_norm, linear, softmax


def my_layer_norm(x, g, b, eps=1e-5):
    """Each row of x normalised to mean 0 and variance 1, scaled by g and shifted by b.

    Parameters
    ----------
    x : float32 array [n_seq, n_embd]
        Must not be written to.
    g, b : float32 arrays [n_embd]
    eps : float
        Added to the variance, so that a row of equal numbers does not divide by 0.

    Returns
    -------
    float32 array [n_seq, n_embd]

    Examples
    --------
    A row [1, 3] has mean 2 and variance 1: with g = 1 and b = 0 it becomes [-1, 1].
    """
    # keepdims leaves [n_seq, 1], so that each row has its own mean; subtracting the mean first keeps the squares small.
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return g * centred / np.sqrt(variance + eps) + b


def my_head(x, w, b, head, n_head):
    """The output of one head of causal self-attention.

    Parameters
    ----------
    x : float32 array [n_seq, n_embd]
        The residual stream after the layer norm.
    w : float32 array [n_embd, 3 * n_embd]
        c_attn's weights: x @ w + b is q, k and v of all heads, side by side.
    b : float32 array [3 * n_embd]
    head : int
        Which head, from 0 to n_head - 1.
    n_head : int

    Returns
    -------
    array [n_seq, d_head]
        Row i is the sum of the values of tokens 0 to i, weighted by the softmax of
        q_i · k_j / √d_head.
    """
    # Three slices of width d_head, n_embd columns apart; then the equation, with the causal mask.
    n_seq, n_embd = x.shape
    d_head = n_embd // n_head
    starts = [part * n_embd + head * d_head for part in range(3)]
    q, k, v = (x @ w[:, start : start + d_head] + b[start : start + d_head] for start in starts)
    scores = np.where(np.tri(n_seq, dtype=bool), q @ k.T / math.sqrt(d_head), -np.inf)
    return softmax(scores) @ v


def my_block(x, params, n_head):
    """A transformer block.

    Parameters
    ----------
    x : float32 array [n_seq, n_embd]
        The residual stream. Must not be written to.
    params : dict
        params["ln_1"] and params["ln_2"] are for layer_norm(x, **...).
        params["attn"]["c_attn"], params["attn"]["c_proj"], params["mlp"]["c_fc"] and
        params["mlp"]["c_proj"] are for linear(x, **...).
    n_head : int

    Returns
    -------
    float32 array [n_seq, n_embd]
    """
    # Attention over all heads, each [n_seq, d_head], side by side again; then the MLP. Both add to x.
    n_seq, n_embd = x.shape
    qkv = linear(layer_norm(x, **params["ln_1"]), **params["attn"]["c_attn"])
    q, k, v = qkv.reshape(n_seq, 3, n_head, n_embd // n_head).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(n_embd // n_head)
    heads = softmax(np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)) @ v
    x = x + linear(heads.transpose(1, 0, 2).reshape(n_seq, n_embd), **params["attn"]["c_proj"])
    wide = gelu(linear(layer_norm(x, **params["ln_2"]), **params["mlp"]["c_fc"]))
    return x + linear(wide, **params["mlp"]["c_proj"])


def my_count(n_vocab, n_ctx, n_embd, n_head, n_layer):
    """The number of parameters of a GPT-2 of this shape, int.

    wte, wpe, ln_f, and in each layer ln_1, c_attn, c_proj, ln_2, c_fc and the MLP's
    c_proj. A layer norm has a scale and a shift. A linear layer has a weight for each
    pair of input and output, and a shift for each output. The logits use wte again and
    need no parameters of their own.
    """
    # Weights of a layer: 3 + 1 in attention and 4 + 4 in the MLP, times n_embd²; shifts: 3 + 1 + 4 + 1, norms: 4 more.
    return (n_vocab + n_ctx + 2) * n_embd + n_layer * (12 * n_embd**2 + 13 * n_embd)
