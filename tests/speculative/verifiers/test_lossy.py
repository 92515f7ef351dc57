"""The rules that are LOSSY say how much: Lenient and Typical by hand, and greedy at temperature 0."""

import math

import numpy as np
import pytest
from exactness import error_of

from speculative import (
    Draft,
    Lenient,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
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


@pytest.mark.parametrize("l", [0.9, 0.5, 0.1])
def test_lenience_bounds_every_probability(l):  # noqa: E741
    for seed in range(5):
        p, q = np.random.default_rng(seed).dirichlet(np.ones(4), 2)

        def first(rng, p=p, q=q):
            token = int(rng.choice(4, p=q))
            verdict = Lenient(l)(Draft(np.array([token]), q[None]), np.array([p, p]), rng)
            return verdict.n_accepted, token if verdict.n_accepted else verdict.next_token

        found = exact_distribution(first)
        for token in range(4):
            assert found.get((0, token), 0) + found.get((1, token), 0) <= p[token] / l + 1e-12
            assert found.get((1, token), 0) == pytest.approx(min(p[token] / l, q[token]), abs=1e-12)


def test_lenience_draws_the_correction_from_what_the_lowered_draft_lacks():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.25, 0.25])
    found = exact_distribution(lambda rng: Lenient(0.5)(Draft(np.array([0]), q[None]), np.array([p, p]), rng))
    for token, lacking in ((1, 0.3 - 0.125), (2, 0.5 - 0.125)):  # accepted with 0.2 / (0.5 * 0.5)
        assert found[Verdict(0, token)] == pytest.approx(0.2 * lacking / 0.55)


def test_typical_acceptance_by_hand():
    p = np.array([[0.9, 0.06, 0.04], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    rows = np.full((2, 3), 1 / 3)
    assert Typical()(Draft(np.array([1, 2]), rows), p, None) == Verdict(0, 0)  # 0.06 < min(0.09, 0.3 exp(-0.39))
    draft = Draft(np.array([0, 2]), rows)  # 0.9 and 0.3 > min(0.09, 0.3 exp(-1.09))
    assert Typical()(draft, p, None) == Verdict(2, 2)
    assert Typical(epsilon=0.5, delta=2)(draft, p, None) == Verdict(1, 0)
    assert Typical(epsilon=0.3, delta=9)(draft, p, None).n_accepted == 1  # a token at the threshold is not typical
    assert Typical(epsilon=0.2999, delta=9)(draft, p, None).n_accepted == 2


def test_typical_acceptance_takes_the_first_of_the_longest_paths():
    p = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.01, 0.01, 0.98], [1, 0, 0], [0, 1, 0]])
    tree = Draft(np.array([0, 1, 2, 1]), np.full((4, 3), 1 / 3), np.array([-1, -1, 1, 0]))
    assert Typical()(tree, p, None) == Verdict((0, 3), 1)


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
