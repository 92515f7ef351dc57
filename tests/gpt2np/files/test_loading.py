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
from file_server import serve, with_headers
from helpers import random_tensors
from model_server import SHAPE, write_model
from systems import needs_links, needs_proc

import gpt2np
from gpt2np import CheckpointError, DownloadError
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SOURCES
from gpt2np.files.params import openai_names
from gpt2np.files.safetensors import read_safetensors
from gpt2np.files.tf_checkpoint import read_tf_checkpoint

TOKENS = [1, 2, 3, 4, 5]


@pytest.fixture(params=["hub", "openai"])
def source(request):
    return request.param


@pytest.fixture
def folder(small_model, tmp_path, source):
    """A small random GPT-2 in one of the two layouts."""
    (tmp_path / "model").mkdir()
    for name in SOURCES[source]:
        (tmp_path / "model" / name).write_bytes(small_model[name])
    return tmp_path / "model"


only_hub = pytest.mark.parametrize("source", ["hub"], indirect=True)


# ------------------------------------------------------------------------------------------------ folders and names


def test_a_folder_is_loaded_and_the_model_does_not_depend_on_its_file(folder, tmp_path, monkeypatch):
    """Writing to the file later changes no model; reading from a truncated mapped file would end the process."""
    (tmp_path / "models").mkdir()
    folder.rename(tmp_path / "models" / "124M")
    monkeypatch.chdir(tmp_path / "models")
    (model, tokenizer), (again, _), (here, _) = (
        gpt2np.load(*names) for names in ((tmp_path / "models" / "124M",), ("124M", "."), ("124M", tmp_path / "models"))
    )
    assert model.hparams == SHAPE and tokenizer.decode(tokenizer.encode("Once upon a time")) == "Once upon a time"
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    before = model(TOKENS).tobytes()
    assert again(TOKENS).tobytes() == here(TOKENS).tobytes() == before
    weights = max(
        (tmp_path / "models" / "124M").iterdir(), key=lambda path: path.stat().st_size * path.name.startswith("model")
    )
    with weights.open("r+b") as file:
        file.write(bytes(weights.stat().st_size))
    for _ in range(2):
        model.reset()
        assert model(TOKENS).tobytes() == before
        weights.write_bytes(b"")


@only_hub
def test_a_model_may_have_more_tokens_than_its_vocabulary_but_not_fewer(folder, monkeypatch):
    """As one whose embeddings were padded to a round number of rows. And a folder of a model's name is used."""
    monkeypatch.chdir(folder.parent)
    folder = folder.rename("gpt2")
    assert gpt2np.load("gpt2")[0].hparams == SHAPE
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 2064}))
    safetensors.numpy.save_file(random_tensors(replace(SHAPE, n_vocab=2064)), folder / "model.safetensors")
    model, tokenizer = gpt2np.load(folder)
    assert model.n_vocab == 2064 and tokenizer.n_vocab == 2048 and model(TOKENS).shape == (1, 2064)
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 2000}))
    with pytest.raises(CheckpointError, match="the vocabulary has 2048 tokens, but the model has 2000"):
        gpt2np.load(folder)


UNKNOWN = {
    "125M": "expected tiny-target, tiny-draft, 124M",
    "gpt2": 'write "124M"',
    "gpt2-medium": 'write "355M"',
    "openai-community/gpt2-xl": 'write "1558M"',
    "GPT2-Large": 'write "774M"',
    "124m": 'write "124M"',
    124: 'write "124M"',
    "distilgpt2": r"or a folder with config\.json, vocab\.json, .* of a GPT-2 \(the Hugging Face hub has those",
    **dict.fromkeys(("", None, ("124M",), b"124M", "x" * 9999, "\0"), "expected tiny-target, .* or a folder with"),
}


def test_an_unknown_name_is_answered_with_what_to_write(tmp_path):
    for name, remedy in [*UNKNOWN.items(), (["124M"], "expected tiny-target, .* or a folder with")]:
        with pytest.raises(ValueError, match=f"unknown model .*: .*{remedy}") as caught:
            gpt2np.load(name, tmp_path)
        assert len(str(caught.value)) < 400 and list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="unknown source 'hg': expected hub or openai"):
        gpt2np.load("124M", tmp_path, source="hg")


@needs_links
@needs_proc
@only_hub
@pytest.mark.parametrize("name", ["config.json", "merges.txt", "model.safetensors"])
def test_a_file_that_cannot_be_read(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to("/proc/self/mem")  # a file, but it cannot be read from its beginning
    with pytest.raises(CheckpointError, match=f"{name}|cannot be read"):
        gpt2np.load(folder)


# ------------------------------------------------------------------------------------------------ from a server


def visible(folder):
    return sorted({path.name for path in folder.iterdir()} - {".lock"})


def test_a_size_is_downloaded_once(model_server, tmp_path, source):
    """OpenAI's bucket serves Content-MD5, and an ETag that is no hash."""
    for name in SOURCES[source]:
        md5 = base64.b64encode(hashlib.md5(model_server.files[f"/124M/{name}"]).digest()).decode()
        model_server.faults[f"/124M/{name}"] = [with_headers(etag='"0x8D7B5F5AA5B2B2B"', Content_MD5=md5)]
    model, _ = gpt2np.load("124M", tmp_path, source)
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    assert visible(tmp_path / "124M") == sorted(SOURCES[source])
    gpt2np.load("124M", tmp_path)  # what is there is used, whatever the source
    (tmp_path / "124M" / list(SOURCES[source])[2]).unlink()
    gpt2np.load("124M", tmp_path, source)
    wanted = [*SOURCES[source], list(SOURCES[source])[2]]
    assert [path for path, _ in model_server.requests] == [f"/124M/{name}" for name in wanted]


DATA = "model.ckpt.data-00000-of-00001"


@pytest.mark.parametrize(("source", "name"), [(source, name) for source in SOURCES for name in SOURCES[source]])
def test_a_file_of_another_kind_is_not_put_in_place(model_server, tmp_path, source, name):
    """Nor the numbers of a checkpoint with one wrong bit. In what words: the tests of the readers."""
    whole = model_server.files[f"/124M/{name}"]
    wrong = whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:] if name == DATA else b'{"error": 404}'
    model_server.files[f"/124M/{name}"] = wrong
    with pytest.raises(DownloadError, match=rf"124M/{name}: .*; try again \(it resumes"):
        gpt2np.load("124M", tmp_path, source)
    assert not [path for path in visible(tmp_path / "124M") if path.startswith(name)]
    model_server.files[f"/124M/{name}"] = whole
    gpt2np.load("124M", tmp_path, source)


@pytest.mark.parametrize("name", ["config.json", "merges.txt", "model.safetensors"])
def test_a_wrong_file_in_a_whole_folder_is_named_with_the_remedy(model_server, tmp_path, name):
    gpt2np.load("124M", tmp_path)
    path = tmp_path / "124M" / name
    path.write_bytes(path.read_bytes()[:-500] if name == "merges.txt" else b"{}")
    remedy = re.escape(f"; delete that file, or all of {tmp_path / '124M'}, and it is downloaded again")
    with pytest.raises(CheckpointError, match=f"{name}.*{remedy}$"):
        gpt2np.load("124M", tmp_path)
    path.unlink()
    gpt2np.load("124M", tmp_path)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", r"nonsense/124M/config\.json: the request failed"),
        ("http://127.0.0.1:9", r"http://127\.0\.0\.1:9/124M/config\.json: the connection failed \(.*\); try again"),
        ("http://127.0.0.1:9/" + "long/" * 6_000, r"^http://127\.0\.0\.1:9/.* into .*124M by hand$"),
        *[
            (f"{scheme}me:sec@secret@127.0.0.1:9", r"127\.0\.0\.1:9/124M/config\.json: the ")
            for scheme in ("http://", "", "ftp://", "//")
        ],
    ],
)
def test_an_address_where_nothing_is(tmp_path, monkeypatch, hurry, address, message):
    """And its password is not printed."""
    monkeypatch.setenv("GPT2NP_MODELS_URL", address)
    with pytest.raises(DownloadError, match=message) as caught:
        gpt2np.load("124M", tmp_path)
    assert "sec" not in str(caught.value) and len(str(caught.value)) <= 500
    assert visible(tmp_path / "124M") == []


# ------------------------------------------------------------------------------------------------ random faults


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
        tensors = openai_names(read_tf_checkpoint(folder / "model.ckpt"))
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
    assert visible(folder / "124M") == sorted(SOURCES[source])
    return "loaded"


def one_scenario(rng, server, folder, versions):
    """A load from a server with random faults, then one from the server as it should be; the outcomes."""
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
            note.write_text(pick(rng, "[", "null", '{"etag": '))
    second = outcome(folder, source, versions)
    if second == "DownloadError":  # a damaged file was there before: it is deleted now
        second = outcome(folder, source, versions)
    if second != "loaded":  # a file that fits only some others is in place: as the sentence says, all is deleted
        shutil.rmtree(folder / "124M")
        assert outcome(folder, source, versions) == "loaded"
    return first, second


@pytest.mark.parametrize("n", [8, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_sequence_of_faults_gives_wrong_weights(server, tmp_path, monkeypatch, versions, n):
    monkeypatch.setenv("GPT2NP_MODELS_URL", server.url)
    outcomes = []
    for seed in range(n):
        try:
            outcomes.append(one_scenario(np.random.default_rng(seed), server, tmp_path / str(seed), versions))
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
        shutil.rmtree(tmp_path / str(seed))
    first, second = zip(*outcomes)
    assert min(first.count("loaded"), first.count("DownloadError")) > n / 10
    assert second.count("loaded") > 0.8 * n
