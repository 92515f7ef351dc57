import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import random_gpt2

import gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, PromptLookupDrafter, Sampling, SpeculativeSampler


@pytest.fixture
def ways():
    """A function that returns every way to a target's greedy text."""

    def samplers(target, same, draft):
        greedy = Sampling(0)
        drafters = {
            "with itself as draft": ModelDrafter(same, sampling=greedy),
            "with another draft": ModelDrafter(draft, sampling=greedy),
            "with prompt lookup": PromptLookupDrafter(target.n_vocab),
        }
        speculative = {name: SpeculativeSampler(target, d, K=3, sampling=greedy) for name, d in drafters.items()}
        return {"alone": AutoregressiveSampler(target, sampling=greedy), **speculative}

    return samplers


class Llama:
    """What LlamaCppModel uses of llama_cpp.Llama 0.3.36, in terms of a model of this library.

    Like the original it forgets what follows n_tokens when it evaluates more, and writes one row of scores a token.
    """

    recurrent = False

    def __reduce__(self):
        """A deep copy is another engine, which opens the file again."""
        return Llama, (self.path, len(self.scores), True, False, True)

    def __init__(self, path, n_ctx, logits_all, verbose, swa_full, n_threads=1, n_threads_batch=1):
        assert logits_all and swa_full and not verbose and n_threads == n_threads_batch
        self.path = path
        self.model = random_gpt2(gpt2np.HParams(17, 64, 12, 2, 2), seed=int(path))
        self.kept, self.n_tokens, self.scores = [], 0, np.full((min(n_ctx, 64), 17), np.nan, np.float32)
        self._ctx = SimpleNamespace(kv_cache_seq_rm=self.remove)
        self.n_evaluated = 0

    def n_vocab(self):
        return 17

    def n_ctx(self):
        return len(self.scores)

    def reset(self):
        self.n_tokens = 0
        self.kept = [] if self.recurrent else self.kept

    def remove(self, sequence, first, end):
        assert sequence in (-1, 0) and end == -1
        if self.recurrent and 0 < first < len(self.kept):
            return False
        del self.kept[first:]
        return True

    def eval(self, tokens):
        assert self.remove(-1, self.n_tokens, -1) and len(self.kept) == self.n_tokens
        self.kept += tokens
        self.n_evaluated += len(tokens)
        self.scores[self.n_tokens : len(self.kept)] = self.model(self.kept, n_last=len(tokens))
        self.n_tokens = len(self.kept)


def engine_of(llama):
    numbers = {"llama_model_n_ctx_train": 64, "llama_model_n_params": 1}
    return SimpleNamespace(Llama=llama, __version__="0", **{name: lambda model, n=n: n for name, n in numbers.items()})


@pytest.fixture
def llama_cpp(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", engine_of(Llama))
    return Llama
