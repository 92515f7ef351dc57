"""Ordinary generation: each token from the target's row after all tokens before it."""

import numpy as np
import pytest
from exactness import largest_difference

from speculative import AutoregressiveSampler, Sampling, exact_distribution
from speculative.testing import TableModel

TARGET = TableModel.random(3, seed=1)


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0), Sampling(0.7, top_k=2), Sampling(repetition_penalty=1.7)]
)
def test_the_distribution_of_a_text_is_the_product_of_the_targets_rows(sampling):
    sampler = AutoregressiveSampler(TARGET, sampling=sampling)
    found = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    assert largest_difference(found, TARGET.distribution([0, 1], 3, sampling)) < 1e-12


@pytest.mark.parametrize("kind", [bytes, bytearray, tuple, np.array, lambda numbers: np.array(numbers, np.uint8)])
def test_a_prompt_is_any_sequence_of_numbers(kind):
    sampler = AutoregressiveSampler(TARGET, sampling=Sampling(temperature=0))
    generation = sampler.generate(kind([1, 2, 1]), np.int64(3))
    assert generation.prompt.tolist() == [1, 2, 1] and generation.prompt.dtype == np.int64
    assert generation.tokens.tolist() == sampler.generate([1, 2, 1], 3).tokens.tolist()
