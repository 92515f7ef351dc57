"""GPT-2 from its parts: the forward pass, and a model that keeps a cache keyed by the token prefix.

`forward` is the whole network as a function of its parameters, and of an explicit cache if one is given. Samplers call
`GPT2`: tokens in, logits out. It keeps the prefix that the tokens share with the cached ones, and runs the rest. So no
caller has to roll back the cache, because passing different tokens truncates it.
Leaves out: text (tokenizer.py), files (files/), and the choice of a token from the logits (speculative/logits/).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cache import KVCache, Tokens, TokenTree, kept_slots, n_reusable, whole_numbers
from .kernels import matmul
from .kernels.matmul import Embedding, pack
from .kernels.memory import keep_freed
from .kernels.side_by_side import Caches
from .kernels.threads import each
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
    def d_head(self) -> int:
        return self.n_embd // self.n_head

    @property
    def n_params(self) -> int:
        return (self.n_vocab + self.n_ctx + 2 + self.n_layer * (12 * self.n_embd + 13)) * self.n_embd


def forward(
    tokens: Sequence[int],
    params: dict[str, Any],
    n_head: int,
    n_last: int | None = None,
    cache: KVCache | None = None,
    positions: np.ndarray | None = None,
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """Logits [n_last, n_vocab] float32 after each of the last n_last tokens, by default after every token.

    Parameters
    ----------
    tokens
        The whole sequence; with a cache, only the tokens that follow the cached ones.
    params
        The parameter tree (see files/params.py).
    n_head
        The number of attention heads.
    n_last
        The vocabulary projection, and the last block apart from its keys and values, are computed for these rows only.
    cache
        Updated in place: the keys and values of the tokens are appended.
    positions, mask
        [n_new] int and [n_new, n_seq] float32: the position of each token in its text, and its row of the mask (see
        `layers.attention`). By default the positions are n_past, n_past + 1, and so on, and each token attends to all
        tokens before it. Other values allow alternative tokens for one position, such as the nodes of a tree.

    Raises
    ------
    ValueError
        If there is no token (the cache holds no logits), or fewer than n_last, or more than n_ctx in all. IndexError
        if a token is not in the vocabulary.
    """
    n_past, n_new = cache.length if cache else 0, len(tokens)
    if not n_new:
        raise ValueError("expected at least one new token, got none: truncate the cache before the last n_last tokens")
    if n_last is not None:
        [n_last] = whole_numbers([n_last])
        if not 1 <= n_last <= n_new:
            raise ValueError(f"expected n_last from 1 to the number of new tokens, {n_new}, got {n_last}")
    if min(tokens) < 0:  # a negative index would count from the end of a plain array
        raise IndexError(f"expected tokens of 0 or more, got {min(tokens)}")
    if positions is None:
        positions = slice(n_past, n_past + n_new)
        if n_past + n_new > len(params["wpe"]):
            raise ValueError(f"expected at most n_ctx = {len(params['wpe'])} tokens, got {n_past + n_new}")
    last = None if n_last is None else slice(-n_last, None)
    return logits(hidden_states(tokens, positions, params, n_head, cache, mask, last), params)


def hidden_states(tokens, positions, params, n_head, cache=None, mask=None, last=None):
    """The rows `last` (a slice or an array) of the residual stream after the last block; the rest as in `forward`."""
    x = params["wte"][tokens] + params["wpe"][positions]  # [n_new] -> [n_new, n_embd]
    x = through(params["blocks"], x, n_head, cache, mask, last)
    if cache:
        cache.ran(len(tokens))
    return x


def through(blocks, x, n_head, cache=None, mask=None, last=None):
    """The rows `last` of x [n_new, n_embd] after these blocks. The cache's length does not change."""
    for i, params in enumerate(blocks):
        x = block(x, params, n_head, cache and cache.layers[i], mask, last if i == len(blocks) - 1 else None)
    return x


def logits(x, params):
    """The vocabulary projection of these rows of the residual stream: [n, n_embd] -> [n, n_vocab]."""
    return layer_norm(x, **params["ln_f"]) @ params["wte"].T


class GPT2:
    """A language model: `model(tokens, n_last=1, parents=()) -> logits [n_last, n_vocab]` float32.

    Row i predicts the token after tokens[len(tokens) - n_last + i]. With `parents` the last tokens are a tree
    (cache.py), and the row of each node is bitwise identical to the row for a text that ends with its path. The result
    depends on the tokens alone; the cache only saves time. Threads may share a model; its calls run one at a time. Do
    not fork a process during a call.

    Parameters
    ----------
    params
        The parameter tree (see files/params.py). The model packs copies of the matrices, and shares the rest.
    hparams
        The sizes: n_vocab, n_ctx, n_embd, n_head, n_layer.
    strategy
        How to multiply matrices (see kernels/matmul.py); by default the fastest on this machine. The attribute
        `strategy` stores it.
    cache
        By default a new one, with room for n_ctx tokens.

    Examples
    --------
    >>> from gpt2np import load
    >>> model, tokenizer = load("tiny-target")
    >>> tokens = tokenizer.encode("Once upon a time there lived a")
    >>> model(tokens, n_last=2).shape  # the logits after each of the last two tokens
    (2, 2048)
    >>> tokenizer.decode([model(tokens)[0].argmax()])
    ' man'
    """

    n_vocab: int
    n_ctx: int
    n_params: int
    hparams: HParams
    params: dict[str, Any]
    strategy: str

    def __init__(
        self, params: dict[str, Any], hparams: HParams, strategy: str | None = None, cache: KVCache | None = None
    ):
        self.strategy = strategy or matmul.strategy(hparams.n_ctx, hparams.d_head, hparams.n_params)
        self.params = packed(params, self.strategy)
        self.hparams, self.n_params = hparams, hparams.n_params
        self.n_vocab, self.n_ctx = hparams.n_vocab, hparams.n_ctx
        h = hparams
        self.cache = cache or KVCache(h.n_layer, h.n_head, h.n_ctx, h.d_head, self.strategy)
        self.hidden = np.empty((0, hparams.n_embd), np.float32)  # after the last block, for the last cache.tokens
        self.lock = threading.RLock()
        keep_freed()

    def __reduce__(self):
        """A copy has the same strategy, and an empty cache: another thread may be writing to this one."""
        return type(self), (self.params, self.hparams, self.strategy)

    def __repr__(self):
        return f"GPT2({self.hparams}, {self.n_params / 1e6:.1f}M parameters)"

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        with self.lock:
            return logits(self.run(tokens, n_last, parents), self.params)

    def run(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """The hidden states [n_last, n_embd] after the last block, from which the logits are computed."""
        with self.lock:
            new, positions, mask, n_last = self.begin(tokens, n_last, parents)
            last = slice(-n_last, None)
            self.hidden = hidden_states(new, positions, self.params, self.hparams.n_head, self.cache, mask, last)
            return self.hidden

    def begin(self, tokens, n_last, parents):
        """The part of a call that the cache does not cover: (tokens, positions, mask, n_last) as in `forward`."""
        wanted = TokenTree(tokens, parents)
        n_last = wanted.check(n_last, self.hparams)
        self.hidden = self.hidden[:0]  # empty in case of an interruption: old states would be wrong
        self.cache.reuse(wanted, n_reusable(wanted, n_last, self.strategy))
        return wanted.tokens[self.cache.length :], *wanted.positions_and_mask(self.cache.length), n_last

    def states(self, tokens: Tokens, n_last: int = 1) -> np.ndarray:
        """The hidden states [n_last, n_embd] float32 of the last of these tokens, after the last block.

        Logits are computed from them. The states of the last call are kept, so a draft that starts there costs no pass.
        """
        with self.lock:
            last_run = self.cache.tokens
            wanted = TokenTree(tokens)
            n_last = wanted.check(n_last, self.hparams)
            n, slots = kept_slots(last_run, len(last_run.tokens), wanted)
            rows = np.array([*range(n), *slots], int)[wanted.n_text - n_last :]
            rows -= len(last_run.tokens) - len(self.hidden)
            if len(rows) < n_last or (rows < 0).any():
                return self.run(tokens, n_last).copy()
            return self.hidden[rows]

    def reset(self) -> None:
        """Forget the cache. No result changes; the next call takes as long as the first call of a new model."""
        with self.lock:
            self.cache.truncate(0)
            self.hidden = self.hidden[:0]

    def lanes(self, n: int) -> "list[Lane]":
        """n `Lane`s with these parameters, for n texts at once."""
        return [Lane(self.params, self.hparams, self.strategy) for _ in range(n)]


class Lane(GPT2):
    """One of several models with shared parameters, each for a different text: `together` is one pass for all.

    `ask` answers a call (lane, tokens, n_last, parents). By default it does so at once. Code that generates several
    texts replaces `ask` with a function that waits for the other lanes (speculative/together.py).
    """

    def __reduce__(self):
        """A copy is an independent model."""
        return GPT2, (self.params, self.hparams, self.strategy)

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        return self.ask((self, tokens, n_last, parents))

    def ask(self, call: tuple[Any, ...]) -> np.ndarray:
        [answer] = self.together([call])
        return answer

    @staticmethod
    def together(calls: Sequence[tuple[Any, ...]]) -> list[np.ndarray]:
        """The logits [n_last, n_vocab] for each of these calls by lanes of one model, in one pass.

        They are bitwise identical to those of a `GPT2` that is called alone.
        """
        begun = [(lane, *lane.begin(tokens, n_last, parents)) for lane, tokens, n_last, parents in calls]
        caches = Caches([(lane.cache, len(new), mask, n_last) for lane, new, _, mask, n_last in begun])
        new = [token for _, tokens, *_ in begun for token in tokens]
        positions = np.concatenate([np.r_[positions] for _, _, positions, _, _ in begun])
        params, h = begun[0][0].params, begun[0][0].hparams
        hidden = hidden_states(new, positions, params, h.n_head, caches, last=caches.last)
        ends = np.cumsum([n_last for *_, n_last in begun])[:-1]
        for (lane, *_), rows in zip(begun, np.split(hidden, ends)):
            lane.hidden = rows
        return np.split(logits(hidden, params), ends)


def packed(params, strategy):
    """The parameter tree with the weight matrices, wte included, packed (kernels/matmul.py); the rest is unchanged."""

    def pack_part(part):
        return packed_block(part, strategy) if isinstance(part, dict) else Embedding(part, strategy)

    wte, *blocks = each(pack_part, [params["wte"], *params["blocks"]])  # most of the time: first touch of new memory
    return {**params, "wte": wte, "blocks": blocks}


def packed_block(params, strategy):
    """The parameters of a block with the weight matrices packed."""
    parts = {part: dict(params[part]) for part in ("attn", "mlp")}
    for part, key in (("attn", "c_attn"), ("attn", "c_proj"), ("mlp", "c_fc"), ("mlp", "c_proj")):
        parts[part][key] = {**parts[part][key], "w": pack(parts[part][key]["w"], strategy)}
    return {**params, **parts}
