"""The server of file_server.py with whole models."""

import json

import pytest
import safetensors.numpy
from helpers import random_tensors
from write_tf import write_checkpoint

from gpt2np import HParams
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SIZES, SOURCES

SHAPE = HParams(n_vocab=2048, n_ctx=64, n_embd=3 * 7, n_head=3, n_layer=2)


def write_model(folder, tensors, hparams, vocabulary, source):
    """The files of a source; `vocabulary` is the contents of its two."""
    h, names = hparams, list(SOURCES[source])
    config = {"model_type": "gpt2", "vocab_size": h.n_vocab, "n_positions": h.n_ctx}
    config |= {"n_embd": h.n_embd, "n_head": h.n_head, "n_layer": h.n_layer}
    (folder / names[0]).write_text(json.dumps(config if source == "hub" else vars(hparams)))
    for name, content in zip(names[1:3], vocabulary):
        (folder / name).write_bytes(content)
    if source == "hub":
        safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    else:
        write_checkpoint(folder, tensors)


@pytest.fixture(scope="session")
def small_models(tmp_path_factory):
    """The files of two models that differ only in their weights, each a dict name -> bytes for both sources."""
    bundled, models = find_folder("tiny-target", None), []
    vocabulary = [(bundled / name).read_bytes() for name in ("vocab.json", "merges.txt")]
    for seed in range(2):
        folder = tmp_path_factory.mktemp("small")
        for source in SOURCES:
            write_model(folder, random_tensors(SHAPE, seed), SHAPE, vocabulary, source)
        models.append({path.name: path.read_bytes() for path in folder.iterdir()})
    return models


@pytest.fixture
def model_server(server, small_models, monkeypatch):
    for size in ("124M", "355M"):
        server.files |= {f"/{size}/{name}": body for name, body in small_models[0].items()}
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url + "/")
    return server


@pytest.fixture
def hub(server, small_models, monkeypatch):
    """A server in the Hub's layout: GPT-2's sizes, a GPT-2 of one's own, one without vocab.json, and a Llama."""
    names = [f"openai-community/{name}" for name in SIZES.values()]
    for name in (*names, "distilbert/distilgpt2", "owner/gpt2-like", "owner/unread"):
        for file in SOURCES["hub"]:
            server.files[f"/{name}/resolve/main/{file}"] = small_models["gpt2-like" in name][file]
    del server.files["/owner/unread/resolve/main/vocab.json"]
    server.files["/meta/llama/resolve/main/config.json"] = b'{"model_type": "llama"}'
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    return server
