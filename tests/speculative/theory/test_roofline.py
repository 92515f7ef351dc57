"""The roofline: notebook 14's table, and the limits in which expected.py says the same."""

import numpy as np
import pytest

from speculative.theory import best_K, speedup
from speculative.theory.roofline import (
    ACCELERATORS,
    LLAMA_1B,
    LLAMA_8B,
    batch_best_K,
    batch_speedup,
    forward_time,
    free_tokens,
    most_texts,
)

PAIR = LLAMA_8B, LLAMA_1B
SHORT = {  # speedup (best K up to 12) for 1, 16, 64, 128, 256 and 512 texts: alpha 0.7, 100 tokens of context
    "A100": "1.73 (3) 1.73 (3) 1.47 (1) 1.01 (1) 1.00 (0) 1.00 (0)",
    "H100": "1.73 (3) 1.73 (3) 1.71 (3) 1.46 (1) 1.06 (1) 1.00 (0)",
    "H200": "1.73 (3) 1.73 (3) 1.66 (2) 1.32 (1) 1.00 (0) 1.00 (0)",
    "RTX4090": "1.73 (3) 1.73 (3) 1.52 (2) 1.07 (1) 1.00 (0) full",
    "TPUv5p": "1.73 (3) 1.73 (3) 1.54 (2) 1.09 (1) 1.00 (0) 1.00 (0)",
}


@pytest.mark.parametrize("name", SHORT)
def test_the_table_of_notebook_14(name):
    n_texts, chip = np.array([1, 16, 64, 128, 256, 512]), ACCELERATORS[name]
    room = most_texts(chip, PAIR, 100)
    K, speedups = batch_best_K(chip, *PAIR, 0.7, n_texts, 100, most=12)
    cells = [f"{s:.2f} ({k})" if n <= room else "full" for n, s, k in zip(n_texts, speedups, K)]
    assert " ".join(cells) == SHORT[name]


@pytest.mark.parametrize("chip", ACCELERATORS.values())
def test_below_m_star_the_costs_are_those_of_the_papers(chip):
    """One text without a context: V(K + 1) = V(1), and c is the ratio of the weights; then computing takes longer."""
    c, K = LLAMA_1B.n_params / LLAMA_8B.n_params, np.arange(11)
    np.testing.assert_allclose(batch_speedup(chip, *PAIR, 0.8, 1, K, 0), speedup(0.8, K, c), rtol=1e-12)
    assert batch_best_K(chip, *PAIR, 0.8, 1, 0)[0] == best_K(0.8, c, most=10)
    m = np.floor(free_tokens(chip)) + [0, 1]
    below, above = forward_time(chip, LLAMA_8B, 1, m, 0) / forward_time(chip, LLAMA_8B, 1, 1, 0)
    assert below == 1 < above and K[-1] + 1 < m[0]


def test_where_computing_takes_all_the_time_drafts_do_not_pay():
    assert batch_best_K(ACCELERATORS["H100"], *PAIR, 0.9, 2000, 0) == (0, 1.0)
    assert batch_best_K(ACCELERATORS["H100"], LLAMA_8B, None, 0.9, 2000, 0) == (0, 1.0)


def test_the_texts_that_fit_fill_the_memory():
    chip, context = ACCELERATORS["H200"], 700
    n, weights = most_texts(chip, PAIR, context), sum(model.weight_bytes for model in PAIR)
    each = context * sum(model.cache_bytes for model in PAIR)
    assert weights + n * each <= chip.memory < weights + (n + 1) * each
    assert most_texts(ACCELERATORS["RTX4090"], [LLAMA_8B, LLAMA_8B], 1) == 0
