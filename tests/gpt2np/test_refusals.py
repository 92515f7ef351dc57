"""Arguments and files that do not fit: refusals.txt has calls of what is here, and their sentences."""

import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import safetensors.numpy
from helpers import random_array, random_eagle, random_gpt2, random_heads, random_parallel, random_tensors  # noqa: F401 (in refusals.txt)
from refusals import answered

import gpt2np
from gpt2np import HParams
from gpt2np.cache import KVCache
from gpt2np.files.loading import find_folder
from gpt2np.files.params import build_params
from gpt2np.kernels import matmul
from gpt2np.kernels.cores import n_threads
from gpt2np.tokenizer import byte_symbols

SHAPE = HParams(n_vocab=17, n_ctx=45, n_embd=15, n_head=3, n_layer=2)
MODEL, BLOCK, HEADS = random_gpt2(SHAPE), random_eagle(SHAPE), random_heads(SHAPE)
WEIGHTS, N_THREADS = matmul.pack(random_array(7, 20), "slabs"), n_threads.__wrapped__
BYTES = {symbol: i for i, symbol in enumerate(byte_symbols().values())}


def forward(tokens, n_last=1, n_past=0):
    """With packed weights, and with ordinary arrays the same: a negative token would count from their end."""
    errors = []
    for params in (build_params(random_tensors(SHAPE), SHAPE, "random"), MODEL.params):
        cache = KVCache(2, 3, 45, 5)
        if n_past:
            gpt2np.forward([1] * n_past, params, 3, 1, cache)
        with pytest.raises((ValueError, IndexError)) as error:
            gpt2np.forward(tokens, params, 3, n_last, cache)
        errors.append(error.value)
    assert type(errors[0]) is type(errors[1])
    raise errors[1]


def with_environment(call, **variables):
    with patch.dict(os.environ, variables), patch.object(matmul, "chosen", None):
        call()


def ones(*shape):
    return np.ones(shape, np.float32)


def head(**changes):
    return {"a": ones(8, 4), "w": ones(8, 4), "accepted": ones(3)} | changes


def heads_of_file(changes):
    """Loaded from a file with one head, in which tensors are replaced, or missing where they are None."""
    path, tensors = Path("heads.safetensors"), {f"hydra.1.{name}": part for name, part in head().items()}
    safetensors.numpy.save_file({k: v for k, v in (tensors | changes).items() if v is not None}, path)
    return gpt2np.load_heads(".")


def block_of_file(changes, kind="eagle"):
    tensors = dict(safetensors.numpy.load_file(find_folder("tiny-target", None) / f"{kind}.safetensors")) | changes
    tensors = {name: np.asarray(part) for name, part in tensors.items() if part is not None}
    safetensors.numpy.save_file(tensors, f"{kind}.safetensors")
    return getattr(gpt2np, f"load_{kind}")(".")


def vocabulary(symbols, *merges):
    return gpt2np.Tokenizer(BYTES | symbols, merges)


def test_each_mistake_gets_one_sentence(golden, tmp_path, monkeypatch):
    path = Path(__file__).with_name("refusals.txt")
    monkeypatch.chdir(tmp_path)
    Path("folder/heads.safetensors").mkdir(parents=True)
    golden(path, answered(path, vars(gpt2np) | globals()))
