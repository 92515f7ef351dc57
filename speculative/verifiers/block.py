"""Block verification: decide on the draft as a whole, and accept more of it than token by token.

Later tokens can make up for a draft token with a low ratio p / q. So the whole draft is tested, and the longest prefix
that passes is accepted, even if a shorter one did not, because stopping at the first failure would be wrong. The rule
is exact, and no exact rule that uses one draft accepts more on average. For K = 1 it is rejection sampling.
Source: Sun et al., arXiv:2403.10444, algorithm 2, equations (4) and (5), theorem 1. Optimal among rules that use only
the probabilities along the draft: theorem 2; among all rules: Thomas and Pal, arXiv:2602.16961.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict
from ..logits.probs import residual, sample_token


def block(draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
    """The verdict on a draft, with one uniform number for each draft token and one for the token after them.

    Parameters and result as in `rejection`. `joint` is the paper's p-hat: the ratio of target to draft probability of
    the whole prefix, capped at 1 in each step.
    """
    k = len(draft.tokens)
    n_accepted, joint_kept = 0, 1.0
    joint = 1.0
    for i, token in enumerate(draft.tokens):
        joint = min(joint * target_probs[i, token] / draft.probs[i, token], 1.0)
        if i + 1 < k:
            excess = np.maximum(joint * target_probs[i + 1] - draft.probs[i + 1], 0).sum()
            passes = excess / (excess + 1 - joint) if joint < 1 else 1.0
        else:
            passes = joint
        if rng.random() < passes:
            n_accepted, joint_kept = i + 1, joint
    if n_accepted == k:
        return Verdict(k, sample_token(target_probs[k], rng))
    rest = residual(joint_kept * target_probs[n_accepted], draft.probs[n_accepted])
    return Verdict(n_accepted, sample_token(rest, rng))


block.exactness = "exact"
block.draws = "drafted"
