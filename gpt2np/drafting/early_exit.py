"""A GPT-2 with an early exit: its first layers also serve as a language model, and nothing is computed twice.

The hidden state after the first layers is kept for every token, along with these layers' keys and values. The model
that is called first, whether the part or the whole, runs the first layers. The whole model then continues from there.
Source: Elhoushi et al., LayerSkip, arXiv:2404.16710, section 4.3 (reusing the cache).
"""

import threading
from collections.abc import Sequence

import numpy as np

from ..cache import KVCache, Tokens, TokenTree, n_reusable
from ..model import GPT2, logits, through


class EarlyExit:
    """A language model with the logits of `model`. Its `early_exit` is the language model of the first n_layers layers.

    Parameters
    ----------
    model
        Its parameters are shared, not copied; its cache is not used.
    n_layers
        From 1 to one less than the model's number of layers.
    """

    n_vocab: int
    n_ctx: int
    early_exit: "FirstLayers"

    def __init__(self, model: GPT2, n_layers: int):
        h = model.hparams
        if not 1 <= n_layers < h.n_layer:
            raise ValueError(f"expected an exit after 1 to {h.n_layer - 1} of the {h.n_layer} layers, got {n_layers}")
        self.model, self.n_layers = model, n_layers
        self.params, self.n_params = model.params, model.n_params
        self.hparams, self.strategy = h, model.strategy
        self.n_vocab, self.n_ctx = h.n_vocab, h.n_ctx
        self.first = KVCache(n_layers, h.n_head, h.n_ctx, h.d_head, model.strategy)
        self.rest = KVCache(h.n_layer - n_layers, h.n_head, h.n_ctx, h.d_head, model.strategy)
        self.hidden = np.empty((h.n_ctx, h.n_embd), np.float32)  # after the first layers, by slot of `first`
        self.early_exit = FirstLayers(self)
        self.lock = threading.RLock()

    def __reduce__(self):
        """A copy has empty caches: another thread may be writing to these."""
        return type(self), (self.model, self.n_layers)

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        with self.lock:
            wanted, n_last = self.run_first(tokens, n_last, parents)
            self.rest.reuse(wanted, n_reusable(wanted, n_last, self.strategy))
            begin, end = self.rest.length, len(wanted.tokens)
            _, mask = wanted.positions_and_mask(begin)
            rest = self.params["blocks"][self.n_layers :]
            x = through(rest, self.hidden[begin:end], self.hparams.n_head, self.rest, mask, slice(-n_last, None))
            self.rest.length = end
            return logits(x, self.params)

    def run_first(self, tokens, n_last, parents):
        """Run the first layers for the tokens that they have not processed. Return all tokens, and n_last (int)."""
        wanted = TokenTree(tokens, parents)
        n_last = wanted.check(n_last, self.hparams)
        self.first.reuse(wanted, n_reusable(wanted, 0, self.strategy), self.hidden)
        begin, end = self.first.length, len(wanted.tokens)
        if begin < end:
            positions, mask = wanted.positions_and_mask(begin)
            x = self.params["wte"][wanted.tokens[begin:]] + self.params["wpe"][positions]
            first = self.params["blocks"][: self.n_layers]
            self.hidden[begin:end] = through(first, x, self.hparams.n_head, self.first, mask)
            self.first.length = end  # set last: after an interruption, this many hidden states are valid
        return wanted, n_last

    def reset(self) -> None:
        """Forget the cache."""
        with self.lock:
            self.first.truncate(0)
            self.rest.truncate(0)


class FirstLayers:
    """The first layers as a language model, with the whole model's final norm and vocabulary projection."""

    n_vocab: int
    n_ctx: int

    def __init__(self, whole: EarlyExit):
        self.whole = whole
        self.n_vocab, self.n_ctx = whole.n_vocab, whole.n_ctx

    def __reduce__(self):
        """A copy belongs to a copy of the whole model."""
        return getattr, (self.whole, "early_exit")

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        with self.whole.lock:
            wanted, n_last = self.whole.run_first(tokens, n_last, parents)
            return logits(self.whole.hidden[: len(wanted.tokens)][-n_last:], self.whole.params)
