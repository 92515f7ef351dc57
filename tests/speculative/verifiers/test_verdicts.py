"""Verdicts on chosen uniform numbers, and the example of the paper on block verification."""

import numpy as np
import pytest
from exactness import accepted
from helpers import ALMOST_ONE, Uniform

from speculative import Draft, ModelDrafter, Verdict, block, exact_match, rejection
from speculative.testing import TableModel

P = np.array([4, 2, 1, 1, 0]) / 8
Q = np.array([1, 2, 4, 0, 1]) / 8
BONUS = np.array([0, 0, 1, 0, 1]) / 2


def draft(*tokens):
    return Draft(np.array(tokens, np.int64), np.array([Q] * len(tokens)).reshape(-1, 5))


def rows(n_drafted):
    return np.array([P] * n_drafted + [BONUS])


def test_a_draft_token_is_accepted_below_p_over_q_and_not_at_it():
    for x, ratio in ((2, 0.25), (4, 0.0)):
        assert rejection(draft(x), rows(1), Uniform(ratio, 0.5)).n_accepted == 0
        if ratio:
            assert rejection(draft(x), rows(1), Uniform(np.nextafter(ratio, 0), 0.5)).n_accepted == 1
    for x in (0, 1):  # p >= q: always
        assert rejection(draft(x), rows(1), Uniform(ALMOST_ONE, 0.5)).n_accepted == 1


def test_one_uniform_for_each_test_and_one_for_the_token_after_them():
    """Which comes from the last row if all were accepted, otherwise from the residual."""
    for tokens, uniforms, verdict, n_left in (
        ((0, 2, 0), (0.5, 0.3, 0.0, 9), Verdict(1, 0), 1),  # the first rejected one ends the draft
        ((0, 1), (0.0, 0.0, 0.49, 9), Verdict(2, 2), 1),
        ((0, 1), (0.0, 0.0, 0.51, 9), Verdict(2, 4), 1),
        ((2, 1), (0.9, 0.0, 9, 9), Verdict(0, 0), 2),
    ):
        rng = Uniform(*uniforms)
        assert rejection(draft(*tokens), rows(len(tokens)), rng) == verdict and len(rng.numbers) == n_left


def test_a_rejected_sibling_takes_its_share_from_the_target():
    """q = p for both: the first is accepted, and where it is not, the second is tested against what is left."""
    p = np.array([[0.5, 0.25, 0.25]] * 3)
    tree = Draft(np.array([1, 0]), np.array([[0, 1.0, 0], [0.5, 0, 0.5]]), np.array([-1, -1]))
    assert rejection(tree, p, Uniform(0.24, 0.0)) == Verdict((0,), 0)
    # after token 1 was rejected, p is (2/3, 0, 1/3): token 0 is accepted with min(1, 2/3 / 1/2) = 1
    assert rejection(tree, p, Uniform(0.25, ALMOST_ONE, 0.99)) == Verdict((1,), 2)


def test_the_example_of_the_paper():
    """p = (1/3, 2/3), q = (2/3, 1/3), K = 2: 10/9 by rejection, 11/9 by block (arXiv:2403.10444, section 2)."""
    target, drafter = TableModel([[1 / 3, 2 / 3]] * 2), ModelDrafter(TableModel([[2 / 3, 1 / 3]] * 2))
    assert accepted(rejection, target, drafter, 2) == pytest.approx(10 / 9, abs=1e-7)  # the logits are float32
    assert accepted(block, target, drafter, 2) == pytest.approx(11 / 9, abs=1e-7)


def test_a_prefix_that_did_not_pass_is_accepted_with_the_longer_one():
    """The ratios 1/2 and 2 make a joint ratio of 1: the whole draft passes, though its first token does not."""
    p, q = np.array([[1, 2], [2, 1], [1, 1]]) / [[3], [3], [2]], np.array([[2, 1], [1, 2]]) / 3
    draft = Draft(np.array([0, 0]), q)
    assert block(draft, p, Uniform(ALMOST_ONE, ALMOST_ONE, 0.4)) == Verdict(2, 0)
    assert rejection(draft, p, Uniform(ALMOST_ONE, 0.4)) == Verdict(0, 1)


@pytest.mark.parametrize(
    ("parents", "tokens", "uniforms", "verdict", "n_left"),
    [
        (None, [0, 1, 1], [0.4, 0.6, 0.9, 0.7], Verdict(2, 2), 1),  # the draw that does not match is the token
        (None, [0, 1, 1], [0.4, 0.6, 0.6, 0.1], Verdict(3, 0), 0),  # all match: the bonus
        ([-1, -1, 1], [0, 1, 2], [0.6, 0.9, 0.1, 0.7], Verdict((1, 2), 0), 1),  # down to the sibling that was drawn
    ],
)
def test_sample_and_match_takes_one_uniform_for_each_position(parents, tokens, uniforms, verdict, n_left):
    rng, p = Uniform(*uniforms), np.array([[0.5, 0.25, 0.25]] * 4)
    parents = None if parents is None else np.array(parents)
    assert exact_match(Draft(np.array(tokens), np.full((3, 3), np.nan), parents), p, rng) == verdict
    assert len(rng.numbers) == n_left
