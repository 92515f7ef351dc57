"""Downloads of models of the real shapes."""

import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import ROOT, random_tensors
from model_server import documented, write_model
from systems import needs_proc

from gpt2np import HParams
from gpt2np.files.model_files import SOURCES


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
        part = tmp_path / "models" / "355M" / "downloading" / f"{large}.part"
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
