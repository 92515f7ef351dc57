"""Systems that lack something: Windows, for the tests themselves, and a browser, for the library."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

from speculative import ModelDrafter, SpeculativeSampler

TOUCHING = ("gpt2np/kernels", "gpt2np/files", "speculative/cli", "speculative/measuring")


@pytest.mark.slow
def test_the_tests_run_or_are_skipped_on_other_systems():
    """Also those that could not be collected, if they imported pty or resource, or asked for a forkserver."""
    folders = [ROOT / "tests" / folder for folder in TOUCHING]
    command = [sys.executable, "-m", "pytest", "-p", "like_windows", "-p", "no:cacheprovider", "-n", "0", "-rs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "shared")}
    result = subprocess.run(
        [*command, *folders], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0 and "SKIPPED" in result.stdout, result.stdout


IN_A_BROWSER = """
import sys, threading
for name in ("fcntl", "msvcrt", "tqdm", "requests"):
    sys.modules[name] = None  # as if it were not installed

def start(thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = start
import gpt2np, speculative

target, tokenizer = gpt2np.load("tiny-target")
drafter = speculative.ModelDrafter(gpt2np.load("tiny-draft")[0])
sampler = speculative.SpeculativeSampler(target, drafter)
print(*sampler.generate(tokenizer.encode("Once upon a time"), 12, rng=0).tokens)
"""


def test_a_text_is_written_without_threads_locks_and_downloads(tiny_pair):
    """As under WebAssembly, or where the number of threads is limited."""
    run = subprocess.run([sys.executable, "-c", IN_A_BROWSER], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    target, draft, tokenizer = tiny_pair
    sampler = SpeculativeSampler(target, ModelDrafter(draft))
    generation = sampler.generate(tokenizer.encode("Once upon a time"), 12, rng=0)
    assert [*map(int, run.stdout.split())] == generation.tokens.tolist()
