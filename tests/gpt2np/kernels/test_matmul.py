"""The choice of a strategy, and what it is for: a model whose rows are bitwise identical however they are computed."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT, one_by_one, random_gpt2, walk
from systems import needs_proc

from gpt2np import GPT2, HParams
from gpt2np.kernels import matmul

SHAPE = HParams(n_vocab=53, n_ctx=45, n_embd=3 * 7, n_head=3, n_layer=2)


def test_a_wide_model_is_bitwise_identical_for_any_split_into_calls(strategy):
    """Attention's products with 12 rows would be too large for the kernels for small matrices.

    Small models: ../test_conformance.py.
    """
    model, other = (random_gpt2(HParams(n_vocab=31, n_ctx=700, n_embd=256, n_head=1, n_layer=1)) for _ in range(2))
    for tokens, n_last in walk(model, 4):
        assert model(tokens, n_last).tobytes() == one_by_one(other, tokens)[-n_last:].tobytes()


GENERATING = """
import os, sys, time
from pathlib import Path
import numpy as np
others = [task / "schedstat" for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]

def of_blas():  # the processor's time of its threads, after they have fallen asleep
    before = None
    while before != (now := [file.read_text().split()[0] for file in others]):
        before = now
        time.sleep(0.1)
    return now

before, large = of_blas(), np.ones((1000, 1000), np.float32)
large @ large
if before == of_blas():
    sys.exit("the BLAS has no threads, or none that are seen here")

sys.path.insert(0, "tests/shared")
from helpers import random_gpt2, random_heads
import gpt2np
from gpt2np.kernels import matmul
target, large = gpt2np.load("tiny-target")[0], random_gpt2(gpt2np.HParams(512, 300, 768, 12, 1))
for strategy in ("slabs", "panels")[: 1 + matmul.is_invariant("panels")]:
    matmul.use(strategy)  # heads are packed without a model
    pairs = [(target, gpt2np.load_heads("tiny-target", kind)) for kind in ("hydra", "medusa")]
    pairs.append((large, random_heads(large.hparams)))
    before, text = of_blas(), [1, 2] * 50
    for model, heads in pairs if strategy == "panels" else pairs[:2]:
        model = gpt2np.GPT2(model.params, model.hparams, strategy)
        model(text)
        for n in (1, 13, 64):
            model([*text, *range(n)], n)
            model([*text, *range(n)], n + 1, [-1] * n)
            for depth in range(1, heads.n_heads + 1):
                heads.logits(model, np.repeat(model.states(text), n, axis=0), np.zeros((n, depth), int))
        model([3] * 250)
    eagle = gpt2np.load_eagle("tiny-target").on(gpt2np.GPT2(target.params, target.hparams, strategy))
    for n in (1, 64):
        eagle.draft_logits([*text, *range(n)], len(text), n, [-1] * n)
    print(strategy, "sleeps" if of_blas() == before else "WAKES", flush=True)
"""


@needs_proc
def test_no_product_wakes_the_threads_of_the_blas():
    """Chains, trees, heads and prompts: with "panels" every product is small enough, with "slabs" in a small model."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", GENERATING], cwd=ROOT, env=environment, capture_output=True, text=True)
    if "the BLAS has no threads" in run.stderr:
        pytest.skip("no threads of the BLAS to watch")
    assert run.returncode == 0, run.stderr
    assert "slabs sleeps" in run.stdout and "WAKES" not in run.stdout, run.stdout


@pytest.mark.parametrize("is_large", [True, False])
def test_a_few_lucky_runs_do_not_change_the_choice(monkeypatch, is_large):
    """Beside other work, times vary by factors: slabs take 2 ms here and panels 4, but for three of their runs."""
    runs = []

    class Timed:
        __array_ufunc__ = None

        def __init__(self, _, name):
            self.name = name

        def __rmatmul__(self, x):
            runs.append(0.002 if self.name == "slabs" else 0.001 if len(runs) in (4, 16, 36) else 0.004)

    monkeypatch.setattr(matmul, "pack", Timed)
    monkeypatch.setattr(matmul, "perf_counter", lambda: sum(runs))
    found, n_matrices = matmul.times.__wrapped__(is_large), 5 if is_large else 4
    assert found == {name: [pytest.approx(n * n_matrices)] * 2 for name, n in (("panels", 4), ("slabs", 2))}
    assert runs.count(0.001) == 3


def test_a_strategy_can_be_named(monkeypatch):
    monkeypatch.setattr(matmul, "chosen", None)
    monkeypatch.setenv("GPT2NP_MATMUL", "slabs")
    assert matmul.describe()["strategy"] == "slabs"
    matmul.use("panels")  # overrides it
    assert matmul.strategy() == random_gpt2(SHAPE).strategy == "panels"
    assert GPT2(random_gpt2(SHAPE).params, SHAPE, "slabs").strategy == "slabs"


@pytest.mark.parametrize("invariant", [True, False])
def test_a_strategy_that_is_not_invariant_here_is_announced_once(monkeypatch, capsys, invariant):
    monkeypatch.setattr(matmul, "chosen", None)
    monkeypatch.setattr(matmul, "is_invariant", lambda name: invariant)
    monkeypatch.setenv("GPT2NP_MATMUL", "panels")
    assert [matmul.strategy(), matmul.strategy()] == ["panels", "panels"]
    note = "is not batch-invariant on this machine: a greedy text may differ with and without a draft"
    assert capsys.readouterr().err == f"GPT2NP_MATMUL=panels {note}\n" * (not invariant)


def test_a_context_too_long_for_panels_has_slabs(monkeypatch):
    """With "panels", two rows of attention over the whole context must be one small product."""
    monkeypatch.setattr(matmul, "chosen", "panels")
    for n_ctx, d_head, name in ((1024, 64, "panels"), (8192, 64, "slabs"), (2048, 256, "slabs")):
        model = random_gpt2(HParams(n_vocab=5, n_ctx=n_ctx, n_embd=d_head, n_head=1, n_layer=1))
        assert model.strategy == model.cache.layers[0].strategy == name
