"""GPT-2's forward pass as in the papers: every equation once, without a cache, nothing in place. Start here.

Each function uses only functions above it. Parameters are keyword arguments under the checkpoint's names, so that
`linear(x, **c_fc)` needs no glue, and everything is float32. The code works on the parameters of a loaded model,
`forward(tokens, model.params, model.hparams.n_head)`, and on plain arrays. Every call runs all tokens of the text, so
generating n tokens costs n passes over the whole text. layers.py is the same pass with a cache, in place and
batch-invariant: a row is bitwise identical whatever other rows are computed with it. Models run that one, and the tests
compare it with this one.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.3: the blocks of Vaswani
et al., arXiv:1706.03762, with the layer norm moved to the input of each sub-block.
"""

import math

import numpy as np


def gelu(x):
    """Gaussian error linear unit, in its tanh approximation (arXiv:1606.08415, section 2)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    """Probabilities that sum to 1 in each row; the row's maximum is subtracted first, so that exp cannot overflow."""
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def layer_norm(x, g, b, eps=1e-5):
    """Each row normalised to mean 0 and variance 1, then scaled by g and shifted by b (arXiv:1607.06450, eq. 4)."""
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def linear(x, w, b):
    """x @ w + b; the checkpoint stores w as [n_in, n_out]."""
    return x @ w + b  # [n_seq, n_in] -> [n_seq, n_out]


def attention(x, c_attn, c_proj, n_head):
    """Causal multi-head self-attention: softmax(q k / √d_head, masked) v (arXiv:1706.03762, equation 1)."""
    n_seq, n_embd = x.shape
    qkv = linear(x, **c_attn)  # [n_seq, n_embd] -> [n_seq, 3 * n_embd]
    q, k, v = qkv.reshape(n_seq, 3, n_head, -1).transpose(1, 2, 0, 3)  # -> 3 of [n_head, n_seq, d_head]
    scores = q @ k.swapaxes(1, 2) / math.sqrt(n_embd // n_head)  # -> [n_head, n_seq, n_seq]
    scores = np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)  # a token attends to itself and to earlier tokens
    heads = softmax(scores) @ v  # -> [n_head, n_seq, d_head]
    return linear(heads.swapaxes(0, 1).reshape(n_seq, n_embd), **c_proj)  # heads side by side -> [n_seq, n_embd]


def mlp(x, c_fc, c_proj, activation=gelu):
    """Two linear layers with a gelu between them, applied to each token separately."""
    return linear(activation(linear(x, **c_fc)), **c_proj)  # [n_seq, n_embd] -> [n_seq, 4 * n_embd] -> [n_seq, n_embd]


def block(x, params, n_head):
    """A transformer block: attention, then the MLP; each reads the normalised residual stream x and adds to x."""
    x = x + attention(layer_norm(x, **params["ln_1"]), **params["attn"], n_head=n_head)
    return x + mlp(layer_norm(x, **params["ln_2"]), **params["mlp"])


def forward(tokens, params, n_head):
    """Logits [n_seq, n_vocab] float32: row i predicts the token after tokens[i]."""
    x = params["wte"][tokens] + params["wpe"][: len(tokens)]  # [n_seq] -> [n_seq, n_embd]
    for layer in params["blocks"]:
        x = block(x, layer, n_head)
    return layer_norm(x, **params["ln_f"]) @ params["wte"].T  # -> [n_seq, n_vocab]
