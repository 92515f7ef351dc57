"""Common random numbers (Gumbel coupling): one seed, one text."""

import itertools
import math
import warnings

import numpy as np
import pytest

from gpt2np import EarlyExit
from speculative import (
    AutoregressiveSampler,
    EarlyExitDrafter,
    Gumbel,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    SuffixDrafter,
    exact_match,
    rejection,
)
from speculative.probs import sample_distinct
from speculative.testing import TableModel

TARGET, OTHER = TableModel.random(3, seed=1, n_ctx=40), TableModel.random(3, seed=2, n_ctx=40)


class Constant:
    """Guesses token 1 and draws nothing."""

    def propose(self, tokens, K, rng):
        from speculative import Draft

        return Draft(np.ones(K, np.int64), np.tile(np.eye(3)[1], (K, 1)))


@pytest.mark.parametrize("temperature", [0, 0.7, 1])
def test_one_seed_one_text_for_any_drafter_and_draft_length(temperature):
    sampling = Sampling(temperature)
    texts, n_seeds = set(), 8 if temperature else 2
    for seed in range(n_seeds):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 30, Gumbel(seed)).tokens
        texts.add(tuple(alone.tolist()))
        drafters = [
            ModelDrafter(OTHER, sampling=sampling),
            ModelDrafter(OTHER, sampling=Sampling(0)),
            ModelDrafter(TARGET),
            Constant(),
        ]
        for drafter, K in itertools.product(drafters, (1, 2, 4, 8)):
            sampler = SpeculativeSampler(TARGET, drafter, verifier=exact_match, K=K, sampling=sampling)
            np.testing.assert_array_equal(sampler.generate([0, 1], 30, Gumbel(seed)).tokens, alone)
    assert len(texts) == (n_seeds if temperature else 1)


def test_one_text_on_the_bundled_pair(tiny_pair):
    target, draft, tokenizer = tiny_pair
    sampling, prompt = Sampling(0.7), tokenizer.encode("Once upon a time")
    alone = AutoregressiveSampler(target, sampling=sampling).generate(prompt, 60, Gumbel(1))
    for K in (1, 4):
        drafter = ModelDrafter(draft, sampling=sampling)
        sampler = SpeculativeSampler(target, drafter, verifier=exact_match, K=K, sampling=sampling)
        generation = sampler.generate(prompt, 60, Gumbel(1))
        np.testing.assert_array_equal(generation.tokens, alone.tokens)
        assert generation.stats.accepted > 15


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0, 0.7, 1])
def test_one_text_on_the_bundled_pair_at_length(tiny_pair, temperature):
    """50 prompts x K in {1, 2, 4, 8} x every drafter but the dials, which are the target itself."""
    from test_tiny import TINY

    target, draft, tokenizer = tiny_pair
    held_out = tokenizer.encode((TINY / "held_out.txt").read_text(encoding="utf-8"))
    sampling = Sampling(temperature)
    whole, table = EarlyExit(target, 3), NGramModel.from_tokens(held_out[50_000:], target.n_vocab)
    drafters = [ModelDrafter(draft, sampling=sampling), ModelDrafter(draft, sampling=Sampling(0)), ModelDrafter(draft)]
    drafters += [NGramDrafter(table), PromptLookupDrafter(target.n_vocab), SuffixDrafter(target.n_vocab)]
    drafters += [EarlyExitDrafter(whole)]
    for seed in range(50):
        prompt = held_out[seed * 1000 : seed * 1000 + 12]
        alone = AutoregressiveSampler(target, sampling=sampling).generate(prompt, 40, Gumbel(seed)).tokens
        for drafter, K in itertools.product(drafters, (1, 2, 4, 8)):
            own = whole if getattr(drafter, "model", None) is whole.early_exit else target
            sampler = SpeculativeSampler(own, drafter, verifier=exact_match, K=K, sampling=sampling)
            np.testing.assert_array_equal(sampler.generate(prompt, 40, Gumbel(seed)).tokens, alone)


def test_over_seeds_the_text_has_the_distribution_of_the_target():
    """Of n = 8,000 seeds over m = 9 texts: P(sum |frequency - p| >= e) <= 2^m exp(-n e^2 / 2) < 1e-13."""
    n, epsilon = 8_000, 0.096
    assert 2**9 * math.exp(-n * epsilon**2 / 2) < 1e-13
    sampler, counts = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=exact_match, K=1), {}
    for seed in range(n):
        tokens = tuple(sampler.generate([0, 1], 2, Gumbel(seed)).tokens.tolist())
        counts[tokens] = counts.get(tokens, 0) + 1
    distance = 0.0
    for a, b in itertools.product(range(3), repeat=2):
        rows = Sampling()(TARGET([0, 1, a], n_last=2))
        distance += abs(counts.get((a, b), 0) / n - rows[0][a] * rows[1][b])
    assert distance < epsilon


def test_how_often_target_and_draft_draw_the_same():
    """Against sum_j 1 / sum_i max(p_i / p_j, q_i / q_j), in n = 10,000 draws: P < 2 exp(-2 n 0.03^2) < 4e-8 each."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        p, q = rng.dirichlet(np.ones(5), 2)
        same = np.mean([Gumbel(seed).draw(p) == Gumbel(seed).draw(q) for seed in range(10_000)])
        formula = sum(1 / np.maximum(p / p[j], q / q[j]).sum() for j in range(5))
        overlap = np.minimum(p, q).sum()
        assert abs(same - formula) < 0.03
        assert overlap / (2 - overlap) - 1e-12 <= formula <= overlap + 1e-12


def test_the_random_numbers_are_keyed_by_seed_and_position():
    p = np.full(1000, 1 / 1000)
    noise = Gumbel(3)
    first = [noise.at(7).draw(p), noise.at(8).draw(p), noise.at(7).draw(p)]
    assert first[0] == first[2] != first[1]
    run = noise.at(7)
    assert [run.draw(p), run.draw(p)] == first[:2]
    assert Gumbel(4).at(7).draw(p) != first[0]


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match="expected a seed of 0 or more, a whole number, got"):
        Gumbel(seed)


def test_a_token_of_probability_zero_is_never_drawn():
    p = np.array([0, 0.5, 0, 0.5])
    assert {Gumbel(seed).draw(p) for seed in range(50)} == {1, 3}


def test_a_rule_that_needs_independent_numbers_refuses_common_random_numbers():
    sampler = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=rejection)
    with pytest.raises(ValueError, match="use it with the verifier exact_match"):
        sampler.generate([0], 5, Gumbel(0))


def test_a_probability_near_zero_is_not_drawn_before_others():
    """E / p is infinite for it, as for a token of probability 0."""
    probs = np.array([0, 1e-310, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(20):
            assert Gumbel(seed).draw_distinct(probs, 3) in ([2], [2, 1])
            tokens, rows = sample_distinct(probs, 3, Gumbel(seed))
            assert tokens[0] == 2 and len(tokens) == len(rows) <= 2
