"""GPT-2 from its parts: the forward pass, and a model that keeps a cache keyed by the token prefix.

`forward` is the whole network as a function of its parameters (and of an explicit cache, if one is given).
`GPT2` is what samplers call: tokens in, logits out. It compares the tokens with those in its cache, keeps what both
have in common, and runs the rest. So no caller has to roll back the cache: different tokens do it.
Leaves out: text (tokenizer.py), files (files/), and the choice of a token from the logits (speculative/probs.py).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .cache import KVCache, TokenTree, check_tokens, kept_slots, whole_numbers
from .kernels.attention import skips_zeros
from .kernels.matmul import Embedding, beyond_panels, pack, strategy
from .kernels.memory import keep_freed
from .kernels.threads import Lock, n_threads
from .layers import block, layer_norm


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
    """Logits [n_last, n_vocab] float32 after each of the last n_last tokens (by default and with 0, after every token).

    Parameters
    ----------
    tokens : list of int
        The whole sequence; with a cache, only the tokens that follow the cached ones.
    params : dict
        The parameter tree, see files/params.py.
    n_head : int
    n_last : int, optional
        The attention and the MLP of the last block, and the vocabulary projection, are computed for this many rows
        only.
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
        Without any token (the cache holds no logits), with fewer than n_last, or with more than n_ctx in all.
    IndexError
        If a token is not in the vocabulary.
    """
    return logits(hidden_states(tokens, params, n_head, cache, positions, mask, *whole_numbers([n_last or 0])), params)


def hidden_states(tokens, params, n_head, cache=None, positions=None, mask=None, n_last=0):
    """The last n_last rows (0: all) of the residual stream after the last block; parameters as in `forward`."""
    n_past, n_new = (cache.length if cache else 0), len(tokens)
    if not n_new:
        raise ValueError(
            "expected at least one new token, got none: truncate the cache to before the last n_last tokens"
        )
    if not 0 <= n_last <= n_new:
        raise ValueError(f"expected n_last from 1 to the number of new tokens, {n_new}, or 0 for all, got {n_last}")
    if min(tokens) < 0:  # which would count from the end of a plain array
        raise IndexError(f"expected tokens of 0 or more, got {min(tokens)}")
    if positions is None:
        positions = slice(n_past, n_past + n_new)
        if n_past + n_new > len(params["wpe"]):
            raise ValueError(f"expected at most n_ctx = {len(params['wpe'])} tokens, got {n_past + n_new}")
    x = params["wte"][tokens] + params["wpe"][positions]  # [n_new] -> [n_new, n_embd]
    x = through(params["blocks"], x, n_head, cache, mask, n_last)
    if cache:
        cache.length += n_new
    return x


def through(blocks, x, n_head, cache=None, mask=None, n_last=0):
    """The last n_last rows (0: all) of x [n_new, n_embd] after these blocks; the cache's length is not changed."""
    for i, params in enumerate(blocks):
        x = block(x, params, n_head, cache and cache.layers[i], mask, n_last if i == len(blocks) - 1 else 0)
    return x[-n_last:]


def logits(x, params):
    """The vocabulary projection of these rows of the residual stream: [n, n_embd] -> [n, n_vocab]."""
    return layer_norm(x, **params["ln_f"]) @ params["wte"].T


class GPT2:
    """A language model: `model(tokens, n_last=1, parents=()) -> logits [n_last, n_vocab]` float32.

    Row i predicts the token after tokens[len(tokens) - n_last + i]. With `parents` the last tokens are a tree
    (cache.py), and the row of each is bitwise identical to that of a text with the path to it. The result depends
    on the tokens alone; the cache only saves time, for what they share with those of the previous call. Threads may
    share a model: its calls run one at a time. Do not fork a process during a call.

    Parameters
    ----------
    params : dict
        The parameter tree, see files/params.py. The model packs copies of the matrices (kernels/), and shares the rest.
    hparams : HParams

    Attributes
    ----------
    hidden : array [n_last, n_embd] float32
        The residual stream after the last block, of the rows that the last call returned.
    """

    def __init__(self, params, hparams):
        self.params = packed(params, "rows" if beyond_panels(hparams) else None)
        self.hparams = hparams
        self.cache = KVCache(hparams.n_layer, hparams.n_head, hparams.n_ctx, hparams.d_head)
        self.cached = TokenTree()  # the first cache.length of these tokens are in the cache
        self.hidden = np.empty((0, hparams.n_embd), np.float32)
        self.lock = Lock()
        keep_freed()

    def __getstate__(self):
        """Of a copy: an empty cache, since another thread may be writing to this one."""
        h = self.hparams
        cache = KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head)
        return {**vars(self), "cache": cache, "cached": TokenTree(), "hidden": self.hidden[:0], "lock": Lock()}

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

    def __call__(self, tokens, n_last=1, parents=()):
        wanted = TokenTree(tokens, parents)
        n_last = check_tokens(wanted, n_last, self.hparams)
        with self.lock:
            n_prefix, slots = kept_slots(self.cached, self.cache.length, wanted)
            n_cached = min(n_prefix + len(slots), n_reusable(wanted, n_last, self.params))
            self.cache.truncate(n_prefix)
            self.cached = wanted  # set before the pass: if that is interrupted, the first cache.length are right
            self.cache.keep(slots[: max(0, n_cached - n_prefix)])
            self.cache.truncate(n_cached)
            layout = wanted.positions_and_mask(n_cached)
            self.hidden = hidden_states(
                wanted.tokens[n_cached:], self.params, self.hparams.n_head, self.cache, *layout, n_last
            )
            return logits(self.hidden, self.params)

    def reset(self):
        """Forget the cache. No result changes; the next call takes as long as the first call of a new model."""
        with self.lock:
            self.cache.truncate(0)


def packed(params, name=None):
    """The parameter tree with the weight matrices, wte included, packed (kernels/matmul.py); the rest is unchanged."""
    name = name or strategy(params["wpe"].shape[1])

    def linears(part):
        return {key: {**linear, "w": pack(linear["w"], name)} for key, linear in part.items()}

    def block(params):
        return {**params, "attn": linears(params["attn"]), "mlp": linears(params["mlp"])}

    with ThreadPoolExecutor(n_threads()) as threads:  # most of the time is the first touch of new memory
        wte = threads.submit(Embedding, params["wte"], name)
        return {**params, "blocks": list(threads.map(block, params["blocks"])), "wte": wte.result()}


def n_reusable(wanted, n_last, params):
    """How many of the wanted tokens need not run if they are cached: not those whose logits are asked for.

    If zero weights between others change bits, no token of a tree is reused: its slot may be written to while the pass
    runs (layers.closed_up), and an interrupted pass would leave it so.
    """
    n = len(wanted.tokens) - n_last
    return n if not wanted.parents or skips_zeros(params["wte"].T.strategy) else min(n, wanted.n_text)
