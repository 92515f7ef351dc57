"""Rejection sampling on chosen uniform numbers."""

import numpy as np
import pytest
from helpers import ALMOST_ONE, Uniform

from speculative import Draft, Verdict, rejection, residual

P = np.array([4, 2, 1, 1, 0]) / 8
Q = np.array([1, 2, 4, 0, 1]) / 8
BONUS = np.array([0, 0, 1, 0, 1]) / 2


def draft(*tokens):
    return Draft(np.array(tokens, np.int64), np.array([Q] * len(tokens)).reshape(-1, 5))


def rows(n_drafted):
    return np.array([P] * n_drafted + [BONUS])


def test_one_step_has_the_distribution_of_the_target():
    """Summed over the drafted token and over equally spaced uniforms that split every interval exactly."""
    distribution = np.zeros(5)
    n = 16
    for x in np.flatnonzero(Q):
        for u in (np.arange(n) + 0.5) / n:
            replaced = [rejection(draft(x), rows(1), Uniform(u, v)) for v in (np.arange(6 * n) + 0.5) / (6 * n)]
            for verdict in replaced:
                emitted = x if verdict.n_accepted else verdict.next_token
                distribution[emitted] += Q[x] / n / len(replaced)
    np.testing.assert_allclose(distribution, P, rtol=0, atol=1e-12)


def test_a_draft_token_is_accepted_below_p_over_q_and_not_at_it():
    for x, ratio in ((2, 0.25), (4, 0.0)):
        assert rejection(draft(x), rows(1), Uniform(ratio, 0.5)).n_accepted == 0
        if ratio:
            assert rejection(draft(x), rows(1), Uniform(np.nextafter(ratio, 0), 0.5)).n_accepted == 1
    for x in (0, 1):  # p >= q: always
        assert rejection(draft(x), rows(1), Uniform(ALMOST_ONE, 0.5)).n_accepted == 1


def test_the_first_rejected_draft_token_ends_the_block():
    n = 1000
    assert rejection(draft(0, 2, 0), rows(3), Uniform(0.5, 0.3, 0.0)) == Verdict(1, 0)
    replaced = [rejection(draft(0, 2, 0), rows(3), Uniform(0.5, 0.3, (i + 0.5) / n)).next_token for i in range(n)]
    np.testing.assert_allclose(np.bincount(replaced, minlength=5) / n, residual(P, Q), atol=1e-3)


def test_the_bonus_comes_from_the_last_row():
    assert rejection(draft(0, 1), rows(2), Uniform(0.0, 0.0, 0.49)) == Verdict(2, 2)
    assert rejection(draft(0, 1), rows(2), Uniform(0.0, 0.0, 0.51)) == Verdict(2, 4)


@pytest.mark.parametrize(("tokens", "uniforms"), [((0, 1), 3), ((2, 1), 2)])
def test_one_uniform_for_each_test_and_one_for_the_token(tokens, uniforms):
    rng = Uniform(*[0.9] * 5)
    rejection(draft(*tokens), rows(2), rng)
    assert 5 - len(rng.numbers) == uniforms


def test_a_rejected_sibling_takes_its_share_from_the_target():
    """q = p for both: the first is accepted, and where it is not, the second is tested against what is left."""
    p = np.array([[0.5, 0.25, 0.25]] * 3)
    tree = Draft(np.array([1, 0]), np.array([[0, 1.0, 0], [0.5, 0, 0.5]]), np.array([-1, -1]))
    assert rejection(tree, p, Uniform(0.24, 0.0)) == Verdict((0,), 0)
    # after token 1 was rejected, p is (2/3, 0, 1/3): token 0 is accepted with min(1, 2/3 / 1/2) = 1
    assert rejection(tree, p, Uniform(0.25, ALMOST_ONE, 0.99)) == Verdict((1,), 2)
