"""What loading says about files that vanish, that are no files, or that another layout explains."""

import re
import shutil

import numpy as np
import pytest
import safetensors.numpy
from helpers import random_tensors
from model_server import SHAPE
from systems import opening_a_folder

import gpt2np
from gpt2np import CheckpointError, DownloadError
from gpt2np.files import json_object, loading
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SOURCES, files_of


@pytest.fixture
def folder(small_model, tmp_path):
    """A small model in the Hugging Face layout, from elsewhere."""
    (tmp_path / "124M").mkdir()
    for name in SOURCES["hub"]:
        (tmp_path / "124M" / name).write_bytes(small_model[name])
    return tmp_path / "124M"


@pytest.mark.parametrize("name", ["config.json", "merges.txt", "model.safetensors"])
def test_a_folder_in_the_place_of_a_file_is_named(model_server, folder, name):
    """What is there is not downloaded, so it has to be read; nothing is wrong with the place to write to."""
    (folder / name).unlink()
    (folder / name).mkdir()
    reason = re.escape(f"{folder / name} cannot be read ({opening_a_folder()})")
    with pytest.raises(DownloadError, match=f"^{reason}$"):
        gpt2np.load("124M", folder.parent)
    assert sorted(path.name for path in folder.iterdir()) == sorted(SOURCES["hub"])


@pytest.mark.parametrize("name", SOURCES["hub"])
def test_a_file_that_vanishes_while_it_is_looked_for_is_named(folder, name, monkeypatch):
    def vanishing(folder):
        found = files_of(folder)
        (folder / name).unlink()
        return found

    monkeypatch.setattr(loading, "files_of", vanishing)
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(folder / name))} cannot be read"):
        gpt2np.load(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "merges.txt"])
def test_a_small_file_is_read_up_to_its_limit(folder, name, monkeypatch):
    """Its size is looked at before it is read."""
    size = (folder / name).stat().st_size
    monkeypatch.setattr(json_object, "MAX_SIZE", size)
    SOURCES["hub"][name](folder / name)
    monkeypatch.setattr(json_object, "MAX_SIZE", size - 1)
    with pytest.raises(CheckpointError, match=rf"{name} has {size} bytes, expected at most {size - 1}; get the file"):
        SOURCES["hub"][name](folder / name)


def test_only_a_size_can_be_downloaded_again(folder):
    (folder / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"it is downloaded again$"):
        gpt2np.load("124M", folder.parent)
    with pytest.raises(CheckpointError, match=r"is it the file of a GPT-2\?$"):
        gpt2np.load(folder)


@pytest.mark.parametrize("missing", ["merges.txt", "model.safetensors"])
def test_what_is_there_needs_no_remedy(folder, missing):
    """A tokenizer.json next to a whole vocabulary does not explain why the weights are missing, and so on."""
    (folder / missing).unlink()
    for name in ("tokenizer.json", "pytorch_model.bin"):
        (folder / name).write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        files_of(folder)
    said = str(caught.value)
    assert ("tokenizer.json has both" in said) == (missing == "merges.txt")
    assert ("save_pretrained of transformers" in said) == (missing == "model.safetensors")


def test_what_is_missing_of_a_layout_is_named_by_its_own_names(folder):
    for name in SOURCES["hub"]:
        (folder / name).unlink()
    with pytest.raises(
        CheckpointError, match=r" lacks config\.json and model\.safetensors and vocab\.json with merges"
    ):
        files_of(folder)
    (folder / "hparams.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r" lacks model\.ckpt\.index and .* and encoder\.json with vocab\.bpe: "):
        files_of(folder)


def test_a_cache_whose_version_is_no_text_is_passed_over(folder, tmp_path, monkeypatch):
    refs = tmp_path / "cache" / "models--openai-community--gpt2" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_bytes(b"\xff\xfe\x00")
    older = tmp_path / "cache" / "models--gpt2"
    (older / "refs").mkdir(parents=True)
    (older / "refs" / "main").write_text("abc123\n")
    shutil.copytree(folder, older / "snapshots" / "abc123")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert find_folder("124M", tmp_path / "models") == older / "snapshots" / "abc123"


def test_a_copy_of_the_embeddings_may_have_what_is_not_a_number(folder):
    """It is compared with them, and a NaN differs from itself."""
    tensors = {name: tensor.copy() for name, tensor in random_tensors(SHAPE).items()}
    tensors["wte.weight"][5, 2] = np.nan
    safetensors.numpy.save_file(
        tensors | {"lm_head.weight": tensors["wte.weight"].copy()}, folder / "model.safetensors"
    )
    with np.errstate(all="ignore"):
        assert np.isnan(gpt2np.load(folder)[0]([1])[0]).nonzero()[0].tolist() == [5]


def test_the_largest_numbers_of_float32_fit(folder):
    tensors, most = random_tensors(SHAPE), np.finfo(np.float32).max
    for value, fits in ((most, True), (-most, True), (np.nextafter(np.float64(most), np.inf), False)):
        safetensors.numpy.save_file(
            tensors | {"ln_f.bias": np.full(SHAPE.n_embd, value, np.float64)}, folder / "model.safetensors"
        )
        if fits:
            assert (gpt2np.load(folder)[0].params["ln_f"]["b"] == np.float32(value)).all()
        else:
            with pytest.raises(CheckpointError, match=r"has values beyond float32 in ln_f\.bias"):
                gpt2np.load(folder)
