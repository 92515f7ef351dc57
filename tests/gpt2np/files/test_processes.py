"""Models that processes download: the documented command, kills, and company."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from file_server import cut_after, serve
from helpers import ROOT, random_tensors
from model_server import SHAPE, documented, write_model
from systems import hears_ctrl_c, needs_ctrl_c, needs_proc

import gpt2np
from gpt2np import HParams
from gpt2np.files.model_files import SOURCES


def loading(folder, url, **options):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import gpt2np; gpt2np.load('355M', sys.argv[1])"
    environment = {**os.environ, "GPT2NP_MODELS_URL": url, "HF_HOME": "/nowhere"}
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **options)


def test_the_documented_command_downloads_and_runs(model_server, tmp_path):
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "" and "target  355M" in output and "same text     yes" in output
    assert len(model_server.requests) == 8


def test_a_failure_ends_in_one_sentence_with_three_remedies(model_server, tmp_path):
    del model_server.files["/355M/model.safetensors"]
    with documented(tmp_path, model_server.url) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and output == "" and errors.count("\n") == 1
    url = f"{model_server.url}/355M/model.safetensors"
    assert errors.startswith(f"main.py: {url}: the server answered 404 Not Found; try again (it resumes where it")
    assert "use the source openai or a mirror in GPT2NP_MODELS_URL" in errors
    assert errors.endswith(" by hand; the source is --source, and python main.py needs no download\n")
    assert f"put config.json, vocab.json, merges.txt, model.safetensors into {tmp_path / '355M'} by hand" in errors


@needs_ctrl_c
def test_an_interrupted_download_ends_in_one_sentence(model_server, tmp_path):
    done = threading.Event()
    model_server.faults["/355M/merges.txt"] = [lambda handler, body: done.wait(20)]
    with documented(tmp_path, model_server.url, **hears_ctrl_c()) as process:
        while not any(path == "/355M/merges.txt" for path, _ in list(model_server.requests)):
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    done.set()
    assert process.returncode == 130 and output == ""
    kept = f"what was fetched so far is in {tmp_path / '355M'}, and the same command resumes from there"
    assert errors == f"main.py: interrupted; {kept}\n"


def test_a_killed_download_resumes(model_server, tmp_path):
    """kill -9 when half of the large file is there; the second run asks for the rest, and for nothing it has."""
    weights, killed = "/355M/model.safetensors", threading.Event()

    n_half = len(model_server.files[weights]) // 2
    model_server.faults[weights] = [cut_after(n_half, reset=False), lambda handler, body: killed.wait(20)]
    with loading(tmp_path, model_server.url) as process:
        deadline = time.time() + 60
        while [path for path, _ in list(model_server.requests)].count(weights) < 2 and time.time() < deadline:
            time.sleep(0.02)
        process.kill()
        process.communicate(timeout=30)
    killed.set()
    n_bytes, n_before = (tmp_path / "355M" / "model.safetensors.part").stat().st_size, len(model_server.requests)
    assert n_bytes > 0
    model, _ = gpt2np.load("355M", tmp_path)
    asked = [(path, headers["Range"]) for path, headers in model_server.requests[n_before:]]
    assert asked == [(weights, f"bytes={n_bytes}-")]
    np.testing.assert_array_equal(model.params["wpe"], random_tensors(SHAPE)["wpe.weight"])


def test_two_processes_at_once_fetch_each_file_once(model_server, tmp_path):
    def slow(handler, body):
        time.sleep(0.3)
        serve(handler, body)

    for name in SOURCES["hub"]:
        model_server.faults[f"/355M/{name}"] = [slow]
    processes = [loading(tmp_path, model_server.url) for _ in range(2)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(model_server.requests) == 4 and any("another process is downloading" in text for text in errors)
    assert sorted(path.name for path in (tmp_path / "355M").iterdir() if path.name != ".lock") == sorted(SOURCES["hub"])


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("source", ["hub", "openai"])
def test_the_documented_command_at_the_real_shapes(server, tmp_path, gpt2_vocabulary_files, source):
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
        part = tmp_path / "models" / "355M" / f"{large}.part"
        while not (part.exists() and part.stat().st_size > 3e8):
            time.sleep(0.01)
        process.kill()
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
