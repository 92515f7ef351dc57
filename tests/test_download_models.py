"""Whole models over a server on the loopback address: which files are fetched, checked together, and kept."""

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import safetensors.numpy
from conftest import ROOT, random_tensors
from file_server import serve, with_headers
from write_tf import write_checkpoint

import gpt2np
from gpt2np import DownloadError, HParams, transfer
from gpt2np.download import download_file
from gpt2np.loading import find_folder
from gpt2np.model_files import SOURCES, url_of

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


def documented(folder, url, *more):
    """The documented command, as a process."""
    pair = ("--draft_model_size", "124M", "--target_model_size", "355M", "--K", "4")
    arguments = [sys.executable, ROOT / "main.py", *pair, "--models_dir", folder, "--n_tokens_to_generate", "5", *more]
    environment = {**os.environ, "GPT2NP_MODELS_URL": url, "HF_HOME": "/nowhere"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, env=environment, **pipes)


def test_the_documented_command_fetches_once_and_runs(model_server, tmp_path):
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "target  355M" in output and "same text     yes" in output
    assert len(model_server.requests) == 8
    assert sorted(p.name for p in (tmp_path / "124M").iterdir()) == sorted(SOURCES["hub"])
    with documented(tmp_path, model_server.url) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0 and len(model_server.requests) == 8


def test_a_killed_download_goes_on(model_server, tmp_path):
    """kill -9 while the large file is on its way; the second run asks for the rest, and for nothing it has."""
    weights, killed = "/355M/model.safetensors", threading.Event()

    def half(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("ETag", '"v1"')
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        killed.wait(20)
        handler.close_connection = True

    model_server.faults[weights] = [half]
    with documented(tmp_path, model_server.url) as process:
        part = tmp_path / "355M" / "downloading" / "model.safetensors.part"
        deadline = time.time() + 30
        while not (part.exists() and part.stat().st_size > 0) and time.time() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
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


def test_an_interrupted_download_ends_in_one_sentence(model_server, tmp_path):
    done = threading.Event()

    def waits(handler, body):
        done.wait(20)
        handler.close_connection = True

    model_server.faults["/355M/merges.txt"] = [waits]
    with documented(tmp_path, model_server.url) as process:
        while not any(path == "/355M/merges.txt" for path, _ in list(model_server.requests)):
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    done.set()
    assert process.returncode == 130 and output == "" and errors.count("\n") == 1 and "interrupted" in errors


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


def test_a_failure_ends_in_one_sentence_with_three_ways_on(model_server, tmp_path):
    del model_server.files["/355M/model.safetensors"]
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and output == "" and errors.count("\n") == 1
    url, folder = f"{model_server.url}/355M/model.safetensors", tmp_path / "355M"
    assert errors.startswith(
        f"main.py: {url}: the server answered 404 Not Found; try again (it goes on where it stopped)"
    )
    assert "--source openai, or a mirror in GPT2NP_MODELS_URL" in errors and "python main.py" in errors
    assert f"put config.json, vocab.json, merges.txt, model.safetensors into {folder} by hand" in errors


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("config.json", b"<html>", "config.json.part is not JSON"),
        ("config.json", b'{"vocab_size": 3}', "expected positive whole numbers"),
        ("vocab.json", b"[]", "vocab.json.part is not a JSON object"),
        ("merges.txt", b"\xff", "merges.txt.part is not UTF-8"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "not a safetensors file"),
    ],
)
def test_a_file_of_another_kind_is_not_put_in_place(model_server, tmp_path, name, body, message):
    model_server.files[f"/124M/{name}"] = body
    with pytest.raises(DownloadError, match=message):
        gpt2np.load("124M", tmp_path)
    assert not (tmp_path / "124M" / name).exists()


def test_only_what_lacks_is_fetched(model_server, tmp_path):
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


def test_a_tensor_damaged_on_its_way_is_seen_by_its_checksum(server, tmp_path, monkeypatch):
    folder = ROOT / "tests" / "golden_tf" / "model"
    data = bytearray((folder / "model.ckpt.data-00000-of-00001").read_bytes())
    data[4000] ^= 1
    (tmp_path / "model.ckpt.index").write_bytes((folder / "model.ckpt.index").read_bytes())
    server.files["/f"] = bytes(data)
    name = "model.ckpt.data-00000-of-00001"
    with pytest.raises(DownloadError, match="does not have its checksum"):
        download_file(f"{server.url}/f", tmp_path / name, SOURCES["openai"][name])


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


def test_a_mirror_address_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("GPT2NP_MODELS_URL", "nonsense")
    with pytest.raises(DownloadError, match=r"nonsense/124M/config\.json: the request failed"):
        gpt2np.load("124M", tmp_path)


# ------------------------------------------------------------------------------------------------ true shapes


@pytest.mark.slow
@pytest.mark.parametrize("source", ["hub", "openai"])
def test_the_documented_command_at_the_true_shapes(server, tmp_path, gpt2_vocabulary_files, source):
    """Random models of 124M and 355M: download, kill -9 on the way, resume, verify, load, run; and the memory."""
    shapes = {"124M": HParams(50257, 1024, 768, 12, 12), "355M": HParams(50257, 1024, 1024, 16, 24)}
    for size, shape in shapes.items():
        folder = tmp_path / "served" / size
        folder.mkdir(parents=True)
        write_model(folder, random_tensors(shape, scale=0.02), shape, gpt2_vocabulary_files)
        for name in SOURCES[source]:
            server.files[f"/{size}/{name}"] = np.memmap(folder / name, mode="r")
    large = list(SOURCES[source])[-1]
    with documented(tmp_path / "models", server.url, "--source", source) as process:
        part = tmp_path / "models" / "355M" / "downloading" / f"{large}.part"
        while not (part.exists() and part.stat().st_size > 3e8):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert part.exists()
    with documented(tmp_path / "models", server.url, "--source", source) as process:
        output, errors = process.communicate()
    assert process.returncode == 0 and errors == "" and "same text     yes" in output
    assert [r for r in server.ranges() if r] and not part.exists()

    code = f"""if True:
        import sys, time
        sys.path.insert(0, {str(ROOT)!r})
        import gpt2np

        def peak():  # bytes
            return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

        before = peak()
        started = time.perf_counter()
        model, tokenizer = gpt2np.load("355M", {str(tmp_path / "models")!r})
        seconds = time.perf_counter() - started
        model([1, 2, 3])
        print(seconds, (peak() - before) / (4 * model.n_params))"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, share = map(float, printed.split())
    print(f"{source}: loaded in {seconds:.2f} s, peak memory {share:.3f} times the weights")
    assert 0.9 < share < 1.25
