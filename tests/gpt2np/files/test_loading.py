"""Whole models by name: from a folder, and over a server with faults. Processes: test_processes.py."""

import base64
import hashlib
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from download_faults import a_fault, pick
from file_server import names_in, with_headers
from helpers import random_tensors
from model_server import SHAPE
from systems import needs_links, needs_proc

import gpt2np
from gpt2np import CheckpointError, DownloadError
from gpt2np.files.model_files import SOURCES
from gpt2np.files.safetensors import read_safetensors, write_safetensors

TOKENS = [1, 2, 3, 4, 5]
DATA = "model.ckpt.data-00000-of-00001"
each_source = pytest.mark.parametrize("source", SOURCES)


@pytest.fixture
def folder(small_models, tmp_path):
    """A small random GPT-2 in the layout of Hugging Face."""
    (tmp_path / "model").mkdir()
    return write(tmp_path / "model", small_models[0], "hub")


def write(folder, files, source):
    for name in SOURCES[source]:
        (folder / name).write_bytes(files[name])
    return folder


# ------------------------------------------------------------------------------------------------ folders and names


@each_source
def test_a_folder_is_loaded_and_the_model_does_not_depend_on_its_file(small_models, tmp_path, monkeypatch, source):
    """Writing to the file later changes no model; reading from a truncated mapped file would end the process."""
    folder = tmp_path / "124M"
    folder.mkdir()
    write(folder, small_models[0], source)
    monkeypatch.chdir(tmp_path)
    (model, tokenizer), *others = (gpt2np.load(*names) for names in ((folder,), ("124M", "."), ("124M", tmp_path)))
    assert model.hparams == SHAPE and tokenizer.decode(tokenizer.encode("Once upon a time")) == "Once upon a time"
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    before = model(TOKENS).tobytes()
    assert [other(TOKENS).tobytes() for other, _ in others] == [before] * 2
    weights = folder / list(SOURCES[source])[-1]
    with weights.open("r+b") as file:
        for n_bytes in (weights.stat().st_size, 0):
            file.write(bytes(n_bytes))
            file.truncate(n_bytes)
            model.reset()
            assert model(TOKENS).tobytes() == before


def test_a_model_may_have_more_tokens_than_its_vocabulary_but_not_fewer(folder, monkeypatch):
    """As one whose embeddings were padded to a round number of rows. And a folder of a model's name is used."""
    monkeypatch.chdir(folder.parent)
    folder = folder.rename("gpt2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 2064}))
    safetensors.numpy.save_file(random_tensors(replace(SHAPE, n_vocab=2064)), folder / "model.safetensors")
    model, tokenizer = gpt2np.load("gpt2")
    assert model.n_vocab == 2064 and tokenizer.n_vocab == 2048 and model(TOKENS).shape == (1, 2064)
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 2000}))
    with pytest.raises(CheckpointError, match="the vocabulary has 2048 tokens, but the model has 2000"):
        gpt2np.load(folder)


@needs_links
@needs_proc
@pytest.mark.parametrize("name", ["config.json", "merges.txt", "model.safetensors"])
def test_a_file_that_cannot_be_read(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to("/proc/self/mem")  # a file, but it cannot be read from its beginning
    with pytest.raises(CheckpointError, match=f"{name}|cannot be read"):
        gpt2np.load(folder)


# ------------------------------------------------------------------------------------------------ from a server


@each_source
def test_a_size_is_downloaded_once(model_server, tmp_path, source):
    """OpenAI's bucket serves Content-MD5, and an ETag that is no hash."""
    names = list(SOURCES[source])
    for name in names:
        md5 = base64.b64encode(hashlib.md5(model_server.files[f"/124M/{name}"]).digest()).decode()
        model_server.faults[f"/124M/{name}"] = [with_headers(etag='"0x8D7B5F5AA5B2B2B"', Content_MD5=md5)]
    model, _ = gpt2np.load("124M", tmp_path, source)
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    assert names_in(tmp_path / "124M") == sorted(names)
    gpt2np.load("124M", tmp_path)  # what is there is used, whatever the source
    (tmp_path / "124M" / names[2]).unlink()
    gpt2np.load("124M", tmp_path, source)
    last = tmp_path / "124M" / names[-1]
    last.rename(f"{last}.part")  # as if it was interrupted
    gpt2np.load("124M", tmp_path, source)
    asked = [path for path, _ in model_server.requests]
    assert asked[: len(names) + 1] == [f"/124M/{name}" for name in (*names, names[2])]
    assert {*asked[len(names) + 1 :]} == {f"/124M/{names[-1]}"}


@pytest.mark.parametrize(("source", "name"), [(source, name) for source in SOURCES for name in SOURCES[source]])
def test_a_file_of_another_kind_is_not_put_in_place(model_server, tmp_path, source, name):
    """Nor the numbers of a checkpoint with one wrong bit. In a whole folder it is named, with the remedy."""
    whole = model_server.files[f"/124M/{name}"]
    wrong = whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:] if name == DATA else b'{"error": 404}'
    model_server.files[f"/124M/{name}"] = wrong
    remedies = f"124M is neither in .*{'the source hub' if name == DATA else ''} or a mirror"
    with pytest.raises(DownloadError, match=f"124M/{name}: .*; {remedies}"):
        gpt2np.load("124M", tmp_path, source)
    assert not [path for path in names_in(tmp_path / "124M") if path.startswith(name)]
    model_server.files[f"/124M/{name}"] = whole
    gpt2np.load("124M", tmp_path, source)
    if name != DATA:  # whose checksums are not checked again
        (tmp_path / "124M" / name).write_bytes(wrong)
        remedy = re.escape(f"; delete that file, or all of {tmp_path / '124M'}, and it is downloaded again")
        with pytest.raises(CheckpointError, match=f"{name}.*{remedy}$"):
            gpt2np.load("124M", tmp_path)


PORT = r"127\.0\.0\.1:9/124M/config\.json: the "
ADDRESSES = {
    "nonsense": r"nonsense/124M/config\.json: the request failed",
    "http://127.0.0.1:9": rf"http://{PORT}connection failed \(.*\); 124M is neither in ",
    "http://127.0.0.1:9/" + "long/" * 6_000: r"^http://127\.0\.0\.1:9/.* or a mirror in GPT2NP_MODELS_URL$",
    **{f"{scheme}me:sec@secret@127.0.0.1:9": PORT for scheme in ("http://", "", "ftp://", "//")},
}


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address[:30])
def test_an_address_where_nothing_is(tmp_path, monkeypatch, hurry, address):
    """And its password is not printed."""
    monkeypatch.setenv("GPT2NP_MODELS_URL", address)
    with pytest.raises(DownloadError, match=ADDRESSES[address]) as caught:
        gpt2np.load("124M", tmp_path)
    assert "sec" not in str(caught.value) and len(str(caught.value)) <= 500
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [("gpt2-xl", "1558M"), ("openai-community/gpt2", "124M"), ("GPT2-Large", "774M"), ("distilgpt2", "distilgpt2"),
     ("distilbert/distilgpt2", "distilgpt2"), ("owner/gpt2-like", "owner/gpt2-like")],
)  # fmt: skip
def test_names_of_the_hub(hub, tmp_path, name, folder):
    """A model is downloaded once, under whichever of its names."""
    model, _ = gpt2np.load(name, tmp_path)
    assert model.hparams == SHAPE and names_in(tmp_path / folder) == sorted(SOURCES["hub"])
    hub.files.clear()
    assert gpt2np.load(folder, tmp_path)[0].hparams == SHAPE


def test_what_the_hub_has_but_is_no_gpt2_here(hub, tmp_path, monkeypatch):
    """And where downloads are forbidden, or there is no such repository: no folder is made."""
    with pytest.raises(DownloadError, match=r"model_type is 'llama', .* an adapter"):
        gpt2np.load("meta/llama", tmp_path)
    with pytest.raises(DownloadError, match=r"no/such/resolve/main/config.json: the server answered 404 .* no folder"):
        gpt2np.load("no/such", tmp_path)
    with pytest.raises(DownloadError, match="the source openai has 124M, 355M, 774M, 1558M only"):
        gpt2np.load("distilgpt2", tmp_path, "openai")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"^HF_HUB_OFFLINE forbids downloads; 1558M is neither in "):
        gpt2np.load("gpt2-xl", tmp_path)
    assert names_in(tmp_path) == []
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(DownloadError, match=r"tokenizer.json: the server answered 404 .*docs/models.md has "):
        gpt2np.load("owner/unread", tmp_path)


def test_a_repository_as_transformers_saves_it(hub, tmp_path):
    """With tokenizer.json alone and weights in shards, of which one fails at first."""
    model, tokenizer = gpt2np.load("tiny-draft")
    gpt2np.save(model, tokenizer, tmp_path / "saved")
    tensors, index = read_safetensors(tmp_path / "saved" / "model.safetensors"), {}
    for i, names in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2])):
        shard = tmp_path / "saved" / f"model-{i}-of-2.safetensors"
        write_safetensors(shard, {name: tensors[name] for name in names})
        index |= dict.fromkeys(names, shard.name)
    (tmp_path / "saved" / "model.safetensors").unlink()
    (tmp_path / "saved" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    for path in (tmp_path / "saved").iterdir():
        hub.files[f"/owner/new/resolve/main/{path.name}"] = path.read_bytes()
    last = "/owner/new/resolve/main/model-1-of-2.safetensors"
    hub.files[last], whole = b"{}", hub.files[last]
    with pytest.raises(DownloadError, match="model-1-of-2"):
        gpt2np.load("owner/new", tmp_path)
    hub.files[last] = whole
    loaded, its = gpt2np.load("owner/new", tmp_path)
    ids = tokenizer.encode("Once upon a time")
    assert its.encode("Once upon a time") == ids and np.array_equal(loaded(ids), model(ids))
    hub.files.clear()
    gpt2np.load("owner/new", tmp_path)


# ------------------------------------------------------------------------------------------------ random faults


def outcome(folder, source, *versions):
    """The outcome of a load, "loaded" or the kind of error; the assertions are what must never happen."""
    try:
        gpt2np.load("124M", folder, source)
    except (DownloadError, CheckpointError) as error:
        assert str(error).isprintable() and len(str(error)) <= 500
        return type(error).__name__
    found = {path.name: path.read_bytes() for path in (folder / "124M").iterdir() if path.name != ".lock"}
    assert found.keys() == SOURCES[source].keys()
    assert all(content in (version[name] for version in versions) for name, content in found.items())
    return "loaded"


def one_scenario(rng, server, folder, old, new):
    """A load from a server with random faults, then one from the server as it should be; the outcomes."""
    source = pick(rng, *SOURCES)
    for name in SOURCES[source]:
        other = new[name] if new[name] != old[name] else old[name][::-1]
        n_faults = int(rng.integers(6)) if name.startswith("model") or rng.random() < 0.3 else 0
        server.files[f"/124M/{name}"] = old[name]
        server.faults[f"/124M/{name}"] = [a_fault(rng, name, old[name], other, server) for _ in range(n_faults)]
    first = outcome(folder, source, old, new)
    for name in SOURCES[source]:
        server.files[f"/124M/{name}"] = new[name]
        server.faults[f"/124M/{name}"] = with_headers(etag='"v2"')
    second = outcome(folder, source, old, new)
    if second == "DownloadError":  # a damaged file was there before: it is deleted now
        second = outcome(folder, source, old, new)
    if second != "loaded":  # a file that fits only some others is in place: as the sentence says, all is deleted
        shutil.rmtree(folder / "124M")
        assert outcome(folder, source, old, new) == "loaded"
    return first, second


@pytest.mark.parametrize("n", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_sequence_of_faults_gives_a_wrong_file(server, tmp_path, monkeypatch, small_models, n):
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url)
    outcomes = []
    for seed in range(n):
        try:
            outcomes.append(one_scenario(np.random.default_rng(seed), server, tmp_path / str(seed), *small_models))
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
        shutil.rmtree(tmp_path / str(seed))
    first, second = zip(*outcomes)
    assert min(first.count("loaded"), first.count("DownloadError")) >= n // 10
    assert second.count("loaded") > 0.8 * n
