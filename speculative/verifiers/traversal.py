"""Traversal verification: decide on a tree from its leaves up, and accept more than from the root down.

Like block verification, which it generalises to trees, it tests every node after all nodes below it, so later tokens
can make up for one with a low ratio p / q. It is exact for the same trees as rejection sampling: those in which each
row is the token's distribution given the text, its ancestors and its elder siblings. On a chain it equals block
verification.
Source: Weng et al., arXiv:2505.12398.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict
from ..logits.probs import sample_token


def traversal(draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
    """The verdict on a draft, with one uniform number for each draft token and one for the token after them.

    Parameters and result as in `rejection`. Each node has a share, the probability with which it may still be accepted
    (1 for the text), and p, the distribution of the token after it (at first the target's). Each child that is not
    accepted is subtracted: p becomes norm(max(0, share p - q)), and the share falls accordingly.
    """
    uniforms = [rng.random() for _ in draft.tokens]
    # the path from the text down to the current node: [node, share, p, the children that have not been visited]
    path = [[-1, 1.0, target_probs[0], iter(draft.children(-1))]]
    while True:
        node, share, p, children = path[-1]
        child = next(children, None)
        if child is not None:
            # go down first: the child takes its part of the parent's share, and is decided on after all nodes below it
            token, q = draft.tokens[child], draft.probs[child]
            below = min(share * p[token] / q[token], 1.0)
            path.append([child, below, target_probs[child + 1], iter(draft.children(child))])
        elif node < 0 or uniforms[node] < share:
            # no node below this one was accepted, and this one is (the text always is): the path to it is the verdict
            return Verdict([node for node, *_ in path[1:]], sample_token(p, rng))
        else:
            # this one is rejected as well: go back to its parent, and subtract its q from the parent's share
            path.pop()
            _, share, p, _ = path[-1]
            rest = np.maximum(share * p - draft.probs[node], 0)
            mass = rest.sum()
            path[-1][1] = mass / (mass + 1 - share) if share < 1 else 1.0
            path[-1][2] = rest / mass if mass > 0 else p


traversal.exactness = "exact"
traversal.trees = True
traversal.draws = "drafted"
