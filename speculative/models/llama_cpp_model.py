"""A model in a GGUF file as a `LanguageModel`, with llama-cpp-python: quantised models on a laptop.

It works like transformers_model.py, but for llama.cpp, whose cache can forget all tokens from a position on. A
recurrent model refuses to do so, and then the whole text is run again. For models with a sliding window, the tokens
before the window are kept, so that it can move back (`swa_full`). It runs one text at a time, and calls the model once
for each node of a tree.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..interfaces import Tokens
from .by_paths import ByPaths
from .prefix import checked_n_vocab, split

MOST_CONTEXT = 4096  # tokens; llama.cpp keeps the logits of all: with 49,152 tokens in the vocabulary, 0.8 GB


class LlamaCppModel:
    """`model(tokens, n_last=1)` -> logits [n_last, n_vocab] float32, by a llama_cpp.Llama.

    Parameters
    ----------
    path
        A GGUF file.
    n_ctx
        The longest text in tokens; by default the length the model was trained on, but at most 4,096, because llama.cpp
        keeps the logits of all tokens, n_ctx * n_vocab float32.
    n_vocab : int, optional
        Only the first n_vocab tokens are used; by default all. A draft and its target need the same n_vocab.
    **options
        For llama_cpp.Llama: n_threads, n_gpu_layers, and so on. One token and several tokens use the same number of
        threads, by default all cores. With llama-cpp-python's own defaults, n_threads is half of n_threads_batch, and
        the target alone would be slow for a reason that has nothing to do with drafts.

    Attributes
    ----------
    n_params : int
    about : str
        The version.

    Examples
    --------
        target = LlamaCppModel("tiny-target.gguf", n_threads=2)
    """

    def __init__(self, path: str | os.PathLike[str], n_ctx: int = 0, n_vocab: int | None = None, **options: Any):
        import llama_cpp

        n_threads = options.get("n_threads") or n_cores()
        usual = {"verbose": False, "swa_full": True, "n_threads": n_threads, "n_threads_batch": n_threads}
        self.llama = llama_cpp.Llama(str(path), n_ctx=n_ctx or MOST_CONTEXT, logits_all=True, **usual | options)
        self.n_vocab = checked_n_vocab(n_vocab, self.llama.n_vocab())
        self.n_ctx: int = n_ctx or min(MOST_CONTEXT, llama_cpp.llama_model_n_ctx_train(self.llama.model))
        self.n_params: int = llama_cpp.llama_model_n_params(self.llama.model)
        self.about = f"llama-cpp-python {llama_cpp.__version__}"
        self.cached = []  # one list for this object and its shallow copies, which share the engine

    def reset(self) -> None:
        """Forget the cache."""
        self.cached.clear()
        self.llama.reset()

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        if len(parents):
            return ByPaths(self)(tokens, n_last, parents)
        cached = self.cached[: self.llama.n_tokens]  # empty in a deep copy, which has its own engine
        (n_cached, tokens), n_last = split(cached, tokens, n_last, self.n_ctx), int(n_last)
        self.cached.clear()  # if the call is interrupted, nothing remains of it
        if n_cached < len(cached) and not self.llama._ctx.kv_cache_seq_rm(0, n_cached, -1):
            n_cached = 0
        if n_cached == 0:
            self.reset()
        self.llama.n_tokens = n_cached
        self.llama.eval(tokens[n_cached:])
        self.cached[:] = tokens
        return self.llama.scores[len(tokens) - n_last : len(tokens), : self.n_vocab].copy()


def n_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
