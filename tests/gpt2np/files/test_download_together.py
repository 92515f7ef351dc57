"""The files of a model are checked together before they are used; what is refused, and in what words."""

import json
import re

import numpy as np
import pytest
import safetensors.numpy
from file_server import left_over
from helpers import ROOT, random_tensors
from model_server import SHAPE, documented

import gpt2np
from gpt2np import CheckpointError, DownloadError, HParams
from gpt2np.files.model_files import SOURCES

OTHER = HParams(n_vocab=2048, n_ctx=64, n_embd=3 * 5, n_head=3, n_layer=2)


def of_another_model(name, files):
    """A file that passes its own check, but not together with the others of the model."""
    if name == "config.json":
        return json.dumps(json.loads(files[name]) | {"n_embd": 24}).encode()
    if name == "hparams.json":
        return json.dumps(json.loads(files[name]) | {"n_layer": 1}).encode()
    if name in ("vocab.json", "encoder.json"):
        return files[name].replace(b'"the"', b'"teh"')
    if name in ("merges.txt", "vocab.bpe"):
        return b"\n".join(files[name].split(b"\n")[:1000])
    if name == "model.safetensors":
        return safetensors.numpy.save(random_tensors(OTHER))
    return (ROOT / "tests" / "golden_tf" / "model" / name).read_bytes()


CASES = [(source, name) for source in SOURCES for name in SOURCES[source]]


@pytest.mark.parametrize(("source", "name"), CASES)
def test_a_wrong_file_does_not_block_later_runs(model_server, small_model, tmp_path, source, name):
    whole = model_server.files[f"/124M/{name}"]
    model_server.files[f"/124M/{name}"] = of_another_model(name, small_model)
    with pytest.raises(DownloadError, match=r"removed|python main\.py") as caught:
        gpt2np.load("124M", tmp_path, source)
    assert not (tmp_path / "124M" / name).exists() and len(str(caught.value)) <= 500
    if name in ("vocab.json", "merges.txt", "encoder.json", "vocab.bpe"):  # seen before the weights are fetched
        assert not [path for path, _ in model_server.requests if "model." in path]
    model_server.files[f"/124M/{name}"] = whole
    model, _ = gpt2np.load("124M", tmp_path, source)
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    assert sorted(p.name for p in (tmp_path / "124M").iterdir()) == sorted(SOURCES[source])


@pytest.mark.parametrize("name", ["config.json", "vocab.json"])
def test_files_that_were_there_are_kept_and_named(model_server, small_model, tmp_path, name):
    mine = tmp_path / "124M" / name
    mine.parent.mkdir()
    mine.write_bytes(of_another_model(name, small_model))
    with pytest.raises(DownloadError, match=rf"have been removed .*; delete {name}, which were there before"):
        gpt2np.load("124M", tmp_path)
    assert left_over(mine) == [] and mine.exists()
    mine.unlink()
    gpt2np.load("124M", tmp_path)


@pytest.mark.parametrize(("source", "name"), [case for case in CASES if "model.ckpt" not in case[1]])
def test_a_wrong_file_in_a_whole_folder_is_named_with_the_remedy(model_server, small_model, tmp_path, source, name):
    gpt2np.load("124M", tmp_path, source)
    (tmp_path / "124M" / name).write_bytes(of_another_model(name, small_model))
    folder = re.escape(str(tmp_path / "124M"))
    with pytest.raises(CheckpointError, match=f"124M.*; delete that file, or all of {folder}, and it is"):
        gpt2np.load("124M", tmp_path, source)
    (tmp_path / "124M" / name).unlink()
    gpt2np.load("124M", tmp_path, source)


def test_an_index_put_there_by_hand_fits_the_downloaded_data(model_server, small_model, tmp_path):
    (tmp_path / "124M").mkdir()
    (tmp_path / "124M" / "model.ckpt.index").write_bytes(small_model["model.ckpt.index"])
    gpt2np.load("124M", tmp_path, source="openai")
    assert len(model_server.requests) == 4


def test_a_failure_ends_in_one_sentence_with_three_remedies(model_server, tmp_path):
    del model_server.files["/355M/model.safetensors"]
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and output == "" and errors.count("\n") == 1
    url, folder = f"{model_server.url}/355M/model.safetensors", tmp_path / "355M"
    assert errors.startswith(
        f"main.py: {url}: the server answered 404 Not Found; try again (it resumes where it stopped)"
    )
    assert "--source openai or a mirror in GPT2NP_MODELS_URL" in errors and "python main.py" in errors
    assert f"put config.json, vocab.json, merges.txt, model.safetensors into {folder} by hand" in errors


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("config.json", b"<html>", r"config\.json: config\.json\.part is not JSON"),
        ("config.json", b'{"vocab_size": 3}', "expected positive whole numbers"),
        ("vocab.json", b"[]", r"vocab\.json\.part is not a JSON object"),
        ("merges.txt", b"\xff", r"merges\.txt\.part is not UTF-8"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "not a safetensors file"),
    ],
)
def test_a_file_of_another_kind_is_not_put_in_place(model_server, tmp_path, name, body, message):
    model_server.files[f"/124M/{name}"] = body
    with pytest.raises(DownloadError, match=message):
        gpt2np.load("124M", tmp_path)
    assert not (tmp_path / "124M" / name).exists()


def test_a_tensor_damaged_on_the_way_is_detected_by_its_checksum(model_server, tmp_path):
    name = "model.ckpt.data-00000-of-00001"
    whole = model_server.files[f"/124M/{name}"]
    model_server.files[f"/124M/{name}"] = whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:]
    with pytest.raises(DownloadError, match="does not have its checksum"):
        gpt2np.load("124M", tmp_path, source="openai")
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_mirror_url(tmp_path, monkeypatch):
    monkeypatch.setenv("GPT2NP_MODELS_URL", "nonsense")
    with pytest.raises(DownloadError, match=r"nonsense/124M/config\.json: the request failed"):
        gpt2np.load("124M", tmp_path)


def test_offline_nothing_is_left_on_the_disk(tmp_path, monkeypatch, hurry):
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match="the connection failed"):
        gpt2np.load("124M", tmp_path / "class" / "models")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "models" / "124M").mkdir(parents=True)
    with pytest.raises(DownloadError, match="the connection failed"):
        gpt2np.load("124M", tmp_path / "models")
    assert list(tmp_path.rglob("*")) == [tmp_path / "models", tmp_path / "models" / "124M"]


@pytest.mark.parametrize(
    "address",
    [
        "http://me:secret@127.0.0.1:9",
        "me:secret@127.0.0.1:9",
        "http://me:secret@[::1",
        "ftp://me:secret@h",
        "//a:secret@b",
    ]
    + ["http://me:sec@secret@127.0.0.1:9", "http://secret@127.0.0.1:9", "http://me:secret@127.0.0.1:99999"],
)
def test_a_password_in_an_address_is_not_printed(tmp_path, monkeypatch, hurry, address):
    monkeypatch.setenv("GPT2NP_MODELS_URL", address)
    with pytest.raises(DownloadError) as caught:
        gpt2np.load("124M", tmp_path)
    assert "secret" not in str(caught.value) and "124M/config.json: the " in str(caught.value)


def test_long_addresses_leave_room_for_the_remedy(tmp_path, monkeypatch, hurry):
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://127.0.0.1:9/" + "long/" * 6_000)
    with pytest.raises(DownloadError, match=r"try again .*python main\.py needs no download$") as caught:
        gpt2np.load("124M", tmp_path)
    assert len(str(caught.value)) <= 500
