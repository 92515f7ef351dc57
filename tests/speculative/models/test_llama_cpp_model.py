"""Models of llama.cpp: logits that depend on the tokens alone, and greedy text equal to the engine's own.

Most tests have the stand-in of conftest.py for llama_cpp. The group `peers` runs llama-cpp-python on the
bundled pair if the variable GGUF_FOLDER names the folder that dev/bench/make_gguf.py has written.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import gpt2np
from speculative import AutoregressiveSampler, Sampling
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


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_stand_in_for_llama_cpp(llama_cpp, recurrent, monkeypatch, ways):
    """What all models have in common: test_models.py."""
    monkeypatch.setattr(llama_cpp, "recurrent", recurrent)
    target, same, draft = LlamaCppModel("0"), LlamaCppModel("0"), LlamaCppModel("1")
    own = AutoregressiveSampler(target.llama.model, sampling=Sampling(0)).generate([1, 2, 3], 30).tokens.tolist()
    for way, sampler in ways(target, same, draft).items():
        target.reset()
        before = target.llama.n_evaluated
        generation = sampler.generate([1, 2, 3], 30)
        assert generation.tokens.tolist() == own, way
        if not recurrent:  # nothing is computed twice
            assert target.llama.n_evaluated - before <= 3 + 30 + generation.stats.drafted
    assert LlamaCppModel("0", n_vocab=5)([1, 2]).shape == (1, 5) and LlamaCppModel("0", n_ctx=8).n_ctx == 8
    with pytest.raises(ValueError, match="expected n_vocab from 1 to the model's 17 tokens, got 18"):
        LlamaCppModel("0", n_vocab=18)


def test_without_the_engine_the_adapter_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ImportError):
        LlamaCppModel("0")
