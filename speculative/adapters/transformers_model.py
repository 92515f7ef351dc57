"""A causal language model of Hugging Face transformers as a `LanguageModel`.

Llama, Qwen, Mistral, Mamba, GPT-2, in any dtype, on any device. Its cache is cropped to the prefix that two calls
share. Where that cannot be done, the whole text is run again, which is right but slow: a sliding window that is full
has forgotten what was before it, and the state of recurrent layers (Mamba, Qwen3-Next) is that of one position.
transformers continues such a state by one token, given its position; for several new tokens at once some layers begin
with an empty state.
Needs transformers 5 or later. Leaves out batches and trees: one text at a time, in one thread.
Next: llama_cpp_model.py
"""

import inspect

from .prefix import checked_n_vocab, split

NO_LIMIT = 1 << 30  # n_ctx of models without positions
NO_CACHE = "expected a causal language model with a cache, got {}"


class TransformersModel:
    """`model(tokens, n_last=1)` -> logits [n_last, n_vocab] float32, by a model of transformers.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        With a language model head, such as AutoModelForCausalLM returns it. Used as target and draft at once, it needs
        two adapters, which share its weights.
    n_vocab : int, optional
        The first n_vocab tokens are used. By default all that the model has, which may be more than its tokenizer has:
        the embeddings of some families are padded to different sizes for different models, and a draft and its target
        need one n_vocab. Take len(tokenizer) for both.

    Raises
    ------
    ValueError
        If the model has fewer tokens than n_vocab, or, here or in the first call, if it returns no cache.

    Examples
    --------
        target = TransformersModel(AutoModelForCausalLM.from_pretrained(name, dtype="auto"))
    """

    def __init__(self, model, n_vocab=None):
        config, names = model.config.get_text_config(), inspect.signature(model.forward).parameters
        self.cache_name = next((name for name in ("past_key_values", "cache_params") if name in names), None)
        if self.cache_name is None:
            raise ValueError(NO_CACHE.format(type(model).__name__))
        self.model = model.eval()
        self.n_vocab = checked_n_vocab(n_vocab, config.vocab_size)
        limits = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
        self.n_ctx = next(filter(None, limits), NO_LIMIT)
        kinds = getattr(config, "layer_types", None) or ()
        self.is_recurrent = model._is_stateful or any("linear" in kind for kind in kinds)
        self.takes = names.keys() & {"logits_to_keep", *(["position_ids"] if self.is_recurrent else [])}
        self.reset()

    def reset(self):
        """Forget the cache."""
        self.cache, self.cached = None, []

    def __call__(self, tokens, n_last=1):
        import torch

        n_cached, tokens = split(self.cached, tokens, n_last, self.n_ctx)
        cache, n_cached = self.cropped(n_cached, len(tokens) - n_cached)
        self.reset()  # if the pass is interrupted, nothing remains of it
        new = torch.tensor([tokens[n_cached:]], device=self.model.device)  # [1, n_new]
        positions = torch.arange(n_cached, len(tokens), device=self.model.device)[None]
        options = {"logits_to_keep": n_last, "position_ids": positions}
        options = {name: options[name] for name in self.takes} | {self.cache_name: cache, "use_cache": True}
        with torch.inference_mode():
            output = self.model(new, **options)
            logits = output.logits[0, -n_last:, : self.n_vocab].float()  # [1, n_new, ...] -> [n_last, n_vocab]
        if output.get(self.cache_name) is None:
            raise ValueError(NO_CACHE.format(type(self.model).__name__))
        self.cache, self.cached = output[self.cache_name], tokens
        return logits.cpu().numpy()

    def cropped(self, n, n_new):
        """(the cache with its first n tokens, n), or (None, 0) where it cannot be cropped and extended by n_new."""
        if n == 0 or (self.is_recurrent and n_new > 1):
            return None, 0
        try:
            if n < len(self.cached):
                self.cache.crop(n - len(self.cached))
        except RuntimeError:
            return None, 0
        return self.cache, n
