"""Attention's inner loop: by its formula, and batch-invariant."""

import math

import numpy as np
import pytest
from helpers import random_array, random_gpt2

from gpt2np import HParams, reference
from gpt2np.kernels.attention import LONG, PIECE, triangle, weighted_sums
from gpt2np.kernels.layer_cache import LayerCache


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("n", [40, 128, 130])
def test_attention_by_its_formula(strategy, has_mask, n):
    """n tokens, the last 9 of them new; with a mask, those of a tree see some of the others."""
    q, k, v = random_array(3, 9, 20), random_array(3, 256, 20, seed=1), random_array(3, 256, 20, seed=2)
    cache = LayerCache(3, 256, 20, strategy)
    cache.append(k, v)
    cache.append(k[:, :n], v[:, :n])  # of tokens that are forgotten, the keys and values are still there
    seen = np.tri(n, dtype=bool)[-9:]
    if has_mask:
        seen &= (random_array(9, n) > 0) | np.eye(n, dtype=bool)[-9:]
    scores = np.where(seen, q @ k[:, :n].swapaxes(1, 2) / math.sqrt(20), -np.inf)
    expected = (reference.softmax(scores) @ v[:, :n]).swapaxes(0, 1).reshape(9, 60)
    keys, values = cache.keys.copy(), cache.values.copy()
    found = cache.attend(q, np.where(seen, np.float32(0), np.float32(-np.inf)) if has_mask else None)
    assert found.dtype == np.float32 and not triangle(n).flags.writeable  # it is shared between calls
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(cache.keys, keys) and np.array_equal(cache.values, values)  # also where rows were moved


def test_a_prompt_of_any_length_has_the_rows_of_the_reference_and_of_its_end_alone(strategy):
    """Around a piece, around the length from which on it is halved (two periods of the padding), and twice that."""
    shape = HParams(n_vocab=31, n_ctx=2 * LONG + 6, n_embd=16, n_head=2, n_layer=1)
    model, short = random_gpt2(shape), random_gpt2(shape)
    tokens = np.random.default_rng(0).integers(0, 31, shape.n_ctx).tolist()
    wanted = reference.forward(tokens, model.params, 2)
    alone = np.concatenate([short(tokens[:n])[0] for n in range(1, len(tokens) + 1)]).reshape(wanted.shape)
    np.testing.assert_allclose(alone, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
    for n in (*range(PIECE - 2, PIECE + 3), *range(LONG - 2, LONG + 33), *range(2 * LONG - 2, 2 * LONG + 6)):
        model.reset()
        assert model(tokens[:n], n).tobytes() == alone[:n].tobytes(), n


@pytest.mark.parametrize("n_threads", [3], indirect=True)
def test_the_first_half_of_a_long_prompt_looks_at_no_more_than_it_sees(strategy, n_threads):
    q, keys, mask = random_array(2, 400, 16), random_array(2, 16, 512, seed=1), triangle(512)[100:500]
    is_late = np.arange(512)[:, None] >= 384
    values = np.where(is_late, np.float32("nan"), random_array(2, 512, 32, seed=2))  # a weight of 0 does not hide NaN
    unseen = np.isnan(weighted_sums(q, keys, values, mask, strategy)).any(axis=(0, 2))
    assert not unseen[:200].any() and unseen[200:].all()  # the first half sees 300 tokens
