"""GPT-2 from its parts: the forward pass, and a model that keeps a cache keyed by the token prefix.

`forward` is the whole network as a function of its parameters (and of an explicit cache, where one is given).
`GPT2` is what samplers call: tokens in, logits out. It compares the tokens with those in its cache, forgets what
differs and runs the rest. So nobody above has to roll anything back: rollback is what happens when the prefix differs.
Leaves out: text (tokenizer.py), files (loading.py), and the choice of a token from the logits (speculative/probs.py).
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
    """Logits [n_last, n_vocab] float32 of the last n_last tokens (of all by default); each row predicts what follows.

    Parameters
    ----------
    tokens : list of int
        The whole sequence, or with a cache the tokens that follow the cached ones.
    params : dict
        The parameter tree, see params.py.
    n_head : int
    n_last : int, optional
        The vocabulary projection is done for this many rows only.
    cache : KVCache, optional
        Updated in place: the keys and values of the tokens are appended.
    positions : array [n_new] int, optional
        The position of each token in its text; by default they follow the cached ones, one by one.
    mask : array [n_new, n_seq] float32, optional
        What each token attends to, see `layers.attention`; by default itself and every token before it. With
        `positions` it serves tokens that are alternatives of each other, such as the nodes of a tree.
    """
    n_past, n_new = (cache.length if cache else 0), len(tokens)
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
    only saves time, where the tokens begin as those of the call before. Threads may share a model: one call waits for
    the other.

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
            self.tokens = tokens  # before the pass: whatever interrupts it, the first cache.length of these are cached
            return forward(tokens[n_cached:], self.params, self.hparams.n_head, n_last, self.cache)

    def reset(self):
        """Forget the cache. No result changes; the next call takes the time of a new model's first."""
        with self.lock:
            self.cache.truncate(0)


def packed(params):
    """The parameter tree with the weight matrices in panels (matmul.py), wte as well; the rest as it is."""

    def linears(part):
        return {name: {**linear, "w": Panels(linear["w"])} for name, linear in part.items()}

    def block(params):
        return {**params, "attn": linears(params["attn"]), "mlp": linears(params["mlp"])}

    with ThreadPoolExecutor(N_THREADS) as threads:  # it is the first touch of new memory that takes the time
        wte = threads.submit(Embedding, params["wte"])
        return {**params, "blocks": list(threads.map(block, params["blocks"])), "wte": wte.result()}


def common_prefix(a, b):
    """How many tokens two lists have in common from the start.

    >>> common_prefix([5, 6, 7], [5, 6, 8, 9])
    2
    """
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


def check_tokens(tokens, n_last, hparams):
    """Raise ValueError unless these tokens can be run."""
    if not 1 <= len(tokens) <= hparams.n_ctx:
        raise ValueError(f"expected 1 to n_ctx = {hparams.n_ctx} tokens, got {len(tokens)}")
    if not 1 <= n_last <= len(tokens):
        raise ValueError(f"expected n_last from 1 to the number of tokens, {len(tokens)}, got {n_last}")
    if min(tokens) < 0 or max(tokens) >= hparams.n_vocab:
        raise ValueError(
            f"expected token ids from 0 to {hparams.n_vocab - 1}, got {min(tokens)} to {max(tokens)}: "
            "encode the text with this model's tokenizer"
        )
