"""Batch invariance: of the product and of the whole model, with every strategy."""

import copy
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers import ROOT, one_by_one, random_gpt2, walk
from systems import needs_safe_fork

from gpt2np import GPT2, HParams
from gpt2np.cache import KVCache
from gpt2np.kernels import matmul, panels, threads
from gpt2np.kernels.attention import product, triangle, weighted_sums
from gpt2np.kernels.matmul import Embedding, pack
from gpt2np.layers import mlp
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
    [(1, 1), (7, 13), (64, 64), (63, 65), (256, 768), (100, 2100), (768, 257), (1024, 128), (1025, 64), (3072, 200)]
    + [(1000, 3000)],
)
def test_a_row_is_bitwise_identical_among_any_other_rows(strategy, n_in, n_out):
    x, w = random(40, n_in), random(n_in, n_out, seed=1)
    packed = pack(w)
    alone = np.concatenate([x[i : i + 1] @ packed for i in range(len(x))])
    assert alone.dtype == np.float32 and alone.shape == (40, n_out)
    np.testing.assert_allclose(alone, x.astype(float) @ w, rtol=1e-4, atol=1e-5 * n_in)
    for begin, end in [(i, i + n) for n in range(2, 14) for i in (0, 3)] + [(5, 40), (0, 40), (0, 25)]:
        assert (x[begin:end] @ packed).tobytes() == alone[begin:end].tobytes(), (begin, end)


@pytest.mark.parametrize("name", matmul.STRATEGIES)
@pytest.mark.parametrize("shape", [(64, 64), (256, 768), (3072, 200)])
def test_weights_and_the_cache_begin_at_a_line_of_the_cache(name, shape):
    cache = KVCache(n_layer=2, n_head=3, n_ctx=45, d_head=7)
    arrays = [pack(random(*shape), name).blocks, pack(random(*shape).T, name).blocks]
    arrays += [array for layer in cache.layers for array in (layer.keys, layer.values)]
    assert [array.ctypes.data % 64 for array in arrays] == [0] * 6
    assert all(np.count_nonzero(array) in (0, shape[0] * shape[1]) for array in arrays)


@pytest.mark.parametrize(
    "shape",
    [(7, 13), (256, 768), (256, 2048), (300, 16), (384, 128), (512, 128), (768, 768), (3072, 200), (1000, 3000)],
)
def test_the_longer_side_of_a_block_of_rows_is_contiguous(shape):
    blocks = pack(random(*shape), "rows").blocks
    assert blocks.strides[2 + np.argmax(blocks.shape[2:])] == blocks.itemsize and max(blocks.shape[2:]) <= 1024


@pytest.mark.parametrize("name", matmul.STRATEGIES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda packed: pickle.loads(pickle.dumps(packed))])
def test_a_copy_of_packed_weights_lies_in_memory_as_they_do(name, copied):
    packed, x = pack(random(100, 192), name), random(3, 100, seed=1)
    other = copied(packed)
    assert np.array_equal(other, packed) and (x @ other).tobytes() == (x @ packed).tobytes()
    assert other.blocks.strides == packed.blocks.strides and other.blocks.ctypes.data % 64 == 0
    assert not np.shares_memory(other.blocks, packed.blocks)


@pytest.fixture
def n_threads(request, monkeypatch):
    """Products in this many threads, however small they are."""
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "n_threads", lambda: request.param)
    monkeypatch.setattr(threads, "n_threads_for_prompts", lambda: request.param)
    monkeypatch.setattr(threads, "idle", [])
    return request.param


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4, 7], indirect=True)
def test_also_in_several_threads(strategy, n_threads, monkeypatch):
    x, q, keys, values = random(30, 2100), random(5, 30, 16), random(5, 16, 32, seed=1), random(5, 32, 32, seed=2)
    matrices, mask = [pack(random(n_in, 700, seed=1)) for n_in in (300, 2100)], np.zeros((30, 32), np.float32)

    def products():
        of_matrices = [x[:n, : w.shape[0]] @ w for w in matrices for n in (1, 5, 30)]
        return [y.tobytes() for y in (*of_matrices, weighted_sums(q, keys, values, mask, strategy))]

    monkeypatch.setattr(panels, "SUMS", 1000)  # several bunches of rows
    monkeypatch.setattr(threads, "LEAST", 1)
    found = products()
    monkeypatch.setattr(panels, "SUMS", 65536)
    threads.WORTH = 10**18
    assert found == products()
    assert min(1, n_threads - 1) <= len(threads.idle) <= n_threads - 1


@pytest.mark.parametrize("n_threads", [1, 3], indirect=True)
def test_attention_takes_a_long_prompt_in_parts(strategy, n_threads):
    q, keys, values, mask = random(2, 400, 16), random(2, 16, 512, seed=1), random(2, 512, 32, seed=2), triangle(512)
    whole = weighted_sums(q, keys, values, mask[100:500], strategy)
    for some in (slice(0, 1), slice(190, 203), slice(300, 400)):
        assert (
            weighted_sums(q[:, some], keys, values, mask[100:500][some], strategy).tobytes() == whole[:, some].tobytes()
        )
    values = np.where(np.arange(512)[:, None] < 384, values, np.float32("nan"))  # a weight of 0 does not hide these
    unseen = np.isnan(weighted_sums(q, keys, values, mask[100:500], strategy)).any(axis=(0, 2))
    assert not unseen[:200].any() and unseen[200:].all()  # the first half sees 300 tokens


@pytest.mark.parametrize(("n_rows", "n_workers"), [(31, 1), (32, 4)])
def test_a_prompt_may_use_more_threads(monkeypatch, n_rows, n_workers):
    matmul.describe()  # the probe has products, too
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    monkeypatch.setattr(threads, "n_threads_for_prompts", lambda: 5)
    monkeypatch.setattr(threads, "WORTH", 1)
    shared = []
    monkeypatch.setattr(threads, "share", lambda work, parts, n: shared.append(n - 1) or work(iter(parts)))
    x, q, keys = random(n_rows, 100), random(2, n_rows, 16), random(2, 16, 32)
    x @ pack(random(100, 700))
    weighted_sums(q, keys, random(2, 32, 32), np.zeros((n_rows, 32), np.float32), matmul.strategy())
    mlp(x, *({"w": pack(random(*shape)), "b": random(shape[1])} for shape in ((100, 400), (400, 100))))
    assert shared == [n_workers] * 5


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_several_threads_of_a_program(n_threads):
    """Each uses workers of its own."""
    xs, w, wrong = [random(3, 200, seed=seed) for seed in range(4)], pack(random(200, 500)), []
    expected = [x @ w for x in xs]

    def run(x, result):
        wrong.extend(1 for _ in range(200) if (x @ w).tobytes() != result.tobytes())

    callers = [threading.Thread(target=run, args=pair) for pair in zip(xs, expected)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == [] and 2 <= len(threads.idle) <= 8


@needs_safe_fork
def test_a_forked_process_has_its_own_workers():
    code = """
import os, numpy as np
from gpt2np.kernels import matmul, threads
threads.WORTH, threads.n_threads = 1, lambda: 3
x, w = np.ones((2, 100), np.float32), matmul.pack(np.ones((100, 200), np.float32))
x @ w
if os.fork() == 0:
    os._exit(int((x @ w).sum() == 40000))
print(os.wait()[1] >> 8)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert run.stdout.split() == [b"1"], run.stderr


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_an_interrupted_product_leaves_the_workers_to_the_next(n_threads, monkeypatch):
    x, w, matmul_of_numpy = random(3, 200), pack(random(200, 500)), np.matmul
    expected, n_before = x @ w, threading.active_count()

    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        matmul_of_numpy(*arguments)

    n_interrupted = 0
    for _ in range(20):
        monkeypatch.setattr(np, "matmul", interrupted)
        try:
            x @ w
        except KeyboardInterrupt:  # else the workers took all of it
            n_interrupted += 1
        monkeypatch.setattr(np, "matmul", matmul_of_numpy)
        assert (x @ w).tobytes() == expected.tobytes()
    assert n_interrupted > 0
    assert threading.active_count() < n_before + 10  # now and then one more, where a product was still running


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_without_another_thread_this_one_does_the_work(n_threads, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    x, w = random(3, 200), pack(random(200, 500))
    expected = x @ w
    monkeypatch.setattr(threads, "idle", [])
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert (x @ w).tobytes() == expected.tobytes() and threads.idle == []


def test_a_slow_thread_takes_fewer_parts():
    """The others go on without it."""
    taken, others = {}, threading.Event()

    def work(parts):
        for part in parts:
            taken.setdefault(threading.current_thread(), []).append(part)
            if threading.current_thread() is threading.main_thread():
                others.wait(timeout=60)
            elif part == 99:
                others.set()

    threads.share(work, range(100), 3)
    assert sorted(part for parts in taken.values() for part in parts) == list(range(100))
    assert len(taken.get(threading.main_thread(), [])) <= 1


def test_an_error_in_another_thread_is_raised_here():
    met = threading.Barrier(2)

    def work(parts):
        met.wait(timeout=60)
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")

    for _ in range(3):
        with pytest.raises(MemoryError, match="no room"):
            threads.share(work, range(4), 2)


def test_rows_of_weight_zero_and_more_columns_change_nothing(strategy):
    """What attention needs: a row that sees n tokens, computed among rows that see more."""
    q, keys, values = random(2, 9, 40), random(2, 40, 1024, seed=1), random(2, 1024, 48, seed=2)
    scores = product(q, keys, strategy)
    for n_seen in (1, 15, 16, 17, 100, 250, 400, 528, 700, 1000):
        weights = np.where(np.arange(1024) < n_seen, np.abs(scores), 0)
        heads = product(weights, values, strategy)
        for n_rows in (1, 2, 5, 9):
            n = matmul.padded(n_seen, 1024, strategy)
            assert product(q[:, :n_rows], keys[..., :n], strategy).tobytes() == scores[:, :n_rows, :n].tobytes()
            assert product(weights[:, :n_rows, :n], values[:, :n], strategy).tobytes() == heads[:, :n_rows].tobytes()


@pytest.mark.parametrize(("shape", "n_steps"), [(SHAPE, 80), (HParams(31, 700, 256, 1, 1), 4)], ids=["small", "wide"])
def test_logits_are_bitwise_identical_for_any_split_into_calls(strategy, shape, n_steps):
    """In the wide model, attention's products with 12 rows would be too large for the kernels for small matrices."""
    model, other = random_gpt2(shape), random_gpt2(shape)
    for tokens, n_last in walk(model, n_steps):
        assert model(tokens, n_last).tobytes() == one_by_one(other, tokens)[-n_last:].tobytes()


def test_on_the_bundled_pair(strategy, tiny_pair):
    """A text token by token, in one call, and cut at random places."""
    rng = np.random.default_rng(3)
    for model in (GPT2(model.params, model.hparams) for model in tiny_pair[:2]):  # packed for the strategy
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
    target, draft = (GPT2(model.params, model.hparams) for model in tiny_pair[:2])
    tokenizer = tiny_pair[2]
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
sys.path.insert(0, "tests/shared")
from helpers import one_by_one, random_gpt2, walk
from gpt2np import HParams
from gpt2np.kernels import matmul
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
    assert set(found["strategy"].split("/")) <= set(matmul.STRATEGIES) and found["probe"]["eights"]["invariant"]
    openblas = "openblas" in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]  # others ignore it
    assert found["probe"]["panels"]["invariant"] or kernels != "SkylakeX" or not openblas


def test_a_few_lucky_runs_do_not_change_the_choice(monkeypatch):
    """Beside other work, times vary by factors: rows take 2 ms here and eights 4, but for three of their runs."""
    clock, runs = [0.0], {"rows": 0, "eights": 0}

    class Timed:
        __array_ufunc__ = None

        def __init__(self, _, name):
            self.name = name

        def __rmatmul__(self, x):
            runs[self.name] += 1
            clock[0] += {"rows": 0.002, "eights": 0.001 if runs["eights"] in (5, 17, 37) else 0.004}[self.name]

    monkeypatch.setattr(matmul, "pack", Timed)
    monkeypatch.setattr(matmul, "perf_counter", lambda: clock[0])
    found = matmul.times.__wrapped__(("rows", "eights"), 64)
    assert found == {name: [pytest.approx(n)] * 2 for name, n in (("rows", 2), ("eights", 4))}
    assert runs == {"rows": 48, "eights": 48}


def test_a_strategy_can_be_named(monkeypatch):
    code = "from gpt2np.kernels import matmul; print(matmul.describe()['strategy'])"
    for choice in ("rows", "rows/eights"):
        environment = os.environ | {"GPT2NP_MATMUL": choice}
        assert (
            subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment).decode().strip() == choice
        )
    before = matmul.strategy()
    matmul.use("rows/eights")
    names = [random_gpt2(HParams(7, 8, n_embd, 1, 1)).params["wte"].T.strategy for n_embd in (511, 512)]
    matmul.use(before)
    assert names == ["rows", "eights"]
    with monkeypatch.context() as m, pytest.raises(ValueError, match=r"^GPT2NP_MATMUL: unknown strategy 'fast'"):
        m.setattr(matmul, "chosen", None)
        m.setenv("GPT2NP_MATMUL", "fast")
        matmul.strategy(0)
    with pytest.raises(ValueError, match="unknown strategy 'fast' for products: expected panels, rows, eights"):
        matmul.use("fast")


@pytest.mark.parametrize("name", matmul.STRATEGIES)
@pytest.mark.parametrize("other", matmul.STRATEGIES)
@pytest.mark.parametrize("n", [300, 530])
def test_a_packed_matrix_gives_the_matrix_back_and_can_be_packed_again(name, other, n):
    w = random(1100, n)
    np.testing.assert_array_equal(np.asarray(pack(w, name)), w)
    copy = np.array(narrow := pack(w[:, :16], name))
    copy[:] = 0
    np.testing.assert_array_equal(np.asarray(narrow), w[:, :16])
    wte = Embedding(Embedding(w, other), name)
    assert wte.T.strategy == name
    np.testing.assert_array_equal(np.asarray(wte), w)
    for indices in ([3, 1099, 3, 0], [[3], [1099]], 7, []):
        np.testing.assert_array_equal(wte[indices], w[np.array(indices, int)])
    assert wte.shape == w.shape and wte.T.shape == w.T.shape


def test_what_a_packed_matrix_refuses(strategy):
    w = pack(random(7, 20))
    assert (np.empty((0, 7), np.float32) @ w).shape == (0, 20)
    for x, shape in ((random(7), "[7]"), (random(2, 8), "[2, 8]")):
        with pytest.raises(ValueError, match=re.escape(f"expected x of shape [n_new, 7], got {shape}")):
            x @ w
    for indices in ([3, 20], [-1]):
        with pytest.raises(IndexError, match="expected indices from 0 to 19, got"):
            w.columns(indices)


@pytest.mark.parametrize("max_rows", [2, 6, 10, 12])
def test_groups_of_panels_have_even_rows_and_few_zeros(max_rows):
    """An odd number, or one row, would go to other kernels."""
    for n_new in range(1, 300):
        x = np.arange(1, n_new + 1, dtype=np.float32)[:, None]
        groups = panels.grouped(x, max_rows, "panels")
        n_rows, n_zeros = groups.shape[1], groups.size - n_new
        assert n_rows % 2 == 0 and 2 <= n_rows <= max_rows
        assert np.array_equal(groups.reshape(-1, 1), np.append(x, np.zeros(n_zeros))[:, None])
        assert n_zeros <= (n_new % 2 if n_new <= max_rows else -n_new % max_rows)
