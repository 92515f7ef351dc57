"""The model by its definition: the logits of the reference, and no more work than they take."""

import numpy as np
from helpers import in_float64, random_gpt2, random_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2np.model
from gpt2np import HParams, reference
from gpt2np.cache import KVCache
from gpt2np.model import forward

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=2)


def assert_close(logits, expected, error):
    assert logits.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4 * np.abs(expected).max() + 4 * error)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_the_fast_pass_equals_the_reference(data):
    """Any shape, any split of a text into cached and new tokens, any number of rows; with an explicit cache as well."""
    n_head, d_head, n_ctx = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    shape = HParams(data.draw(st.integers(2, 90)), n_ctx, n_head * d_head, n_head, data.draw(st.integers(1, 3)))
    model, cache = random_gpt2(shape, seed=data.draw(st.integers(0, 99))), KVCache(shape.n_layer, n_head, n_ctx, d_head)
    assert model.n_params == sum(tensor.size for tensor in random_tensors(shape).values())
    texts = st.lists(st.integers(0, shape.n_vocab - 1), min_size=1, max_size=n_ctx)
    tokens, keep = data.draw(texts), 0
    for _ in range(3):
        n_last = data.draw(st.integers(1, len(tokens)))
        wanted = reference.forward(tokens, model.params, n_head)
        exact = reference.forward(tokens, in_float64(model.params), n_head)
        error = np.abs(wanted - exact)[-n_last:].max()  # with a few columns, layer norm may magnify an error a lot
        assert_close(model(tokens, n_last), wanted[-n_last:], error)
        cache.truncate(np.int64(keep))
        new = tokens[cache.length :]
        assert_close(forward(new, model.params, n_head, None, cache)[-n_last:], wanted[-min(n_last, len(new)) :], error)
        assert cache.length == len(tokens)
        cache.truncate(n_ctx)  # forgets nothing
        assert cache.length == len(tokens)
        keep = data.draw(st.integers(0, len(tokens)))
        more = (tokens[:keep] + data.draw(texts))[:n_ctx]
        tokens, keep = more, min(keep, len(more) - 1)


def test_only_new_tokens_are_run_and_the_states_of_the_last_call_are_kept(monkeypatch):
    model, ran, original = random_gpt2(SHAPE), [], gpt2np.model.hidden_states
    monkeypatch.setattr(gpt2np.model, "hidden_states", lambda new, *rest: ran.append(new) or original(new, *rest))
    for tokens in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 5, 6], [1, 2], [1, 2]):
        model(tokens)
    assert ran == [[1, 2, 3], [4], [5, 6], [2], [2]]
    model.reset()
    model([1, 2, 3, 4, 5, 6], n_last=4)
    model.states([1, 2, 3, 4], 2), model.states([1, 2, 3])
    assert ran[5:] == [[1, 2, 3, 4, 5, 6]]
    model.states([1, 2, 9]), model.states([1, 2, 9])
    assert ran[6:] == [[9]]
    model([1, 2, 9, 4, 5, 6, 7], 5, [-1, -1, 1, 1])  # 6 and 7 after 5
    model.states([1, 2, 9, 5, 7], 3), model.states([1, 2, 9, 4], 2)
    assert ran[7:] == [[9, 4, 5, 6, 7]]
