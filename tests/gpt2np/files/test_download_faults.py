"""Whole models from servers with sequences of random faults: the right weights or an error of this library, never
other weights or errors.

After each sequence, a server without faults gives the model, whatever the faults have left on the disk.
"""

import json
import shutil

import numpy as np
import pytest
from download_faults import a_fault, pick
from file_server import serve
from helpers import random_tensors
from model_server import SHAPE, write_model

import gpt2np
from gpt2np import CheckpointError, DownloadError
from gpt2np.files import transfer
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SOURCES
from gpt2np.files.params import openai_names
from gpt2np.files.safetensors import read_safetensors
from gpt2np.files.tf_checkpoint import read_tf_checkpoint

TEXT = "Once upon a time, the end. 1 \u00e9"


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Two models that differ only in their weights: for each, its files and the bytes of its tensors."""
    bundled, written = find_folder("tiny-target", None), []
    for seed in range(2):
        folder, tensors = tmp_path_factory.mktemp("version"), random_tensors(SHAPE, seed)
        write_model(folder, tensors, SHAPE, [bundled / "vocab.json", bundled / "merges.txt"])
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        written.append((files, {name: tensor.tobytes() for name, tensor in tensors.items()}))
    return written


def tensors_of(folder):
    if (folder / "model.safetensors").exists():
        tensors = read_safetensors(folder / "model.safetensors")
    else:
        tensors = openai_names(read_tf_checkpoint(folder / "model.ckpt"), folder)
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def outcome(folder, source, versions):
    """The outcome of a load, "loaded" or the kind of error; the assertions are what must never happen."""
    try:
        _, tokenizer = gpt2np.load("124M", folder, source)
    except (DownloadError, CheckpointError) as error:
        assert str(error).isprintable() and len(str(error)) <= 500
        return type(error).__name__
    assert tensors_of(folder / "124M") in [tensors for _, tensors in versions]
    assert tokenizer.encode(TEXT) == gpt2np.load("tiny-target")[1].encode(TEXT)
    assert sorted(path.name for path in (folder / "124M").iterdir()) == sorted(SOURCES[source])
    return "loaded"


def one_scenario(rng, server, folder, versions):
    """A load from a server with random faults, then one from the server as it should be; what came of the first."""
    source, ((old, _), (new, _)) = pick(rng, *SOURCES), versions
    for name in SOURCES[source]:
        other = new[name] if new[name] != old[name] else old[name][::-1]
        n_faults = int(rng.integers(6)) if name.startswith("model") or rng.random() < 0.3 else 0
        server.files[f"/124M/{name}"] = old[name]
        server.faults[f"/124M/{name}"] = [a_fault(rng, name, old[name], other, server) for _ in range(n_faults)]
    first = outcome(folder, source, versions)
    for name in SOURCES[source]:
        server.files[f"/124M/{name}"] = new[name]
        server.faults[f"/124M/{name}"] = lambda handler, body: serve(handler, body, etag='"v2"')
    for note in folder.rglob("*.part.json"):
        if rng.random() < 0.2:
            note.write_text(pick(rng, "[", "null", json.dumps({"validator": 5, "size": 5, "hash": ["shake_128", ""]})))
    later = [outcome(folder, source, versions) for _ in range(2)]  # the first may only remove what no longer fits
    assert later[-1] == "loaded"
    return first


@pytest.mark.parametrize("n", [8, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_sequence_of_faults_gives_wrong_weights_or_blocks_a_later_run(server, tmp_path, monkeypatch, versions, n):
    monkeypatch.setattr(transfer, "PATIENCE", 0.5)
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url)
    counts = {"loaded": 0, "DownloadError": 0}
    for seed in range(n):
        try:
            first = one_scenario(np.random.default_rng(seed), server, tmp_path / str(seed), versions)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
        counts[first] += 1
        shutil.rmtree(tmp_path / str(seed))
    print(counts)
    assert min(counts.values()) > n / 5, counts
