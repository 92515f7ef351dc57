"""Where a model's files are. Those of a folder: test_folders.py; what it lacks: test_refusals.py."""

import pytest

from gpt2np.files.model_files import SOURCES, find_on_disk, url_of


@pytest.mark.parametrize(
    ("variable", "folder"), [("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")]
)
def test_a_folder_in_hugging_faces_cache_is_read_in_place(tmp_path, monkeypatch, variable, folder):
    for other in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    repository = tmp_path / folder / "models--openai-community--gpt2"
    older, version = repository.with_name("models--gpt2"), repository / "refs" / "main"
    for path in (version, *(repository / "snapshots" / "abc123" / name for name in SOURCES["hub"])):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for nonsense in (b"another", b"", b"\xff\xfe\x00"):
        version.write_bytes(nonsense)
        assert find_on_disk("124M", tmp_path / "models") is None
    version.write_bytes(b"abc123\n")
    assert find_on_disk("124M", tmp_path / "models") == repository / "snapshots" / "abc123"
    repository.rename(older)
    assert find_on_disk("124M", tmp_path / "models") == older / "snapshots" / "abc123"
    (older / "snapshots" / "abc123" / "merges.txt").unlink()
    assert find_on_disk("124M", tmp_path / "models") is None


def test_where_the_files_are(monkeypatch):
    for name in ("GPT2NP_MODELS_URL", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert url_of("355M", "f", "hub") == "https://huggingface.co/openai-community/gpt2-medium/resolve/main/f"
    assert url_of("355M", "f", "openai") == "https://openaipublic.blob.core.windows.net/gpt-2/models/355M/f"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror/")
    assert url_of("124M", "f", "hub") == "http://mirror/openai-community/gpt2/resolve/main/f"
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://class:8000/")
    assert url_of("1558M", "f", "hub") == url_of("1558M", "f", "openai") == "http://class:8000/1558M/f"
