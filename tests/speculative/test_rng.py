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
    """Also several numbers at once; they are in the rounds."""

    def rule(draft, target_probs, rng):
        drawn.append(rng.random(2))
        return rejection(draft, target_probs, rng)

    drawn = []
    rounds = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=rule).generate([0], 5, 0).rounds
    for r, numbers in zip(rounds, drawn, strict=True):
        np.testing.assert_array_equal(r.uniforms[0], numbers)
        assert np.shape(numbers) == (2,) and len(r.uniforms) > 1


def test_a_recorder_can_be_copied():
    for copied in (copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))):
        recorder = copied(Recorder(np.random.default_rng(0)))
        assert recorder.random() == np.random.default_rng(0).random() == recorder.uniforms[0]


# ------------------------------------------------------------------------------------------------ Gumbel


def test_the_random_numbers_are_keyed_by_seed_and_position():
    p = np.full(1000, 1 / 1000)
    noise = Gumbel(3)
    first = [noise.at(7).draw(p), noise.at(8).draw(p), noise.at(7).draw(p)]
    assert first[0] == first[2] != first[1]
    run = noise.at(7)
    assert [run.draw(p), run.draw(p)] == first[:2]
    assert Gumbel(4).at(7).draw(p) != first[0]


def test_over_seeds_a_draw_has_the_distribution():
    """Of n = 8,000 seeds over m = 4 tokens: P(sum |frequency - p| >= e) <= 2^m exp(-n e^2 / 2) < 1e-10."""
    n, epsilon, p = 8_000, 0.081, np.array([0.5, 0, 0.3, 0.2])
    assert 2**4 * math.exp(-n * epsilon**2 / 2) < 1e-10
    counts = np.bincount([Gumbel(seed, 5).draw(p) for seed in range(n)], minlength=4)
    assert abs(counts / n - p).sum() < epsilon and counts[1] == 0


def test_how_often_target_and_draft_draw_the_same():
    """Against sum_j 1 / sum_i max(p_i / p_j, q_i / q_j), in n = 4,000 draws: P < 2 exp(-2 n 0.05^2) < 5e-9."""
    p, q = np.random.default_rng(0).dirichlet(np.ones(5), 2)
    same = np.mean([Gumbel(seed).draw(p) == Gumbel(seed).draw(q) for seed in range(4_000)])
    assert abs(same - sum(1 / np.maximum(p / p[j], q / q[j]).sum() for j in range(5))) < 0.05


def test_a_probability_near_zero_is_not_drawn_before_others():
    """E / p is infinite for it, as for a token of probability 0."""
    for seed in range(20):
        assert Gumbel(seed).draw_distinct(np.array([0, 1e-310, 1.0]), 3) in ([2], [2, 1])


def test_a_rule_that_needs_independent_numbers_refuses_common_random_numbers():
    sampler = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=rejection)
    with pytest.raises(ValueError) as error:
        sampler.generate([0], 5, Gumbel(0))
    assert str(error.value) == "Gumbel has no independent uniform numbers: use it with the verifier exact_match"


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ValueError, match=f"expected a seed of 0 or more, a whole number, got {seed!r}"):
        Gumbel(seed)


class Constant:
    """Guesses token 1 and draws nothing."""

    def propose(self, tokens, K, rng):
        return Draft(np.ones(K, np.int64), np.tile(np.eye(3)[1], (K, 1)))


DRAFTERS = {
    "another model": ModelDrafter(OTHER),
    "greedy": ModelDrafter(OTHER, sampling=Sampling(0)),
    "constant": Constant(),
    "tree": TreeDrafter(OTHER, [-1, -1, 0, 0, 1, 1], "without"),  # the k smallest of E / q
    "depth first": TreeDrafter(OTHER, [-1, 0, 0, -1], "without"),
}


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0), Sampling(0.7, top_k=2, repetition_penalty=1.7)])
def test_one_seed_one_text_for_any_drafter_and_draft_length(sampling):
    texts, n_seeds = set(), 5 if sampling.temperature else 1
    for seed in range(n_seeds):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 20, Gumbel(seed)).tokens
        texts.add(tuple(alone.tolist()))
        for drafter, K in itertools.product(DRAFTERS.values(), (1, 3)):
            sampler = SpeculativeSampler(ByPaths(TARGET), drafter, verifier=exact_match, K=K, sampling=sampling)
            np.testing.assert_array_equal(sampler.generate([0, 1], 20, Gumbel(seed)).tokens, alone)
    assert len(texts) == n_seeds


def test_one_text_on_the_bundled_pair(tiny_pair):
    target, draft, tokenizer = tiny_pair
    sampling, prompt = Sampling(0.7), tokenizer.encode("Once upon a time")
    alone = AutoregressiveSampler(target, sampling=sampling).generate(prompt, 40, Gumbel(1))
    drafter = ModelDrafter(draft, sampling=sampling)
    sampler = SpeculativeSampler(target, drafter, verifier=exact_match, sampling=sampling)
    generation = sampler.generate(prompt, 40, Gumbel(1))
    np.testing.assert_array_equal(generation.tokens, alone.tokens)
    assert generation.stats.accepted > 15
