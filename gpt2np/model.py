"""GPT-2 from its parts: the forward pass, and a model that keeps a cache keyed by the token prefix.

`forward` is the whole network as a function of its parameters (and of an explicit cache, if one is given).
`GPT2` is what samplers call: tokens in, logits out. It compares the tokens with those in its cache, forgets the cached
ones after the common prefix, and runs the rest. So no caller has to roll back the cache: a different prefix does it.
Leaves out: text (tokenizer.py), files (loading.py), and the choice of a token from the logits (speculative/probs.py).
Next: matmul.py
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .cache import KVCache
from .layers import block, layer_norm
from .matmul import Embedding, Panels
from .two_threads import N_THREADS, Lock


@dataclass(frozen=True)
class HParams:
    """The shape of a GPT-2, under the names of OpenAI's hparams.json."""

    n_vocab: int
    n_ctx: int
    n_embd: int
    n_head: int
    n_layer: int

    @property
    def d_head(self):
        return self.n_embd // self.n_head


def forward(tokens, params, n_head, n_last=None, cache=None, positions=None, mask=None):
    """Logits [n_last, n_vocab] float32 after each of the last n_last tokens (by default, after every token).

    Parameters
    ----------
    tokens : list of int
        The whole sequence; with a cache, only the tokens that follow the cached ones.
    params : dict
        The parameter tree, see params.py.
    n_head : int
    n_last : int, optional
        The vocabulary projection is computed for this many rows only.
    cache : KVCache, optional
        Updated in place: the keys and values of the tokens are appended.
    positions : array [n_new] int, optional
        The position of each token in its text; by default n_past, n_past + 1, and so on.
    mask : array [n_new, n_seq] float32, optional
        What each token attends to, see `layers.attention`; by default itself and every token before it. `positions` and
        `mask` together allow tokens that are alternatives to each other, such as the nodes of a tree.

    Raises
    ------
    ValueError
        Without any token: the logits are computed from tokens, none are in the cache.
    """
    n_past, n_new = (cache.length if cache else 0), len(tokens)
    if not n_new:
        raise ValueError(
            "expected at least one new token, got none: truncate the cache to before the last n_last tokens"
        )
    if positions is None:
        positions = slice(n_past, n_past + n_new)
    x = params["wte"][tokens] + params["wpe"][positions]  # [n_new] -> [n_new, n_embd]
    for i, layer in enumerate(params["blocks"]):
        x = block(x, layer, n_head, cache.layers[i] if cache else None, mask)
    if cache:
        cache.length += n_new
    x = layer_norm(x[-n_last:] if n_last else x, **params["ln_f"])
    return x @ params["wte"].T  # [n_last, n_embd] -> [n_last, n_vocab]


class GPT2:
    """A language model: `model(tokens, n_last=1) -> logits [n_last, n_vocab]` float32.

    Row i predicts the token after tokens[len(tokens) - n_last + i]. The result depends on the tokens alone; the cache
    only saves time, for the prefix that the tokens share with those of the previous call. Threads may share a model:
    its calls run one at a time.

    Parameters
    ----------
    params : dict
        The parameter tree, see params.py. The model keeps a copy with the weight matrices in panels, see matmul.py.
    hparams : HParams
    """

    def __init__(self, params, hparams):
        self.params = packed(params)
        self.hparams = hparams
        self.cache = KVCache(hparams.n_layer, hparams.n_head, hparams.n_ctx, hparams.d_head)
        self.tokens = []  # the first cache.length of these are in the cache
        self.lock = Lock()

    @property
    def n_vocab(self):
        return self.hparams.n_vocab

    @property
    def n_ctx(self):
        return self.hparams.n_ctx

    @property
    def n_params(self):
        """Number of parameters."""
        h = self.hparams
        return (h.n_vocab + h.n_ctx + 2) * h.n_embd + h.n_layer * (12 * h.n_embd + 13) * h.n_embd

    def __call__(self, tokens, n_last=1):
        tokens = tokens.tolist() if isinstance(tokens, np.ndarray) else list(tokens)
        check_tokens(tokens, n_last, self.hparams)
        with self.lock:
            n_cached = min(common_prefix(self.tokens[: self.cache.length], tokens), len(tokens) - n_last)
            self.cache.truncate(n_cached)
            self.tokens = tokens  # set before the pass: if that is interrupted, the first cache.length are right
            return forward(tokens[n_cached:], self.params, self.hparams.n_head, n_last, self.cache)

    def reset(self):
        """Forget the cache. No result changes; the next call takes as long as the first call of a new model."""
        with self.lock:
            self.cache.truncate(0)


def packed(params):
    """The parameter tree with the weight matrices, wte included, in panels (matmul.py); the rest is unchanged."""

    def linears(part):
        return {name: {**linear, "w": Panels(linear["w"])} for name, linear in part.items()}

    def block(params):
        return {**params, "attn": linears(params["attn"]), "mlp": linears(params["mlp"])}

    with ThreadPoolExecutor(N_THREADS) as threads:  # most of the time is the first touch of new memory
        wte = threads.submit(Embedding, params["wte"])
        return {**params, "blocks": list(threads.map(block, params["blocks"])), "wte": wte.result()}


def common_prefix(a, b):
    """The length of the common prefix of two lists.

    >>> common_prefix([5, 6, 7], [5, 6, 8, 9])
    2
    """
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


def check_tokens(tokens, n_last, hparams):
    """Raise ValueError unless the model can run these tokens."""
    if not 1 <= len(tokens) <= hparams.n_ctx:
        raise ValueError(f"expected 1 to n_ctx = {hparams.n_ctx} tokens, got {len(tokens)}")
    if not 1 <= n_last <= len(tokens):
        raise ValueError(f"expected n_last from 1 to the number of tokens, {len(tokens)}, got {n_last}")
    if min(tokens) < 0 or max(tokens) >= hparams.n_vocab:
        raise ValueError(
            f"expected token ids from 0 to {hparams.n_vocab - 1}, got {min(tokens)} to {max(tokens)}: "
            "encode the text with this model's tokenizer"
        )
