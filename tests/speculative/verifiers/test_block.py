"""Block verification: the paper's example, and a token that is made up for by the next."""

import numpy as np
import pytest
from exactness import accepted
from helpers import ALMOST_ONE, Uniform

from speculative import Draft, ModelDrafter, Verdict, block, rejection
from speculative.testing import TableModel


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
