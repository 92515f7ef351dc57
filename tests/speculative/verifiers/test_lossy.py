"""The rules that are LOSSY say how much: Lenient and Typical by hand, and greedy at temperature 0."""

import math

import numpy as np
import pytest
from exactness import error_of

from speculative import (
    ByPaths,
    Draft,
    Lenient,
    ModelDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
    TreeDrafter,
    Typical,
    Verdict,
    exact_distribution,
)
from speculative.testing import TableModel


@pytest.mark.parametrize("verifier", [Lenient(0.3), Typical()])
@pytest.mark.parametrize("K", [1, 3])
def test_at_temperature_zero_the_text_is_greedy(verifier, K):
    target, drafter = TableModel.random(3, seed=1), ModelDrafter(TableModel.random(3, seed=2), sampling=Sampling(0))
    assert error_of(SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=Sampling(0)), 6) == 0


def test_typical_acceptance_over_a_tree_has_one_text():
    drafter = TreeDrafter(ByPaths(TableModel.random(3, seed=2)), Shape.widths(2, 1), siblings="top")
    sampler = SpeculativeSampler(ByPaths(TableModel.random(3, seed=1)), drafter, verifier=Typical(), K=2)
    assert len(exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)) == 1
    assert error_of(sampler, 3) > 0.05


@pytest.mark.parametrize("l", [0.9, 0.5, 0.1])
def test_lenience_bounds_every_probability(l):  # noqa: E741
    for seed in range(5):
        p, q = np.random.default_rng(seed).dirichlet(np.ones(4), 2)

        def first(rng, p=p, q=q):
            token = int(rng.choice(4, p=q))
            verdict = Lenient(l)(Draft(np.array([token]), q[None]), np.array([p, p]), rng)
            return verdict.n_accepted, token if verdict.n_accepted else verdict.next_token

        found = exact_distribution(first)
        accepted = [found.get((1, token), 0) for token in range(4)]
        lacking = np.maximum(p - l * q, 0)  # of which the correction is drawn
        for token in range(4):
            correction = (1 - sum(accepted)) * lacking[token] / (lacking.sum() or 1)
            assert found.get((0, token), 0) == pytest.approx(correction, abs=1e-12)
            assert found.get((0, token), 0) + found.get((1, token), 0) <= p[token] / l + 1e-12
            assert found.get((1, token), 0) == pytest.approx(min(p[token] / l, q[token]), abs=1e-12)


def test_typical_acceptance_by_hand():
    p = np.array([[0.9, 0.06, 0.04], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    rows = np.full((2, 3), 1 / 3)
    assert Typical()(Draft(np.array([1, 2]), rows), p, None) == Verdict(0, 0)  # 0.06 < min(0.09, 0.3 exp(-0.39))
    draft = Draft(np.array([0, 2]), rows)  # 0.9 and 0.3 > min(0.09, 0.3 exp(-1.09))
    assert Typical()(draft, p, None) == Verdict(2, 2)
    assert Typical(epsilon=0.5, delta=2)(draft, p, None) == Verdict(1, 0)
    assert Typical(epsilon=0.3, delta=9)(draft, p, None).n_accepted == 1  # a token at the threshold is not typical
    assert Typical(epsilon=0.2999, delta=9)(draft, p, None).n_accepted == 2
    assert Typical(epsilon=0, delta=0)(draft, p, None).n_accepted == 2  # whatever has a probability


def test_typical_acceptance_takes_the_first_of_the_longest_paths():
    """Token 0 is typical everywhere and token 2 nowhere; the first child is accepted but leads no further."""
    draft = Draft(np.array([0, 1, 2, 0, 1]), np.eye(3)[[0, 1, 2, 0, 1]], np.array([-1, -1, 0, 1, 3]))
    p = np.tile([0.6, 0.4, 0.0], (6, 1))
    assert Typical()(draft, p, None) == Verdict((1, 3, 4), 0)
    p[4] = [0.0, 0.0, 1.0]  # after node 3: its child is not typical
    assert Typical()(draft, p, None) == Verdict((1, 3), 2)
    p[2] = [0.0, 1.0, 0.0]  # after node 1, too: two paths of length 1, of which the first is taken
    assert Typical()(draft, p, None) == Verdict((0,), 0)


def test_typical_acceptance_asks_for_less_where_the_target_is_unsure():
    """Of 20 equally likely tokens each passes: 1/20 > 0.3 exp(-log 20), though 1/20 < epsilon."""
    p = np.full((2, 20), 1 / 20)
    assert Typical()(Draft(np.array([7]), p[:1]), p, None).n_accepted == 1
    assert Typical(delta=2)(Draft(np.array([7]), p[:1]), p, None).n_accepted == 0


@pytest.mark.parametrize(
    ("rule", "options", "sentence"),
    [
        *((Lenient, {"l": l}, "a lenience l above 0 and at most 1, got") for l in (0, 1.1, math.nan)),  # noqa: E741
        *((Typical, {name: bad}, "epsilon and delta of 0 or more, got") for name in ("epsilon", "delta")
          for bad in (-1, math.nan)),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(rule, options, sentence):
    with pytest.raises(ValueError, match=f"expected {sentence}"):
        rule(**options)
