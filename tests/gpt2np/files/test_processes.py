"""Models that processes download: the documented command, an end in the middle, and two at once; and memory."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import fake_msvcrt
import numpy as np
import pytest
from command import run_here
from file_server import names_in, send
from helpers import ROOT, random_tensors
from model_server import SHAPE, write_model
from systems import hears_ctrl_c, needs_ctrl_c, needs_proc

import gpt2np
from gpt2np import HParams
from gpt2np.files import download
from gpt2np.files.model_files import SOURCES

DOCUMENTED = ("--draft_model_size=124M", "--target_model_size=355M", "--K=4", "--n_tokens_to_generate=5")


def documented(folder, url, **options):
    """The documented command, as a process."""
    environment = {**os.environ, "GPT2NP_MODELS_URL": url, "HF_HOME": "/nowhere"}
    command = [sys.executable, ROOT / "main.py", *DOCUMENTED, "--models_dir", folder]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **options)


def test_the_documented_command_downloads_and_runs_or_ends_in_one_sentence_with_remedies(model_server, tmp_path):
    url = f"{model_server.url}/355M/model.safetensors"
    model_server.faults["/355M/model.safetensors"] = [lambda handler, body: handler.send_error(404)]
    failed = run_here(*DOCUMENTED, "--models_dir", tmp_path)
    assert failed.returncode == 2 and failed.stdout == "" and failed.stderr.count("\n") == 1
    assert failed.stderr.startswith(f"main.py: {url}: the server answered 404 Not Found; ")
    assert "also with the source openai or a mirror" in failed.stderr
    done = run_here(*DOCUMENTED, "--models_dir", tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert "target  355M" in done.stdout and "same text     yes" in done.stdout and len(model_server.requests) == 9


@pytest.mark.parametrize("end", [pytest.param("Ctrl-C", marks=needs_ctrl_c), "kill -9"])
def test_a_process_that_waits_for_the_download_of_another_resumes_it(model_server, tmp_path, capsys, monkeypatch, end):
    """With the lock of Windows as well. The one that waits fetches the rest, and nothing that is there."""
    part, ended, said = tmp_path / "355M" / "model.safetensors.part", threading.Event(), ""

    def stops_at_half(handler, body):
        send(handler, body[: len(body) // 2], length=len(body))
        ended.wait(20)

    model_server.faults["/355M/model.safetensors"] = [stops_at_half]
    if on_windows := end == "kill -9":
        monkeypatch.setattr(download, "fcntl", None)
        monkeypatch.setattr(download, "msvcrt", fake_msvcrt, raising=False)
    with documented(tmp_path, model_server.url, **({} if on_windows else hears_ctrl_c())) as process:
        while not (part.exists() and part.stat().st_size) and process.poll() is None:
            time.sleep(0.01)
        n_before = len(model_server.requests)
        with ThreadPoolExecutor(1) as waiting:
            other = waiting.submit(gpt2np.load, "355M", tmp_path)
            while "waiting for it" not in said and not other.done():
                said += capsys.readouterr().err
                time.sleep(0.01)
            assert f"another process is downloading into {tmp_path / '355M'}: waiting for it" in said
            n_bytes = part.stat().st_size
            process.kill() if on_windows else process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
            ended.set()
    kept = f"the download so far is in {tmp_path / '355M'}, and the same command resumes from there"
    assert output == "" and errors == ("" if on_windows else f"main.py: interrupted; {kept}\n")
    assert on_windows or process.returncode == 130
    np.testing.assert_array_equal(other.result()[0].params["wpe"], random_tensors(SHAPE)["wpe.weight"])
    asked = [(path, headers.get("Range")) for path, headers in model_server.requests[n_before:]]
    assert n_bytes > 0 and asked == [("/355M/model.safetensors", f"bytes={n_bytes}-")]
    assert names_in(tmp_path / "355M") == sorted(SOURCES["hub"])


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_a_load_takes_the_memory_of_the_weights(tmp_path, gpt2_vocabulary_files, source):
    """Of a random model of the size 355M."""
    shape, vocabulary = HParams(50257, 1024, 1024, 16, 24), [path.read_bytes() for path in gpt2_vocabulary_files]
    write_model(tmp_path, random_tensors(shape, scale=0.02), shape, vocabulary, source)
    code = """if True:
        import gpt2np

        def peak():  # bytes
            return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

        before = peak()
        model, tokenizer = gpt2np.load(".")
        model([1, 2, 3])
        print((peak() - before) / (4 * model.n_params))"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True
    )
    assert 0.9 < float(run.stdout) < 1.25  # times the weights
