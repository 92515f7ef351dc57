"""The rules that are LOSSY say how much: Lenient and Typical by hand, and greedy at temperature 0."""

import math

import numpy as np
import pytest
from exactness import error_of

import speculative as sp
from speculative import Draft, Lenient, Sampling, SpeculativeSampler, Typical, Verdict
from speculative.testing import TableModel


@pytest.mark.parametrize("verifier", [Lenient(0.3), Typical()])
@pytest.mark.parametrize("K", [1, 3])
def test_at_temperature_zero_the_text_is_greedy(verifier, K):
    target, drafter = TableModel.random(3, seed=1), sp.ModelDrafter(TableModel.random(3, seed=2), sampling=Sampling(0))
    assert error_of(SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=Sampling(0)), 6) == 0


def test_typical_acceptance_over_a_tree_has_one_text():
    drafter = sp.TreeDrafter(sp.ByPaths(TableModel.random(3, seed=2)), sp.Shape.widths(2, 1), siblings="top")
    sampler = SpeculativeSampler(sp.ByPaths(TableModel.random(3, seed=1)), drafter, verifier=Typical(), K=2)
    assert len(sp.exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)) == 1
    assert error_of(sampler, 3) > 0.05


@pytest.mark.parametrize("l", [0.9, 0.5, 0.1])
def test_lenience_bounds_every_probability(l):  # noqa: E741
    for seed in range(5):
        p, q = np.random.default_rng(seed).dirichlet(np.ones(4), 2)

        def first(rng, p=p, q=q):
            token = int(rng.choice(4, p=q))
            verdict = Lenient(l)(Draft(np.array([token]), q[None]), np.array([p, p]), rng)
            return verdict.n_accepted, token if verdict.n_accepted else verdict.next_token

        found = sp.exact_distribution(first)
        corrected, accepted = ([found.get((n, token), 0) for token in range(4)] for n in (0, 1))
        assert accepted == pytest.approx(np.minimum(p / l, q), abs=1e-12)
        lacking = np.maximum(p - l * q, 0)  # of which the correction is drawn
        assert corrected == pytest.approx((1 - sum(accepted)) * lacking / (lacking.sum() or 1), abs=1e-12)
        assert (np.add(corrected, accepted) <= p / l + 1e-12).all()


ROWS = np.array([[0.9, 0.06, 0.04], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
UNSURE = np.full((2, 20), 1 / 20)


@pytest.mark.parametrize(
    ("verifier", "tokens", "rows", "verdict"),
    [
        (Typical(), [1, 2], ROWS, Verdict(0, 0)),  # 0.06 < min(0.09, 0.3 exp(-0.39))
        (Typical(), [0, 2], ROWS, Verdict(2, 2)),  # 0.9 and 0.3 > min(0.09, 0.3 exp(-1.09))
        (Typical(epsilon=0.5, delta=2), [0, 2], ROWS, Verdict(1, 0)),
        (Typical(epsilon=0.3, delta=9), [0, 2], ROWS, Verdict(1, 0)),  # a token at the threshold is not typical
        (Typical(epsilon=0.2999, delta=9), [0, 2], ROWS, Verdict(2, 2)),
        (Typical(epsilon=0, delta=0), [0, 2], ROWS, Verdict(2, 2)),  # whatever has a probability
        (Typical(), [7], UNSURE, Verdict(1, 0)),  # 1/20 > 0.3 exp(-log 20), though 1/20 < epsilon
        (Typical(delta=2), [7], UNSURE, Verdict(0, 0)),
    ],
)
def test_typical_acceptance_by_hand(verifier, tokens, rows, verdict):
    """It asks for less where the target is unsure."""
    q = np.full((len(tokens), rows.shape[1]), 1 / rows.shape[1])
    assert verifier(Draft(np.array(tokens), q), rows, None) == verdict


def test_typical_acceptance_takes_the_first_of_the_longest_paths():
    """Token 0 is typical everywhere and token 2 nowhere; the first child is accepted but leads no further."""
    draft = Draft(np.array([0, 1, 2, 0, 1]), np.eye(3)[[0, 1, 2, 0, 1]], np.array([-1, -1, 0, 1, 3]))
    p = np.tile([0.6, 0.4, 0.0], (6, 1))
    assert Typical()(draft, p, None) == Verdict((1, 3, 4), 0)
    p[4] = [0.0, 0.0, 1.0]  # after node 3: its child is not typical
    assert Typical()(draft, p, None) == Verdict((1, 3), 2)
    p[2] = [0.0, 1.0, 0.0]  # after node 1, too: two paths of length 1, of which the first is taken
    assert Typical()(draft, p, None) == Verdict((0,), 0)


@pytest.mark.parametrize("bad", [-1, math.nan])
def test_options_out_of_range_are_refused(bad):
    for lenience in (bad, 0, 1.1):
        with pytest.raises(ValueError, match="expected a lenience l above 0 and at most 1, got"):
            Lenient(lenience)
    for options in ({"epsilon": bad}, {"delta": bad}):
        with pytest.raises(ValueError, match="expected epsilon and delta of 0 or more, got"):
            Typical(**options)
