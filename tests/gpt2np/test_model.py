"""The model: the logits of the reference, whatever was asked before, however it is asked, and whoever interrupts it."""

import copy
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import random_gpt2, random_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np.model
from gpt2np import EarlyExit, HParams, reference
from gpt2np.cache import KVCache, TokenTree
from gpt2np.files.params import build_params
from gpt2np.kernels import matmul
from gpt2np.model import forward

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def uncached(model, tokens, n_last):
    return reference.forward(tokens, model.params, model.hparams.n_head)[-n_last:]


def rounding(model, tokens, n_last):
    """The largest error of the reference in float32: with a few columns, layer norm may magnify an error a lot."""

    def in_float64(part):
        if isinstance(part, dict):
            return {key: in_float64(value) for key, value in part.items()}
        return [in_float64(value) for value in part] if isinstance(part, list) else np.asarray(part).astype(np.float64)

    exact = reference.forward(tokens, in_float64(model.params), model.hparams.n_head)[-n_last:]
    assert exact.dtype == np.float64
    return np.abs(uncached(model, tokens, n_last) - exact).max()


def assert_close(logits, expected, error=0):
    assert logits.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4 * np.abs(expected).max() + 4 * error)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_fast_pass_equals_the_reference(data):
    """Any shape, any split of a text into cached and new tokens, any number of rows."""
    n_head, d_head, n_ctx = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    shape = HParams(data.draw(st.integers(2, 90)), n_ctx, n_head * d_head, n_head, data.draw(st.integers(1, 3)))
    model = random_gpt2(shape, seed=data.draw(st.integers(0, 99)))
    texts = st.lists(st.integers(0, shape.n_vocab - 1), min_size=1, max_size=n_ctx)
    tokens = data.draw(texts)
    for _ in range(3):
        n_last = data.draw(st.integers(1, len(tokens)))
        error = rounding(model, tokens, n_last)
        assert_close(model(tokens, n_last), uncached(model, tokens, n_last), error)
        tokens = (tokens[: data.draw(st.integers(0, len(tokens)))] + data.draw(texts))[:n_ctx]


def test_the_fast_pass_equals_the_reference_on_the_bundled_pair(tiny_pair):
    tokens = tiny_pair[2].encode("Once upon a time there was a king, and the king had a daughter who")
    for model in tiny_pair[:2]:
        model(tokens[:5])
        assert_close(model(tokens, len(tokens)), uncached(model, tokens, len(tokens)))


@pytest.mark.parametrize("n_cached", [0, 5])
def test_positions_and_mask_allow_the_nodes_of_a_tree(n_cached):
    """Every node's row is that of the text and the node's own path, whatever branches are computed with it."""
    model, text, nodes = random_gpt2(SHAPE), [3, 1, 4, 1, 5, 9], [7, 8, 7, 10, 11, 2, 7]
    paths = [], [7], [8], [7, 7], [7, 10], [8, 11], [7, 10, 2], [7, 10, 2, 7]
    positions, mask = TokenTree([*text, *nodes], [-1, -1, 0, 0, 1, 3, 5]).positions_and_mask(n_cached)
    cache = KVCache(SHAPE.n_layer, SHAPE.n_head, SHAPE.n_ctx, SHAPE.d_head)
    if n_cached:
        forward(text[:n_cached], model.params, SHAPE.n_head, cache=cache)
    logits = forward([*text, *nodes][n_cached:], model.params, SHAPE.n_head, 8, cache, positions, mask)
    for row, path in zip(logits, paths):
        assert_close(row, uncached(model, [*text, *path], 1)[0])
        if matmul.strategy() == "panels":  # adds in one order, so that columns of weight 0 change nothing
            assert row.tobytes() == model([*text, *path])[0].tobytes()


def in_threads(function, texts):
    """function(text) for each text, in as many threads, at the shortest switch interval."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(texts)) as threads:
            return list(threads.map(function, texts))
    finally:
        sys.setswitchinterval(interval)


def test_threads_share_a_model():
    model, rng = random_gpt2(SHAPE), np.random.default_rng(0)
    texts = [rng.integers(0, SHAPE.n_vocab, 12).tolist() for _ in range(8)]
    expected = [{model(text, 3).tobytes()} for text in texts]

    def run(text):
        found = set()
        for n in range(30):
            model(text[: 6 + n % 6])
            found.add(model(text, 3).tobytes())
        return found

    assert in_threads(run, texts) == expected


def test_logits_do_not_depend_on_what_was_asked_before():
    """A random walk of extending, branching and shrinking, for any number of rows, against the pass without cache."""
    model, rng, tokens = random_gpt2(SHAPE), np.random.default_rng(0), [1]
    lengths = set()
    for _ in range(300):
        keep = int(rng.integers(0, len(tokens) + 1))
        new = rng.integers(0, SHAPE.n_vocab, rng.integers(0, SHAPE.n_ctx - keep + 1)).tolist()
        tokens = (tokens[:keep] + new) or [2]
        n_last = int(rng.integers(1, len(tokens) + 1))
        logits = model(tokens, n_last=n_last)
        assert logits.shape == (n_last, SHAPE.n_vocab) and logits.dtype == np.float32
        assert_close(logits, uncached(model, tokens, n_last))
        lengths.add(len(tokens))
    assert lengths == set(range(1, SHAPE.n_ctx + 1))


def test_only_new_tokens_are_run(monkeypatch):
    model, ran = random_gpt2(SHAPE), []
    original = gpt2np.model.hidden_states
    monkeypatch.setattr(
        gpt2np.model, "hidden_states", lambda tokens, *rest: ran.append(tokens) or original(tokens, *rest)
    )
    for tokens in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 5, 6], [1, 2], [1, 2]):
        model(tokens)
    assert ran == [[1, 2, 3], [4], [5, 6], [2], [2]]
    model.reset()
    model([1, 2])
    assert ran[-1] == [1, 2]


class InterruptAt:
    """Raises KeyboardInterrupt at the nth line that gpt2np runs."""

    def __init__(self, n):
        self.n_left = n

    def __call__(self, frame, event, argument):
        if f"{os.sep}gpt2np{os.sep}" not in frame.f_code.co_filename:
            return None
        self.n_left -= event == "line"
        if self.n_left == 0 and event == "line":
            raise KeyboardInterrupt
        return self


def interrupted(call, n):
    """Whether the call had as many as n lines, and was interrupted."""
    before = sys.gettrace()
    sys.settrace(InterruptAt(n))
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


STEPS = pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])


@STEPS
@pytest.mark.parametrize("make", [lambda model: model, lambda model: EarlyExit(model, 1)], ids=["GPT2", "EarlyExit"])
def test_a_call_interrupted_at_any_line_leaves_the_model_right(make, step):
    """Ctrl-C may come between any two lines; later calls give the same results as a new model."""
    model, fresh = make(random_gpt2(SHAPE)), make(random_gpt2(SHAPE))
    expected = {}
    for tokens in ([1, 2, 7, 8, 9], [1, 2, 3, 4]):
        fresh.reset()
        expected[tuple(tokens)] = fresh(tokens).tobytes()
    chain, tree = ([1, 2, 3, 4],), ([1, 2, 3, 7, 8], 4, [-1, -1, 1])  # the branch 7, 8 has to move
    for before, during in ((chain, ([1, 2, 7, 8],)), (tree, ([1, 2, 7, 8, 5, 6], 3, [-1, -1]))):
        is_interrupted, n = True, 1
        while is_interrupted:
            model(*before)
            is_interrupted = interrupted(lambda: model(*during), n)  # noqa: B023, called at once
            for tokens, logits in expected.items():
                assert model(list(tokens)).tobytes() == logits, f"interrupted at line {n}"
            n += step
        assert n > 50


@STEPS
def test_an_interrupted_call_leaves_no_hidden_states_of_other_tokens(step):
    model, fresh = random_gpt2(SHAPE), random_gpt2(SHAPE)
    expected = fresh.states([1, 2, 7, 8], 2).tobytes()
    is_interrupted, n = True, 1
    while is_interrupted:
        model([1, 2, 3, 4], 2)
        is_interrupted = interrupted(lambda: model([1, 2, 7, 8], 2), n)
        assert model.states([1, 2, 7, 8], 2).tobytes() == expected, f"interrupted at line {n}"
        n += step


class Views:
    """Like a tensor: its elements are views of memory that the caller may write to."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return (self.array[i : i + 1].reshape(()) for i in range(len(self)))

    def tolist(self):
        return self.array.tolist()


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, tuple, Views, lambda array: list(Views(array))])
@pytest.mark.parametrize("early_exit", [False, True])
def test_tokens_may_come_as_any_sequence_and_be_written_to_after_a_call(kind, early_exit):
    model, fresh = random_gpt2(SHAPE), random_gpt2(SHAPE)
    model = EarlyExit(model, 1) if early_exit else model
    array = np.array([1, 2, 3, 4])
    tokens = kind(array)
    np.testing.assert_array_equal(model(tokens), fresh([1, 2, 3, 4]))
    assert array.tolist() == [1, 2, 3, 4]
    array[:] = [4, 3, 2, 1]  # the model keeps no reference to it
    np.testing.assert_array_equal(model(tokens), fresh([int(token) for token in tokens]))


def test_token_ids_of_a_small_type_are_added_up_by_nobody():
    model = random_gpt2(HParams(n_vocab=300, n_ctx=64, n_embd=16, n_head=2, n_layer=1))
    np.testing.assert_array_equal(model([np.uint8(200)] * 40), model([200] * 40))


@pytest.mark.parametrize(
    ("tokens", "n_last", "message"),
    [
        ([], 1, "expected 1 to n_ctx = 29 tokens, got 0"),
        ([0] * 30, 1, "expected 1 to n_ctx = 29 tokens, got 30"),
        ([1, 2], 3, "expected n_last from 1 to the number of tokens, 2, got 3"),
        ([1, 2], 0, "expected n_last from 1 to the number of tokens, 2, got 0"),
        ([1, 53], 1, "expected token ids from 0 to 52, got 1 to 53"),
        ([-1, 2], 1, "expected token ids from 0 to 52, got -1 to 2"),
    ],
)
def test_tokens_that_cannot_be_run_are_refused(tokens, n_last, message):
    with pytest.raises(ValueError, match=message):
        random_gpt2(SHAPE)(tokens, n_last)


@pytest.mark.parametrize("n_last", [-1, 0, 6])
def test_forward_refuses_a_number_of_rows_that_there_are_not(n_last):
    params = random_gpt2(SHAPE).params
    with pytest.raises(ValueError, match=rf"n_last from 1 to the number of new tokens, 5, got {n_last}"):
        forward([1, 2, 3, 4, 5], params, SHAPE.n_head, n_last=n_last)
    with pytest.raises(ValueError, match="expected at least one new token, got none"):
        forward([], params, SHAPE.n_head)


def test_n_params_counts_every_parameter():
    assert random_gpt2(SHAPE).n_params == sum(tensor.size for tensor in random_tensors(SHAPE).values())


@pytest.mark.parametrize("kind", ["GPT2", "EarlyExit"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_starts_with_an_empty_cache(kind, copied, monkeypatch):
    """The cache of the model may be in the middle of a call by another thread."""
    monkeypatch.setattr(matmul, "chosen", "rows")
    model, tokens = random_gpt2(HParams(n_vocab=53, n_ctx=45, n_embd=32, n_head=2, n_layer=2)), [1, 2, 3, 4]
    model = {"GPT2": model, "EarlyExit": EarlyExit(model, 1)}[kind]
    expected = model(tokens, n_last=2)
    monkeypatch.setattr(matmul, "chosen", "panels")  # the copy keeps the model's own
    with model.lock:
        other = copied(model)
    assert other.strategy == other.params["wte"].T.strategy == "rows" and other.lock is not model.lock
    assert kind != "EarlyExit" or other.early_exit.whole is other
    assert kind == "EarlyExit" or len(other.hidden) == 0 < len(model.hidden)
    lengths = [m.first.length if kind == "EarlyExit" else m.cache.length for m in (model, other)]
    assert lengths == [4, 0]
    model([5] * 9)
    assert np.array_equal(other(tokens, n_last=2), expected) and np.array_equal(model(tokens, n_last=2), expected)


@pytest.mark.parametrize("n_last", [np.int8(2), np.uint8(2), np.uint64(2), np.array(2, np.uint32)])
def test_n_last_may_be_of_any_integer_type(n_last):
    """Those of NumPy keep their size in arithmetic: 150 would not fit int8, and minus 2 is no uint8."""
    model, tokens = random_gpt2(HParams(n_vocab=53, n_ctx=200, n_embd=21, n_head=3, n_layer=2)), [*range(50)] * 3
    exit_ = EarlyExit(model, 1)
    for m in (model, exit_, exit_.early_exit):
        expected = m(tokens, n_last=2)
        assert np.array_equal(m(tokens, n_last=n_last), expected)
        assert len(m(tokens[:9], n_last=n_last)) == 2 and np.array_equal(m(tokens, n_last=2), expected)
    for end in (9, 150):
        rows = forward(tokens[:end], model.params, 3, 2)
        assert np.array_equal(forward(tokens[:end], model.params, 3, n_last), rows)


def test_a_call_that_is_refused_leaves_the_model_as_it_was():
    model = random_gpt2(HParams(n_vocab=53, n_ctx=45, n_embd=32, n_head=2, n_layer=1))
    expected = model([1, 2, 3])
    for wrong in (([1, 2, 3], 1.0), ([1.5, 2.5],), (["a"],), ([1, 2, 3], 1, [-1.0])):
        with pytest.raises(ValueError, match="expected whole numbers"):
            model(*wrong)
    assert np.array_equal(model([1, 2, 3]), expected)


def test_a_token_outside_the_vocabulary_is_refused_with_plain_and_packed_weights():
    h = HParams(n_vocab=53, n_ctx=45, n_embd=32, n_head=2, n_layer=1)
    plain = build_params(random_tensors(h), h, "random")
    for params in (plain, random_gpt2(h).params):
        for token in (-1, 53):
            with pytest.raises(IndexError):
                forward([5, token], params, 2)


def test_reset_waits_for_the_call_in_progress():
    for model in (random_gpt2(SHAPE), EarlyExit(random_gpt2(SHAPE), 1)):
        thread = threading.Thread(target=model.reset)
        with model.lock:
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()  # it waits for the call in progress
        thread.join()


# ------------------------------------------------------------------------------------------------ hidden states


def test_the_states_of_the_last_call_are_kept(monkeypatch):
    """Of the text, and of whatever draft tokens follow it; those of another text take a pass, of what differs."""
    model, text, draft = random_gpt2(SHAPE), [1, 2, 3, 4], [5, 6, 7]
    ran, original = [], gpt2np.model.hidden_states
    monkeypatch.setattr(gpt2np.model, "hidden_states", lambda new, *rest: ran.append(new) or original(new, *rest))
    model([*text, *draft], n_last=4)
    ran.clear()
    for n in range(4):
        kept = model.states([*text, *draft[:n]], n + 1)
        assert kept.shape == (n + 1, SHAPE.n_embd) and ran == []
        assert kept.tobytes() == random_gpt2(SHAPE).states([*text, *draft[:n]], n + 1).tobytes()
        ran.clear()
    model.states([1, 2, 9])
    assert ran == [[9]]
    model.states([1, 2, 9])
    assert ran == [[9]]


def in_a_tree(rng, n):
    parents = [int(rng.integers(-1, i)) if i else -1 for i in range(n)]
    tokens = []
    for i, parent in enumerate(parents):  # siblings carry different tokens
        tokens.append((3 + 5 * sum(p == parent for p in parents[:i])) % SHAPE.n_vocab)
    return tokens, parents


def test_the_states_of_a_branch_are_those_of_its_text():
    model, fresh, rng, text = random_gpt2(SHAPE), random_gpt2(SHAPE), np.random.default_rng(0), [1, 2, 3]
    for n in range(1, 7):
        tokens, parents = in_a_tree(rng, n)
        model([*text, *tokens], n + 1, parents)
        kept, node, accepted = model.hidden, -1, []
        while below := [child for child, parent in enumerate(parents) if parent == node]:
            node = int(rng.choice(below))
            accepted.append(tokens[node])
        row = model.states([*text, *accepted])
        assert model.hidden is kept  # no pass
        assert row.tobytes() == fresh.states([*text, *accepted]).tobytes()
        text = [*text, *accepted, 4]


def test_an_interrupted_call_leaves_no_states_of_an_earlier_text():
    model, block = random_gpt2(SHAPE), gpt2np.model.block
    model([1, 2, 3, 4], n_last=2)
    for n_done in range(SHAPE.n_layer):
        calls = iter(range(n_done))

        def interrupted(*arguments, calls=calls):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return block(*arguments)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(gpt2np.model, "block", interrupted)
            model([1, 2, 3, 5], n_last=2)
        assert model.states([1, 2, 3, 5]).tobytes() == random_gpt2(SHAPE).states([1, 2, 3, 5]).tobytes()
        model([1, 2, 3, 4], n_last=2)


def test_threads_may_ask_for_states():
    model, texts = random_gpt2(SHAPE), ([1, 2, 3], [4, 5, 6, 7])
    found = in_threads(lambda text: {model.states(text).tobytes() for _ in range(50)}, texts)
    assert found == [{random_gpt2(SHAPE).states(text).tobytes()} for text in texts]
