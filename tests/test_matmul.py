"""Batch invariance: of the product and of the whole model, with every strategy."""

import itertools
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers import ROOT, one_by_one, random_gpt2, walk
from systems import needs_safe_fork

from gpt2np import HParams, matmul, two_threads
from gpt2np.matmul import Embedding, Panels, product
from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler

SHAPE = HParams(n_vocab=53, n_ctx=45, n_embd=3 * 7, n_head=3, n_layer=2)
KEEPS_BITS = [name for name in matmul.STRATEGIES if name == "rows" or matmul.probe()[name]["invariant"]]


@pytest.fixture(params=KEEPS_BITS)
def strategy(request):
    before = matmul.strategy()
    yield matmul.use(request.param)
    matmul.use(before)


def random(*shape, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape, np.float32)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("n_in", "n_out"),
    [(1, 1), (7, 13), (64, 64), (63, 65), (256, 768), (768, 257), (1024, 128), (1025, 64), (3072, 200), (1000, 3000)],
)
def test_a_row_is_bitwise_identical_among_any_other_rows(strategy, n_in, n_out):
    x, w = random(40, n_in), random(n_in, n_out, seed=1)
    panels = Panels(w)
    alone = np.concatenate([x[i : i + 1] @ panels for i in range(len(x))])
    assert alone.dtype == np.float32 and alone.shape == (40, n_out)
    np.testing.assert_allclose(alone, x.astype(float) @ w, rtol=1e-4, atol=1e-5 * n_in)
    for begin, end in [(i, i + n) for n in range(2, 14) for i in (0, 3)] + [(5, 40), (0, 40), (0, 25)]:
        assert (x[begin:end] @ panels).tobytes() == alone[begin:end].tobytes(), (begin, end)


def test_also_in_two_threads(strategy, monkeypatch):
    x, w = random(5, 300), Panels(random(300, 700, seed=1))
    before = x @ w
    monkeypatch.setattr(two_threads, "TWO_THREADS_FROM", 0)
    monkeypatch.setattr(two_threads, "N_THREADS", 2)
    monkeypatch.setattr(two_threads, "idle", [])
    assert (x @ w).tobytes() == before.tobytes()
    assert len(two_threads.idle) == 1
    q, keys = random(4, 3, 16), random(4, 16, 32, seed=1)
    np.testing.assert_allclose(product(q, keys), q @ keys, rtol=1e-4, atol=1e-5)


def test_several_threads_of_a_program(monkeypatch):
    """Each uses its own worker."""
    monkeypatch.setattr(two_threads, "TWO_THREADS_FROM", 0)
    monkeypatch.setattr(two_threads, "N_THREADS", 2)
    monkeypatch.setattr(two_threads, "idle", [])
    xs, w, wrong = [random(3, 200, seed=seed) for seed in range(4)], Panels(random(200, 500)), []
    expected = [x @ w for x in xs]

    def run(x, result):
        wrong.extend(1 for _ in range(200) if (x @ w).tobytes() != result.tobytes())

    threads = [threading.Thread(target=run, args=pair) for pair in zip(xs, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and 1 <= len(two_threads.idle) <= 4


@needs_safe_fork
def test_a_forked_process_has_its_own_worker():
    code = """
import os, numpy as np
from gpt2np import matmul, two_threads
two_threads.TWO_THREADS_FROM, two_threads.N_THREADS = 0, 2
x, w = np.ones((2, 100), np.float32), matmul.Panels(np.ones((100, 200), np.float32))
x @ w
if os.fork() == 0:
    os._exit(int((x @ w).sum() == 40000))
print(os.wait()[1] >> 8)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert run.stdout.split() == [b"1"], run.stderr


def test_an_interrupted_wait_leaves_the_worker_to_the_next(monkeypatch):
    monkeypatch.setattr(two_threads, "TWO_THREADS_FROM", 0)
    monkeypatch.setattr(two_threads, "N_THREADS", 2)
    monkeypatch.setattr(two_threads, "idle", [])
    x, w, multiply = random(3, 200), Panels(random(200, 500)), np.matmul
    expected, n_threads = x @ w, threading.active_count()

    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        multiply(*arguments)

    for _ in range(20):
        monkeypatch.setattr(two_threads.np, "matmul", interrupted)
        with pytest.raises(KeyboardInterrupt):
            x @ w
        monkeypatch.setattr(two_threads.np, "matmul", multiply)
        assert (x @ w).tobytes() == expected.tobytes()
    assert threading.active_count() < n_threads + 10  # now and then one more, where a product was still running


def test_rows_of_weight_zero_and_more_columns_change_nothing(strategy):
    """What attention needs: a row that sees n tokens, computed among rows that see more."""
    q, keys, values = random(2, 9, 40), random(2, 40, 1024, seed=1), random(2, 1024, 48, seed=2)
    scores = product(q, keys)
    for n_seen in (1, 15, 16, 17, 100, 250, 400, 528, 700, 1000):
        weights = np.where(np.arange(1024) < n_seen, np.abs(scores), 0)
        heads = product(weights, values)
        for n_rows in (1, 2, 5, 9):
            n = matmul.padded(n_seen, 1024)
            assert product(q[:, :n_rows], keys[..., :n]).tobytes() == scores[:, :n_rows, :n].tobytes()
            assert product(weights[:, :n_rows, :n], values[:, :n]).tobytes() == heads[:, :n_rows].tobytes()


@pytest.mark.parametrize(("shape", "n_steps"), [(SHAPE, 80), (HParams(31, 700, 256, 1, 1), 4)], ids=["small", "wide"])
def test_logits_are_bitwise_identical_for_any_split_into_calls(strategy, shape, n_steps):
    """In the wide model, attention's products with 12 rows would be too large for the kernels for small matrices."""
    model, other = random_gpt2(shape), random_gpt2(shape)
    for tokens, n_last in walk(model, n_steps):
        assert model(tokens, n_last).tobytes() == one_by_one(other, tokens)[-n_last:].tobytes()


def test_on_the_bundled_pair(strategy, tiny_pair):
    """A text token by token, in one call, and cut at random places."""
    rng = np.random.default_rng(3)
    for model in tiny_pair[:2]:
        tokens = rng.integers(0, model.n_vocab, 150).tolist()
        logits = one_by_one(model, tokens)
        for n_cuts in (0, 1, 3, 10, 30):
            model.reset()
            cuts = [0, *sorted(rng.choice(range(1, 150), n_cuts, replace=False).tolist()), 150]
            for begin, end in itertools.pairwise(cuts):
                assert model(tokens[:end], end - begin).tobytes() == logits[begin:end].tobytes(), (begin, end)


class Recorder:
    """A model that remembers the logits it gave after each prefix."""

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx, self.seen = model, model.n_vocab, model.n_ctx, {}

    def __call__(self, tokens, n_last=1):
        logits = self.model(tokens, n_last=n_last)
        self.seen |= {tuple(tokens[: len(tokens) - n_last + 1 + i]): row.tobytes() for i, row in enumerate(logits)}
        return logits


@pytest.mark.parametrize("K", [1, 4, 8])
def test_the_logits_of_greedy_text_are_those_of_the_target_alone(strategy, tiny_pair, K):
    target, draft, tokenizer = tiny_pair
    greedy, prompt = Sampling(0), tokenizer.encode("There was once a fisherman who")
    alone, checked = Recorder(target), Recorder(target)
    AutoregressiveSampler(alone, sampling=greedy).generate(prompt, 40)
    SpeculativeSampler(checked, ModelDrafter(draft, sampling=greedy), K=K, sampling=greedy).generate(prompt, 40)
    assert len(alone.seen) == 40
    assert {prefix: checked.seen[prefix] for prefix in alone.seen} == alone.seen


@pytest.mark.parametrize("kernels", ["SkylakeX", "Haswell", "Sandybridge", "Nehalem", "Prescott"])
def test_the_chosen_strategy_is_invariant_with_other_kernels(kernels):
    """OpenBLAS can be told to use the kernels of another processor, if this one can run them."""
    code = """
import json, sys
sys.path.insert(0, "tests")
from helpers import one_by_one, random_gpt2, walk
from gpt2np import HParams, matmul
model, other = (random_gpt2(HParams(211, 100, 96, 3, 2)) for _ in range(2))
for tokens, n_last in walk(model, 12):
    assert model(tokens, n_last).tobytes() == one_by_one(other, tokens)[-n_last:].tobytes(), len(tokens)
print(json.dumps(matmul.describe()))
"""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    if kernels == "SkylakeX" and not {"X86_V4", "AVX512_SKX"} & set(found):
        pytest.skip("this processor has no AVX-512")
    environment = {k: v for k, v in os.environ.items() if k != "GPT2NP_MATMUL"} | {"OPENBLAS_CORETYPE": kernels}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["strategy"] in matmul.STRATEGIES
    assert found["probe"]["panels"]["invariant"] or kernels != "SkylakeX"


def test_a_strategy_can_be_named():
    code = "from gpt2np import matmul; print(matmul.describe()['strategy'])"
    environment = os.environ | {"GPT2NP_MATMUL": "rows"}
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment).split() == [b"rows"]
    with pytest.raises(ValueError, match="unknown strategy 'fast' for products: expected panels or rows"):
        matmul.use("fast")


def test_panels_give_the_matrix_back():
    w = random(1100, 130)
    np.testing.assert_array_equal(np.asarray(Panels(w)), w)
    wte = Embedding(w)
    np.testing.assert_array_equal(np.asarray(wte), w)
    np.testing.assert_array_equal(wte[[3, 1099, 3, 0]], w[[3, 1099, 3, 0]])
    assert wte.shape == w.shape and wte.T.shape == w.T.shape
