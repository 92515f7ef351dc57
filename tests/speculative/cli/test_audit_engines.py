"""`main.py audit` of llama.cpp's own server, from the wheel xllamacpp, in a process of its own."""

import os
import subprocess
import sys

import pytest
from command import run_here

pytestmark = pytest.mark.peers

SERVER = """
import sys, time
import xllamacpp
folder, kind = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.verbosity = f"{folder}/tiny-target.gguf", 512, -1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.hostnames, params.port = ["127.0.0.1"], 0
draft = params.speculative.draft
draft.n_max = 3
if kind == "DRAFT_SIMPLE":
    draft.mparams.path, draft.probabilistic = f"{folder}/tiny-draft.gguf", True
    draft.cpuparams.n_threads = draft.cpuparams_batch.n_threads = 1
params.speculative.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{kind}")]
server = xllamacpp.Server(params)
print("at", server.listening_address, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("kind", "prompt"), [("DRAFT_SIMPLE", "Once upon a time"), ("NGRAM_SIMPLE", "the king, the king, the king, the")]
)
def test_llama_cpp_is_lossless(kind, prompt):
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    if not (folder := os.environ.get("GGUF_FOLDER")):
        pytest.skip("GGUF_FOLDER does not name the folder of dev/bench/make_gguf.py")
    with subprocess.Popen([sys.executable, "-c", SERVER, folder, kind], stdout=subprocess.PIPE, text=True) as process:
        try:
            address = next(line for line in process.stdout if line.startswith("at ")).split()[1]
            result = run_here("audit", f"{address}/v1", "--prompt", prompt, "--n_max", "512")
        finally:
            process.kill()
    assert result.returncode == 0 and "no difference found" in result.stdout, result.stdout + result.stderr
