"""mlx_lm.server with a draft model: one greedy request, four times, and the audit: python dev/audits/audit_mlx.py

Needs mlx-lm (pip install "mlx[cpu]" mlx-lm transformers). In 0.32.2, after a text that ends with a correction, the
target's cache holds one token fewer than the key under which the server files it. The next request with this prompt is
trimmed by the length of the key, so it loses a token of the prompt. With --prompt-cache-size 0 there is no difference.
"""

import contextlib
import subprocess
import sys
import tempfile
import time

import requests

import gpt2np

PORTS = {"without a draft": 8301, "with a draft": 8302}


@contextlib.contextmanager
def server(port, *options):
    process = subprocess.Popen(
        [sys.executable, "-m", "mlx_lm", "server", "--host", "127.0.0.1", "--port", str(port), *options],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(120):
            time.sleep(0.5)
            with contextlib.suppress(requests.ConnectionError):
                requests.get(f"http://127.0.0.1:{port}/v1/models", timeout=5)
                break
        yield
    finally:
        process.terminate()
        process.wait()


def text(port):
    body = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
    return requests.post(f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=60).json()["choices"][0]["text"]


with tempfile.TemporaryDirectory() as folder:
    for name in ("tiny-target", "tiny-draft"):
        gpt2np.save(*gpt2np.load(name), f"{folder}/{name}")
    target, draft = ["--model", f"{folder}/tiny-target"], ["--draft-model", f"{folder}/tiny-draft"]
    with server(PORTS["without a draft"], *target), server(PORTS["with a draft"], *target, *draft):
        for about, port in PORTS.items():
            print(about)
            for _ in range(4):
                print(f"    {text(port)!r}")
        urls = [f"http://127.0.0.1:{port}/v1" for port in PORTS.values()]
        options = ["--without", urls[0], "--more", '{"top_k": 0}', "--n_max", "256", *sys.argv[1:]]
        subprocess.run([sys.executable, "main.py", "audit", urls[1], *options], check=False)
