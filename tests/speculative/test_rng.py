"""Sources of random numbers: seeds, the recorder, and common random numbers (Gumbel coupling): one seed, one text."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from helpers import TreeDrafter, Uniform

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Gumbel,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    exact_match,
    rejection,
)
from speculative.rng import Recorder, as_generator
from speculative.testing import TableModel

TARGET, OTHER = TableModel.random(3, seed=1, n_ctx=40), TableModel.random(3, seed=2, n_ctx=40)


def test_a_seed_makes_a_generator_and_a_source_is_used_as_it_is():
    rng, stand_in = np.random.default_rng(0), Uniform(0.5)
    assert as_generator(rng) is rng and as_generator(stand_in) is stand_in
    assert as_generator(7).random() == as_generator(np.int64(7)).random() == np.random.default_rng(7).random()
    assert as_generator(None).random() != as_generator(None).random()


def test_the_recorder_keeps_what_a_verifier_draws():
    """Also several numbers at once; they are in the rounds. A recorder can be copied."""

    def rule(draft, target_probs, rng):
        drawn.append(rng.random(2))
        return rejection(draft, target_probs, rng)

    drawn = []
    rounds = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=rule).generate([0], 5, 0).rounds
    for r, numbers in zip(rounds, drawn, strict=True):
        np.testing.assert_array_equal(r.uniforms[0], numbers)
        assert np.shape(numbers) == (2,) and len(r.uniforms) > 1
    for copied in (copy.copy, copy.deepcopy, lambda recorder: pickle.loads(pickle.dumps(recorder))):
        recorder = copied(Recorder(np.random.default_rng(0)))
        assert recorder.random() == np.random.default_rng(0).random() == recorder.uniforms[0]


# ------------------------------------------------------------------------------------------------ Gumbel


def test_the_random_numbers_are_keyed_by_seed_and_position():
    p, run = np.full(1000, 1 / 1000), Gumbel(3).at(7)
    first = [Gumbel(3).at(position).draw(p) for position in (7, 8)]
    assert first == [run.draw(p), run.draw(p)] and len({*first, Gumbel(4, 7).draw(p)}) == 3


def test_draws_have_their_distribution_and_are_often_the_same():
    """Over n = 8,000 seeds, for p over m = 4 tokens: P(sum |frequency - p| >= e) <= 2^m exp(-n e^2 / 2) < 1e-10. Two
    distributions draw the same token with probability sum_j 1 / sum_i max(p_i / p_j, q_i / q_j)."""
    n, epsilon, p = 8_000, 0.081, np.array([0.5, 0, 0.3, 0.2])
    assert 2**4 * math.exp(-n * epsilon**2 / 2) < 1e-10
    drawn = np.array([Gumbel(seed, 5).draw(p) for seed in range(n)])
    counts = np.bincount(drawn, minlength=4)
    assert abs(counts / n - p).sum() < epsilon and counts[1] == 0
    q, possible = np.array([0.1, 0.2, 0.1, 0.6]), [0, 2, 3]
    same = np.mean([Gumbel(seed, 5).draw(q) == token for seed, token in enumerate(drawn)])
    assert abs(same - sum(1 / np.maximum(p / p[j], q / q[j]).sum() for j in possible)) < 0.05


def test_a_probability_near_zero_is_not_drawn_before_others():
    """E / p is infinite for it, as for a token of probability 0."""
    for seed in range(20):
        assert Gumbel(seed).draw_distinct(np.array([0, 1e-310, 1.0]), 3) in ([2], [2, 1])


class Constant:
    """Guesses token 1 and draws nothing."""

    def propose(self, tokens, K, rng):
        return Draft(np.ones(K, np.int64), np.tile(np.eye(3)[1], (K, 1)))


DRAFTERS = {
    "another model": ModelDrafter(OTHER),
    "the target": ModelDrafter(TARGET),  # with the same numbers: always accepted
    "greedy": ModelDrafter(OTHER, sampling=Sampling(0)),
    "constant": Constant(),
    "tree": TreeDrafter(OTHER, [-1, -1, 0, 0, 1, 1], "without"),  # the k smallest of E / q
    "depth first": TreeDrafter(OTHER, [-1, 0, 0, -1], "without"),
}


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0), Sampling(0.7, top_k=2, repetition_penalty=1.7)])
def test_one_seed_one_text_for_any_drafter_and_draft_length(sampling):
    texts, n_seeds = set(), 3 if sampling.temperature else 1
    for seed in range(n_seeds):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 20, Gumbel(seed)).tokens
        texts.add(tuple(alone.tolist()))
        for name, K in itertools.product(DRAFTERS, (1, 3)):
            sampler = SpeculativeSampler(ByPaths(TARGET), DRAFTERS[name], verifier=exact_match, K=K, sampling=sampling)
            generation = sampler.generate([0, 1], 20, Gumbel(seed))
            np.testing.assert_array_equal(generation.tokens, alone)
            assert generation.stats.rejected == 0 or name != "the target"
    assert len(texts) == n_seeds
