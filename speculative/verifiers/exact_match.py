"""Sample and match: sample each token from the target, and accept draft tokens while they equal the target's samples.

The rule is exact for every drafter, since each token is the target's own sample; q is not needed. A draft token x is
accepted with probability p(x), on average sum p q, which is at most the sum min(p, q) of rejection sampling. The sample
that did not match must become the next token: sampling again would bias the text against the draft tokens.

In a tree the sample is compared with every token drafted for that position, and the walk descends to the match. So any
tree will do, however its tokens were chosen: Medusa's, prompt lookup's, the most probable ones.
"""

import numpy as np

from ..interfaces import Draft, RandomSource, Verdict
from ..logits.probs import sample_token


def exact_match(draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
    """The verdict on a draft, with one uniform number for each position up to the first mismatch, or up to the bonus.

    Parameters and result as in `rejection`; draft.probs is not used.
    """
    node, accepted = -1, []  # -1: the text
    while True:
        sample = sample_token(target_probs[node + 1], rng)
        node = next((child for child in draft.children(node) if draft.tokens[child] == sample), None)
        if node is None:
            return Verdict(accepted, sample)
        accepted.append(node)


exact_match.exactness = "exact"
exact_match.trees = True
exact_match.draws = "positions"
