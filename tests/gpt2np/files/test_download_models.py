"""Whole models over a server on the loopback address: which files are fetched, checked together, and kept."""

import base64
import hashlib
import signal
import threading
import time

from file_server import serve, with_headers
from model_server import documented
from systems import hears_ctrl_c, needs_ctrl_c, needs_links

import gpt2np
from gpt2np.files import transfer
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SOURCES, url_of


def test_the_documented_command_fetches_once_and_runs(model_server, tmp_path):
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "target  355M" in output and "same text     yes" in output
    assert len(model_server.requests) == 8
    assert sorted(p.name for p in (tmp_path / "124M").iterdir()) == sorted(SOURCES["hub"])
    with documented(tmp_path, model_server.url) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0 and len(model_server.requests) == 8


def test_a_killed_download_resumes(model_server, tmp_path):
    """kill -9 when half of the large file is there; the second run asks for the rest, and for nothing it has."""
    weights, killed = "/355M/model.safetensors", threading.Event()

    def half(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("ETag", '"v1"')
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        handler.close_connection = True

    model_server.faults[weights] = [half, lambda handler, body: killed.wait(20)]
    with documented(tmp_path, model_server.url) as process:
        part = tmp_path / "355M" / "downloading" / "model.safetensors.part"
        deadline = time.time() + 60
        while [path for path, _ in list(model_server.requests)].count(weights) < 2 and time.time() < deadline:
            time.sleep(0.02)
        process.kill()
        process.communicate(timeout=30)
    killed.set()
    n_bytes = part.stat().st_size
    assert n_bytes > 0
    n_before = len(model_server.requests)
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "same text     yes" in output
    asked = [(path, headers.get("Range")) for path, headers in model_server.requests[n_before:]]
    assert asked[0] == (weights, f"bytes={n_bytes - transfer.OVERLAP}-") and len(asked) == 1 + 4


@needs_ctrl_c
def test_an_interrupted_download_ends_in_one_sentence(model_server, tmp_path):
    done = threading.Event()

    def waits(handler, body):
        done.wait(20)
        handler.close_connection = True

    model_server.faults["/355M/merges.txt"] = [waits]
    with documented(tmp_path, model_server.url, **hears_ctrl_c()) as process:
        while not any(path == "/355M/merges.txt" for path, _ in list(model_server.requests)):
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    done.set()
    assert process.returncode == 130 and output == "" and errors.count("\n") == 1
    kept = f"what was fetched so far is in {tmp_path / '355M'}, and the same command resumes from there"
    assert errors == f"main.py: interrupted; {kept}\n"


def test_two_processes_at_once_fetch_each_file_once(model_server, tmp_path):
    def slow(handler, body):
        time.sleep(0.5)
        serve(handler, body)

    for name in SOURCES["hub"]:
        model_server.faults[f"/355M/{name}"] = [slow]
    processes = [documented(tmp_path, model_server.url) for _ in range(2)]
    results = [process.communicate(timeout=60) for process in processes]
    for process, (output, _) in zip(processes, results):
        assert process.returncode == 0 and "same text     yes" in output
    assert len(model_server.requests) == 8
    assert any("another process is downloading" in errors for _, errors in results)
    assert sorted(p.name for p in (tmp_path / "355M").iterdir()) == sorted(SOURCES["hub"])


def test_only_missing_files_are_downloaded(model_server, tmp_path):
    gpt2np.load("124M", tmp_path)
    (tmp_path / "124M" / "merges.txt").unlink()
    gpt2np.load("124M", tmp_path)
    assert [path for path, _ in model_server.requests[4:]] == ["/124M/merges.txt"]


def test_the_openai_source_gives_the_same_model(model_server, tmp_path):
    """As the bucket serves it, with Content-MD5 and an ETag that is no hash."""
    for name in SOURCES["openai"]:
        body = model_server.files[f"/124M/{name}"]
        md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
        model_server.faults[f"/124M/{name}"] = [with_headers(etag='"0x8D7B5F5AA5B2B2B"', Content_MD5=md5)]
    ours, tokenizer = gpt2np.load("124M", tmp_path / "a", source="openai")
    assert sorted(p.name for p in (tmp_path / "a" / "124M").iterdir()) == sorted(SOURCES["openai"])
    theirs, _ = gpt2np.load("124M", tmp_path / "b")
    tokens = tokenizer.encode("Once upon a time")
    assert ours(tokens, n_last=3).tobytes() == theirs(tokens, n_last=3).tobytes()
    n_requests = len(model_server.requests)
    gpt2np.load("124M", tmp_path / "a")  # what is there is used, whatever the source
    assert len(model_server.requests) == n_requests
    (tmp_path / "a" / "124M" / "config.json").write_text("{}")  # a stray file of the other layout does no harm
    gpt2np.load("124M", tmp_path / "a")


@needs_links
def test_a_folder_in_hugging_faces_cache_is_read_in_place(model_server, tmp_path, monkeypatch):
    gpt2np.load("124M", tmp_path / "elsewhere")
    snapshot = tmp_path / "cache" / "models--openai-community--gpt2" / "snapshots" / "abc123"
    (tmp_path / "elsewhere" / "124M").rename(snapshot.parent.mkdir(parents=True) or snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("abc123\n")
    n_requests = len(model_server.requests)
    for variable, value in (("HF_HUB_CACHE", "cache"), ("HF_HOME", ""), ("XDG_CACHE_HOME", "xdg")):
        monkeypatch.delenv("HF_HUB_CACHE", raising=False)
        monkeypatch.delenv("HF_HOME", raising=False)
        if variable == "HF_HOME":
            (tmp_path / "hub").symlink_to(tmp_path / "cache")
        if variable == "XDG_CACHE_HOME":
            (tmp_path / "xdg" / "huggingface").mkdir(parents=True)
            (tmp_path / "xdg" / "huggingface" / "hub").symlink_to(tmp_path / "cache")
        monkeypatch.setenv(variable, str(tmp_path / value))
        assert find_folder("124M", tmp_path / "models").resolve() == snapshot
        gpt2np.load("124M", tmp_path / "models")
    assert len(model_server.requests) == n_requests and not (tmp_path / "models").exists()
    (snapshot / "merges.txt").unlink()  # no longer complete: downloaded instead
    gpt2np.load("124M", tmp_path / "models")
    assert len(model_server.requests) == n_requests + 4


def test_a_version_in_the_cache_that_is_a_path_is_not_followed(model_server, tmp_path, monkeypatch):
    refs = tmp_path / "cache" / "models--openai-community--gpt2" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("../../../elsewhere/124M")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    gpt2np.load("124M", tmp_path / "elsewhere")
    assert find_folder("124M", tmp_path / "models") == tmp_path / "models" / "124M"


def test_where_the_files_are(monkeypatch):
    assert url_of("355M", "f", "hub") == "https://huggingface.co/openai-community/gpt2-medium/resolve/main/f"
    assert url_of("355M", "f", "openai") == "https://openaipublic.blob.core.windows.net/gpt-2/models/355M/f"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror/")
    assert url_of("124M", "f", "hub") == "http://mirror/openai-community/gpt2/resolve/main/f"
    monkeypatch.setenv("GPT2NP_MODELS_URL", "http://class:8000")
    assert url_of("1558M", "f", "hub") == url_of("1558M", "f", "openai") == "http://class:8000/1558M/f"
