"""A causal language model of Hugging Face transformers as a `LanguageModel`.

It runs models such as Llama, Qwen, Mistral, Mamba and GPT-2, in any dtype and on any device. Its cache is cropped to
the prefix that two calls share. Where it cannot be cropped, the whole text is run again, which is correct but slow: a
full sliding window has forgotten the tokens before it, and recurrent layers (Mamba, Qwen3-Next) keep the state of one
position only. transformers continues such a state by one token, given its position; for several new tokens at once some
layers begin with an empty state. Rotary positions of the kind "longrope" (Phi) change for all tokens of a text that is
longer than the model's original context, so n_ctx ends there.
Needs transformers 5 or later. It runs one text at a time, in one thread, and calls the model once for each node of a
tree.
"""

import inspect
from contextlib import suppress
from importlib.metadata import version

from .by_paths import ByPaths
from .prefix import checked_n_vocab, split

NO_LIMIT = 1 << 30  # n_ctx of models without positions
NO_CACHE = "expected a causal language model with a cache, got {}"


class TransformersModel:
    """`model(tokens, n_last=1)` -> logits [n_last, n_vocab] float32, by a model of transformers.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        With a language model head, as AutoModelForCausalLM returns it. Each call sets it to evaluation mode, without
        dropout. Used as target and draft at once, it needs two adapters, which share its weights.
    n_vocab : int, optional
        The first n_vocab tokens are used. By default all tokens of the model are used, which may be more than its
        tokenizer has: the embeddings of some families are padded to different sizes for different models, and a draft
        and its target need the same n_vocab. Pass len(tokenizer) for both.

    Attributes
    ----------
    n_params : int
    about : str
        The version, the dtype and the device.

    Raises
    ------
    ValueError
        If the model has fewer tokens than n_vocab, or, here or in the first call, if it returns no cache.

    Examples
    --------
        target = TransformersModel(AutoModelForCausalLM.from_pretrained(name, dtype="auto"))
    """

    def __init__(self, model, n_vocab: int | None = None):
        if not hasattr(model, "config"):
            raise ValueError(
                f"expected a loaded model of transformers, got {model!r:.80}: "
                "TransformersModel(AutoModelForCausalLM.from_pretrained(name))"
            )
        config, names = model.config.get_text_config(), inspect.signature(model.forward).parameters
        self.cache_name = next((name for name in ("past_key_values", "cache", "cache_params") if name in names), None)
        if self.cache_name is None or model.config.is_encoder_decoder or not model.can_generate():
            raise ValueError(NO_CACHE.format(type(model).__name__))
        self.model, self.n_ctx = model, n_ctx_of(config)
        self.n_vocab = checked_n_vocab(n_vocab, config.vocab_size)
        self.is_recurrent = model._is_stateful or "linear" in str(getattr(config, "layer_types", ""))
        self.takes = names.keys() & {"logits_to_keep", *(["position_ids"] if self.is_recurrent else [])}
        self.n_params = model.num_parameters()
        dtype = str(model.dtype).removeprefix("torch.")
        self.about = f"transformers {version('transformers')}, {dtype}, {model.device}"
        self.reset()

    def __getstate__(self):
        """A copy starts without a cache, because the original keeps changing its own."""
        return {**vars(self), "cache": None, "cached": []}

    def reset(self) -> None:
        """Forget the cache."""
        self.cache, self.cached = None, []

    def __call__(self, tokens, n_last: int = 1, parents=()):
        import torch

        if len(parents):
            return ByPaths(self)(tokens, n_last, parents)

        (n_cached, tokens), n_last = split(self.cached, tokens, n_last, self.n_ctx), int(n_last)
        cache, n_before = self.cache, len(self.cached)
        self.reset()  # if the pass is interrupted, nothing remains of it
        cache, n_cached = self.cropped(cache, n_before, n_cached, len(tokens) - n_cached)
        new = torch.tensor([tokens[n_cached:]], device=self.model.device)  # [1, n_new]
        positions = torch.arange(n_cached, len(tokens), device=self.model.device)
        options = {"logits_to_keep": n_last, "position_ids": positions[None]}
        options = {name: options[name] for name in self.takes} | {self.cache_name: cache, "use_cache": True}
        with torch.inference_mode():
            output = self.model.eval()(new, **options)
            logits = output.logits[0, -n_last:, : self.n_vocab].float()  # [1, n_new, ...] -> [n_last, n_vocab]
        if output.get(self.cache_name) is None:
            raise ValueError(NO_CACHE.format(type(self.model).__name__))
        self.cache, self.cached = output[self.cache_name], tokens
        return logits.cpu().numpy()

    def cropped(self, cache, n_before, n, n_new):
        """(the cache with its first n tokens, n), or (None, 0) where it cannot be cropped and extended by n_new."""
        if n == 0 or (self.is_recurrent and n_new > 1):
            return None, 0
        with suppress(RuntimeError):
            if n < n_before:
                cache.crop(n - n_before)
            return cache, n
        return None, 0


def n_ctx_of(config) -> int:
    """The number of tokens that a model has room for; with longrope, only the tokens whose positions never change."""
    limits = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(kind for kind in rope.values() if hasattr(kind, "get"))]  # one, or one for each kind of layer
    short = [kind["original_max_position_embeddings"] for kind in kinds if kind.get("rope_type") == "longrope"]
    return min([next(filter(None, limits), NO_LIMIT), *short])
