"""Which files a folder has, and where a model's files are."""

import re

import pytest
from systems import needs_links

from gpt2np import CheckpointError
from gpt2np.files.model_files import SOURCES, files_of, find_on_disk, url_of


@pytest.fixture
def folder(small_model, tmp_path):
    """A small model in the Hugging Face layout."""
    (tmp_path / "model").mkdir()
    for name in SOURCES["hub"]:
        (tmp_path / "model" / name).write_bytes(small_model[name])
    return tmp_path / "model"


def test_either_vocabulary_goes_with_either_layout(folder, small_model):
    assert files_of(folder) == ("hub", [folder / "vocab.json", folder / "merges.txt"])
    (folder / "vocab.json").rename(folder / "encoder.json")
    (folder / "merges.txt").rename(folder / "vocab.bpe")
    assert files_of(folder) == ("hub", [folder / "encoder.json", folder / "vocab.bpe"])
    for name in SOURCES["openai"]:
        (folder / name).write_bytes(small_model[name])
    (folder / "model.safetensors").unlink()
    assert files_of(folder)[0] == "openai"


OTHER_FORMS = {
    "tokenizer.json": ("merges.txt", "tokenizer.json has both: write its model.vocab as vocab.json, and each of"),
    "model.safetensors.index.json": ("model.safetensors", "save the model with max_shard_size='100GB'"),
    "pytorch_model.bin": ("model.safetensors", "save_pretrained of transformers writes model.safetensors"),
}


def test_missing_files_are_named_by_the_names_of_their_layout_with_what_to_do(folder, small_model):
    def refusal():
        with pytest.raises(CheckpointError) as caught:
            files_of(folder)
        return str(caught.value)

    for missing in ("config.json", "merges.txt", "model.safetensors"):
        (folder / missing).unlink()
        assert re.search(f" lacks .*{missing}: expected a GPT-2, with the files config", refusal())
        (folder / missing).write_bytes(small_model[missing])
    for other, (missing, remedy) in OTHER_FORMS.items():
        (folder / other).write_bytes(b"")
        (folder / "config.json").unlink()
        assert remedy not in refusal()  # what it replaces is there
        (folder / "config.json").write_bytes(small_model["config.json"])
        (folder / missing).unlink()
        assert remedy in refusal()
        (folder / missing).write_bytes(small_model[missing])
        (folder / other).unlink()
    for name in SOURCES["hub"]:
        (folder / name).unlink()
    assert " lacks config.json and model.safetensors and vocab.json with merges.txt: " in refusal()
    (folder / "hparams.json").write_text("{}")
    assert re.search(r" lacks model\.ckpt\.index and .* and encoder\.json with vocab\.bpe: ", refusal())


@pytest.fixture
def cache(folder, tmp_path, monkeypatch):
    """Hugging Face's cache with the model; `cache` is the folder of its version."""
    for variable in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    repository = tmp_path / "cache" / "models--openai-community--gpt2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123\n")
    (repository / "snapshots").mkdir()
    folder.rename(repository / "snapshots" / "abc123")
    return repository / "snapshots" / "abc123"


@needs_links
@pytest.mark.parametrize(
    ("variable", "value", "link"),
    [("HF_HUB_CACHE", "cache", None), ("HF_HOME", "", "hub"), ("XDG_CACHE_HOME", "", "huggingface/hub")],
)
def test_a_folder_in_hugging_faces_cache_is_read_in_place(cache, tmp_path, monkeypatch, variable, value, link):
    if link:
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(tmp_path / "cache")
    monkeypatch.setenv(variable, str(tmp_path / value))
    assert find_on_disk("124M", tmp_path / "models").resolve() == cache
    (cache / "merges.txt").unlink()
    assert find_on_disk("124M", tmp_path / "models") is None


def test_the_older_name_and_what_is_no_version(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    version = tmp_path / "cache" / "models--openai-community--gpt2" / "refs" / "main"
    for nonsense in (b"another", b"", b"\xff\xfe\x00"):
        version.write_bytes(nonsense)
        assert find_on_disk("124M", tmp_path / "models") is None
    version.write_bytes(b"abc123")
    (tmp_path / "cache" / "models--openai-community--gpt2").rename(tmp_path / "cache" / "models--gpt2")
    assert find_on_disk("124M", tmp_path / "models") == tmp_path / "cache" / "models--gpt2" / "snapshots" / "abc123"


def test_where_the_files_are(monkeypatch):
    for name in ("GPT2NP_MODELS_URL", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert url_of("355M", "f", "hub") == "https://huggingface.co/openai-community/gpt2-medium/resolve/main/f"
    assert url_of("355M", "f", "openai") == "https://openaipublic.blob.core.windows.net/gpt-2/models/355M/f"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror/")
    assert url_of("124M", "f", "hub") == "http://mirror/openai-community/gpt2/resolve/main/f"
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://class:8000/")
    assert url_of("1558M", "f", "hub") == url_of("1558M", "f", "openai") == "http://class:8000/1558M/f"
