"""The server of file_server.py with whole models, and the documented command that fetches them."""

import json
import os
import subprocess
import sys

import pytest
import safetensors.numpy
from helpers import ROOT, random_tensors
from write_tf import write_checkpoint

from gpt2np import HParams
from gpt2np.files.loading import find_folder

SHAPE = HParams(n_vocab=2048, n_ctx=64, n_embd=3 * 7, n_head=3, n_layer=2)


def write_model(folder, tensors, hparams, vocabulary_files):
    """The files of both sources, in one folder."""
    h = hparams
    config = {"model_type": "gpt2", "vocab_size": h.n_vocab, "n_positions": h.n_ctx}
    config |= {"n_embd": h.n_embd, "n_head": h.n_head, "n_layer": h.n_layer}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "hparams.json").write_text(json.dumps(vars(hparams)))
    for names in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        for name, path in zip(names, vocabulary_files):
            (folder / name).write_bytes(path.read_bytes())
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    write_checkpoint(folder, tensors)


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """The files of a small random model, dict name -> bytes."""
    folder, bundled = tmp_path_factory.mktemp("small"), find_folder("tiny-target", None)
    write_model(folder, random_tensors(SHAPE), SHAPE, [bundled / "vocab.json", bundled / "merges.txt"])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def model_server(server, small_model, monkeypatch):
    for size in ("124M", "355M"):
        for name, body in small_model.items():
            server.files[f"/{size}/{name}"] = body
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url + "/")
    return server


def documented(folder, url, *more, **options):
    """The documented command, as a process."""
    pair = ("--draft_model_size", "124M", "--target_model_size", "355M", "--K", "4")
    arguments = [sys.executable, ROOT / "main.py", *pair, "--models_dir", folder, "--n_tokens_to_generate", "5", *more]
    environment = {**os.environ, "GPT2NP_MODELS_URL": url, "HF_HOME": "/nowhere"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, env=environment, **pipes, **options)
