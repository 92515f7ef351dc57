import numpy as np
import pytest
from conftest import random_gpt2, random_tensors

import gpt2np.model
from gpt2np import HParams
from gpt2np.cache import KVCache
from gpt2np.model import common_prefix, forward

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def uncached(model, tokens, n_last):
    return forward(tokens, model.params, SHAPE.n_head, n_last)


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
        np.testing.assert_allclose(logits, uncached(model, tokens, n_last), rtol=1e-4, atol=1e-4)
        lengths.add(len(tokens))
    assert lengths == set(range(1, SHAPE.n_ctx + 1))


def test_only_new_tokens_are_run(monkeypatch):
    model, ran = random_gpt2(SHAPE), []
    original = gpt2np.model.forward
    monkeypatch.setattr(gpt2np.model, "forward", lambda tokens, *rest: ran.append(tokens) or original(tokens, *rest))
    for tokens in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 5, 6], [1, 2], [1, 2]):
        model(tokens)
    assert ran == [[1, 2, 3], [4], [5, 6], [2], [2]]
    model.reset()
    model([1, 2])
    assert ran[-1] == [1, 2]


def test_the_cache_as_an_explicit_argument():
    params, tokens = random_gpt2(SHAPE).params, [3, 1, 4, 1, 5, 9, 2]
    cache = KVCache(SHAPE.n_layer, SHAPE.n_head, SHAPE.n_ctx, SHAPE.d_head)
    rows = [forward(part, params, SHAPE.n_head, cache=cache) for part in (tokens[:3], tokens[3:4], tokens[4:])]
    assert cache.length == 7
    np.testing.assert_allclose(np.concatenate(rows), forward(tokens, params, SHAPE.n_head), rtol=1e-4, atol=1e-4)
    cache.truncate(9)  # forgets nothing
    assert cache.length == 7
    cache.truncate(2)
    again = forward(tokens[2:], params, SHAPE.n_head, n_last=2, cache=cache)
    np.testing.assert_allclose(again, forward(tokens, params, SHAPE.n_head, n_last=2), rtol=1e-4, atol=1e-4)


def test_an_interrupted_call_leaves_the_model_right(monkeypatch):
    model = random_gpt2(SHAPE)
    model([1, 2, 3, 4])
    calls, block = [], gpt2np.model.block

    def interrupted(*arguments):
        calls.append(0)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return block(*arguments)

    monkeypatch.setattr(gpt2np.model, "block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model([1, 2, 7, 8])
    monkeypatch.setattr(gpt2np.model, "block", block)
    for tokens in ([1, 2, 7, 8], [1, 2, 3, 4]):
        np.testing.assert_allclose(model(tokens), uncached(model, tokens, 1), rtol=1e-4, atol=1e-4)


def test_tokens_may_come_as_any_sequence_and_stay_as_they_are():
    model = random_gpt2(SHAPE)
    array = np.array([1, 2, 3])
    array.setflags(write=False)
    tokens = [1, 2, 3]
    logits = model(tokens)
    assert tokens == [1, 2, 3]
    for same in (array, (1, 2, 3), array.astype(np.int32)):
        model.reset()
        np.testing.assert_array_equal(model(same), logits)
    tokens.append(4)  # the caller's list: the model keeps no hold on it
    np.testing.assert_allclose(model([1, 2, 3, 5]), uncached(model, [1, 2, 3, 5], 1), rtol=1e-4, atol=1e-4)


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
def test_what_cannot_be_run_is_refused(tokens, n_last, message):
    with pytest.raises(ValueError, match=message):
        random_gpt2(SHAPE)(tokens, n_last)


def test_n_params_counts_every_number():
    assert random_gpt2(SHAPE).n_params == sum(tensor.size for tensor in random_tensors(SHAPE).values())


def test_common_prefix():
    for a, b, n in (([], [], 0), ([1], [], 0), ([1, 2], [1, 2], 2), ([1, 2], [1, 2, 3], 2), ([1, 9], [1, 2], 1)):
        assert common_prefix(a, b) == common_prefix(b, a) == n
