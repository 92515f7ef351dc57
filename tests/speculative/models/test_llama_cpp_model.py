"""Models of llama.cpp: logits that depend on the tokens alone, and greedy text equal to the engine's own.

Most tests have a stand-in for llama_cpp. The group `peers` runs llama-cpp-python on the bundled pair if the variable
GGUF_FOLDER names the folder that dev/bench/make_gguf.py has written.
"""

import copy
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import random_gpt2

import gpt2np
from speculative import AutoregressiveSampler, ByPaths, Sampling
from speculative.models import LlamaCppModel
from speculative.testing import check_language_model


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_the_bundled_pair_in_llama_cpp(ways):
    pytest.importorskip("llama_cpp")
    if not (folder := os.environ.get("GGUF_FOLDER")):
        pytest.skip("GGUF_FOLDER does not name the folder of dev/bench/make_gguf.py")
    target, same, draft = (
        LlamaCppModel(Path(folder, f"tiny-{role}.gguf"), n_threads=1) for role in ("target", "target", "draft")
    )
    ours, tokenizer = gpt2np.load("tiny-target")
    prompt = tokenizer.encode("Once upon a time there lived a king who")
    check_language_model(target)
    expected = ours(prompt, n_last=len(prompt))
    np.testing.assert_allclose(target(prompt, n_last=len(prompt)), expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    target.reset()
    tokens = target.llama.generate(prompt, temp=0, top_k=1, repeat_penalty=1.0)
    own = [int(next(tokens)) for _ in range(100)]
    target.cached = []  # the text above was not its own
    for way, sampler in ways(target, same, draft).items():
        assert sampler.generate(prompt, 100).tokens.tolist() == own, way


# ------------------------------------------------------------------------------------------------ a stand-in


class Llama:
    """What LlamaCppModel uses of llama_cpp.Llama 0.3.36, in terms of a model of this library.

    Like the original it forgets what follows n_tokens when it evaluates more, and writes one row of scores a token.
    """

    recurrent = False

    def __reduce__(self):
        """A deep copy is another engine, which opens the file again."""
        return Llama, (self.path, len(self.scores), True, False, True)

    def __init__(self, path, n_ctx, logits_all, verbose, swa_full):
        assert logits_all and swa_full and not verbose
        self.path = path
        self.model = random_gpt2(gpt2np.HParams(17, 64, 12, 2, 2), seed=int(path))
        self.kept, self.n_tokens, self.scores = [], 0, np.full((n_ctx or 64, 17), np.nan, np.float32)
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


@pytest.fixture
def llama_cpp(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=Llama))
    return Llama


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_stand_in_for_llama_cpp(llama_cpp, recurrent, monkeypatch, ways):
    monkeypatch.setattr(llama_cpp, "recurrent", recurrent)
    target, same, draft = LlamaCppModel("0"), LlamaCppModel("0"), LlamaCppModel("1")
    check_language_model(target)
    own = AutoregressiveSampler(target.llama.model, sampling=Sampling(0)).generate([1, 2, 3], 30).tokens.tolist()
    for way, sampler in ways(target, same, draft).items():
        target.reset()
        before = target.llama.n_evaluated
        generation = sampler.generate([1, 2, 3], 30)
        assert generation.tokens.tolist() == own, way
        drafted = generation.stats.drafted
        if not recurrent:  # nothing is computed twice
            assert target.llama.n_evaluated - before <= 3 + 30 + drafted
    tree = ByPaths(target)([1, 2, 3, 4, 5, 6], n_last=4, parents=[-1, -1, 1])  # 4, and 5 before 6
    for row, tokens in zip(tree, ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 5, 6])):
        np.testing.assert_allclose(row, same(tokens)[0], rtol=0, atol=1e-5)
    assert LlamaCppModel("0", n_vocab=5)([1, 2]).shape == (1, 5) and LlamaCppModel("0", n_ctx=8).n_ctx == 8
    with pytest.raises(ValueError, match="expected n_vocab from 1 to the model's 17 tokens, got 18"):
        LlamaCppModel("0", n_vocab=18)


@pytest.mark.parametrize("where", ["eval", "remove"])
def test_an_interruption_leaves_nothing_wrong(llama_cpp, monkeypatch, where):
    """Within an evaluation, when 7 is forgotten and 9 is in its place, or after the cut of the cache."""
    target = LlamaCppModel("0")
    expected = target([1, 2, 7, 5])
    target([1, 2, 7])
    engine = target.llama
    evaluate, remove = engine.eval, engine.remove

    def interrupted(*arguments):
        evaluate(arguments[0][:1]) if where == "eval" else remove(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        owner, name = (engine, "eval") if where == "eval" else (engine._ctx, "kv_cache_seq_rm")
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            target([1, 2, 9, 8])
    np.testing.assert_allclose(target([1, 2, 7, 5]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_knows_what_is_in_its_engine(llama_cpp, copied):
    """A shallow copy shares the engine, which either may have used last; a deep one has another, which is empty."""
    target, texts = LlamaCppModel("0"), ([1, 2, 7, 5], [1, 9, 9, 4])
    expected = [LlamaCppModel("0")(text) for text in texts]
    target([1, 2, 7])
    other = copied(target)
    other([1, 9, 9])
    for model in (target, other):
        for text, logits in zip(texts, expected):
            np.testing.assert_allclose(model(text), logits, rtol=0, atol=1e-5)


def test_without_the_engine_the_adapter_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ImportError):
        LlamaCppModel("0")
