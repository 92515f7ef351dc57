"""Packed weights: a row's product is bitwise identical among any others, and what is packed is the matrix."""

import copy
import pickle

import numpy as np
import pytest
from helpers import random_array

from gpt2np.kernels import panels
from gpt2np.kernels.matmul import Embedding, pack


@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (63, 65), (100, 2100), (768, 257), (1025, 64), (3072, 200)])
def test_a_row_is_bitwise_identical_among_any_other_rows(strategy, n_in, n_out):
    x, w = random_array(40, n_in), random_array(n_in, n_out, seed=1)
    packed = pack(w, strategy)
    alone = np.concatenate([x[i : i + 1] @ packed for i in range(len(x))])
    assert alone.dtype == np.float32 and alone.shape == (40, n_out)
    np.testing.assert_allclose(alone, x.astype(float) @ w, rtol=1e-4, atol=1e-5 * n_in)
    assert (x[:0] @ packed).shape == (0, n_out)
    for begin, end in [(i, i + n) for n in range(2, 14) for i in (0, 3)] + [(5, 40), (0, 40), (0, 25)]:
        assert (x[begin:end] @ packed).tobytes() == alone[begin:end].tobytes(), (begin, end)


@pytest.mark.parametrize("shape", [(7, 13), (256, 768), (300, 16), (512, 128), (768, 768), (3072, 200)])
def test_the_longer_side_of_a_slab_is_contiguous_and_a_large_one_has_adjacent_terms(shape):
    parts = pack(random_array(*shape), "slabs").parts
    longer = np.argmax(shape) if np.prod(shape) <= 2**19 else 0
    assert parts.strides[1 + longer] == parts.itemsize


def memory(packed):
    """Where the weights are."""
    return packed.w if packed.strategy == "plain" else packed.parts


@pytest.mark.parametrize(("name", "other"), [("panels", "slabs"), ("slabs", "plain"), ("plain", "panels")])
def test_a_packed_matrix_gives_the_matrix_back_and_can_be_copied_and_packed_again(name, other):
    w, x = random_array(1100, 530), random_array(3, 1100, seed=1)
    packed = pack(w, name)
    assert pack(packed, name) is packed and np.array(packed).flags.writeable
    for copied in (copy.copy(packed), copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)), pack(w, name)):
        np.testing.assert_array_equal(np.asarray(copied), w)
        assert (x @ copied).tobytes() == (x @ packed).tobytes()
        assert memory(copied).strides == memory(packed).strides
        assert not np.shares_memory(memory(copied), memory(packed))
        view = np.asarray(copied)
        assert not (np.shares_memory(view, memory(copied)) and view.flags.writeable)
    wte = Embedding(Embedding(w, other), name)
    assert wte.T.strategy == name and wte.shape == w.shape and wte.T.shape == w.T.shape
    np.testing.assert_array_equal(np.asarray(wte), w)
    for indices in ([3, 1099, 3, 0], [[3], [1099]], 7, []):
        np.testing.assert_array_equal(wte[indices], w[np.array(indices, int)])
    view = np.asarray(one := pack(np.ones((256, 64), np.float32), name))  # of one part
    assert not (np.shares_memory(view, memory(one)) and view.flags.writeable)


@pytest.mark.parametrize("max_rows", [2, 6, 10, 12])
def test_groups_of_panels_have_even_rows_and_few_zeros(max_rows):
    """An odd number, or one row, would go to other kernels."""
    for n_new in range(1, 300):
        x = np.arange(1, n_new + 1, dtype=np.float32)[:, None]
        groups = panels.grouped(x, max_rows)
        n_rows, n_zeros = groups.shape[1], groups.size - n_new
        assert n_rows % 2 == 0 and 2 <= n_rows <= max_rows
        assert np.array_equal(groups.reshape(-1, 1), np.append(x, np.zeros(n_zeros))[:, None])
        assert n_zeros <= (n_new % 2 if n_new <= max_rows else -n_new % max_rows)
