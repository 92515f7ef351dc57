"""Rejection sampling, the original rule: accept with probability min(1, p / q), replace the first rejected draft token.

The rule is exact: since min(p, q) + max(0, p - q) = p, each token has the target's distribution for any q, as long as
the draft token was sampled from q.

In a tree several draft tokens compete for one position. They are tested one after the other. After a rejection the
remaining siblings have to produce the residual, so the residual replaces p in the next test. This is exact for every
way of choosing siblings, as long as each row is the distribution of its token given the elder siblings: independent
samples (SpecInfer), sampling without replacement (Sequoia), deterministic tokens (one-hot rows), and mixes.

Source: Leviathan et al., arXiv:2211.17192, algorithm 1 and appendix A.1; Chen et al., arXiv:2302.01318, theorem 1.
Trees: Miao et al. (SpecInfer), arXiv:2305.09781, algorithm 2; Chen et al. (Sequoia), arXiv:2402.12374, algorithm 2.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict
from ..logits.probs import residual, sample_token


def rejection(draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
    """The verdict of rejection sampling on a draft.

    Draft tokens are tested one by one, with one uniform number u each. In a chain, the first one that fails is replaced
    by a token sampled from norm(max(0, p - q)), and those after it are dropped. In a tree, its next sibling is first
    tested against that residual. If no draft token follows the last accepted one, a bonus token is sampled from the
    target's row.

    Parameters
    ----------
    draft
        tokens [n], probs [n, n_vocab] (q), and the parents of a tree.
    target_probs
        [n + 1, n_vocab] float64: p after the text, then after each draft token.
    rng
        The source of the uniform numbers.
    """
    node, accepted = -1, []  # -1: the text
    while True:
        p = target_probs[node + 1]
        for child in draft.children(node):
            token, q = draft.tokens[child], draft.probs[child]
            if rng.random() * q[token] < p[token]:  # u < p / q without the division; strict, so p = 0 never passes
                break
            p = residual(p, q)
        else:  # no child was accepted, or none was drafted
            return Verdict(accepted, sample_token(p, rng))
        node = child
        accepted.append(node)


rejection.exactness = "exact"
rejection.trees = True
rejection.draws = "tested"
