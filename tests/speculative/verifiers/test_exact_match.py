"""Sample and match: the target's own draws, one uniform number each."""

import numpy as np
from helpers import Uniform

from speculative import Draft, Verdict, exact_match

P = np.array([[0.5, 0.25, 0.25]] * 4)
NO_PROBS = np.full((3, 3), np.nan)


def test_the_draw_that_does_not_match_is_the_token_that_is_kept():
    chain = Draft(np.array([0, 1, 1]), NO_PROBS)
    rng = Uniform(0.4, 0.6, 0.9, 0.7)
    assert exact_match(chain, P, rng) == Verdict(2, 2) and rng.numbers == [0.7]
    assert exact_match(chain, P, Uniform(0.4, 0.6, 0.6, 0.1)) == Verdict(3, 0)  # all match: the bonus


def test_in_a_tree_it_descends_to_the_sibling_that_was_drawn():
    tree = Draft(np.array([0, 1, 2]), NO_PROBS, np.array([-1, -1, 1]))
    rng = Uniform(0.6, 0.9, 0.1, 0.7)
    assert exact_match(tree, P, rng) == Verdict((1, 2), 0) and rng.numbers == [0.7]
