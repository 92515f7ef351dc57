"""A GPT-2 with an early exit: its first layers are a language model of their own, and nothing is computed twice.

The hidden state after the first layers is kept for every token, along with their keys and values. Whichever model is
called first, the part or the whole, runs the first layers. The whole model continues from the kept hidden states
through the other layers.
Source: Elhoushi et al., LayerSkip, arXiv:2404.16710, section 4.3 (reusing the cache).
Next: tokenizer.py
"""

import numpy as np

from .cache import KVCache
from .layers import block, layer_norm
from .model import check_tokens, common_prefix
from .threads import Lock


class EarlyExit:
    """A language model with the logits of `model`; its attribute `early_exit` is that of the first n_layers layers.

    Parameters
    ----------
    model : GPT2
        Its parameters are shared, not copied; its cache is not used.
    n_layers : int
        From 1 to one less than the model's number of layers.
    """

    def __init__(self, model, n_layers):
        h = model.hparams
        if not 1 <= n_layers < h.n_layer:
            raise ValueError(f"expected an exit after 1 to {h.n_layer - 1} of the {h.n_layer} layers, got {n_layers}")
        self.hparams, self.params, self.n_params = h, model.params, model.n_params
        self.n_vocab, self.n_ctx, self.n_layers = h.n_vocab, h.n_ctx, n_layers
        self.first, self.rest = (KVCache(n, h.n_head, h.n_ctx, h.d_head) for n in (n_layers, h.n_layer - n_layers))
        self.hidden = np.empty((h.n_ctx, h.n_embd), np.float32)  # the hidden states after the first layers
        self.tokens = []  # the first first.length of these have been through the first layers
        self.early_exit = FirstLayers(self)
        self.lock = Lock()

    def __call__(self, tokens, n_last=1):
        with self.lock:
            end = self.run_first(tokens, n_last)
            begin = min(self.rest.length, end - n_last)
            self.rest.truncate(begin)
            x = self.run(self.hidden[begin:end], self.params["blocks"][self.n_layers :], self.rest)
            self.rest.length = end
            return self.logits(x[-n_last:])

    def run_first(self, tokens, n_last):
        """Run the first layers for the tokens that they have not processed yet; returns the number of all tokens."""
        tokens = tokens.tolist() if isinstance(tokens, np.ndarray) else list(tokens)
        check_tokens(tokens, n_last, self.hparams)
        begin, end = common_prefix(self.tokens[: self.first.length], tokens), len(tokens)
        self.first.truncate(begin)
        self.rest.truncate(begin)
        self.tokens = tokens
        if begin < end:
            x = self.params["wte"][tokens[begin:]] + self.params["wpe"][begin:end]
            self.hidden[begin:end] = self.run(x, self.params["blocks"][: self.n_layers], self.first)
            self.first.length = end  # set last: if the pass is interrupted, this many hidden states are right
        return end

    def run(self, x, blocks, cache):
        """x [n_new, n_embd] after these blocks; the cache gets their keys and values, but its length is not set yet."""
        for parameters, layer in zip(blocks, cache.layers):
            x = block(x, parameters, self.hparams.n_head, layer)
        return x

    def logits(self, x):
        return layer_norm(x, **self.params["ln_f"]) @ self.params["wte"].T

    def reset(self):
        """Forget the cache."""
        with self.lock:
            self.first.truncate(0)
            self.rest.truncate(0)


class FirstLayers:
    """The first layers as a language model, with the whole model's final norm and vocabulary projection."""

    def __init__(self, whole):
        self.whole, self.n_vocab, self.n_ctx = whole, whole.n_vocab, whole.n_ctx

    def __call__(self, tokens, n_last=1):
        with self.whole.lock:
            end = self.whole.run_first(tokens, n_last)
            return self.whole.logits(self.whole.hidden[end - n_last : end])
