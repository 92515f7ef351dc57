"""Sample and match: draw each token from the target, and accept draft tokens as long as they equal the target's draws.

Exact for every drafter, since each token is the target's own draw; q is not needed. A draft token x is accepted with
probability p(x), on average sum p q, which is at most the sum min(p, q) of rejection sampling. The draw that did not
match must be the token that is kept: a second draw would come from the target given that the first did not match.
Next: block.py
"""

from ..interfaces import Verdict
from ..probs import sample_token


def exact_match(draft, target_probs, rng):
    """The verdict on a draft, with one uniform number for each row up to the first mismatch.

    Parameters and result as in `rejection`; draft.probs is not used.
    """
    for i, token in enumerate(draft.tokens):
        own = sample_token(target_probs[i], rng)
        if own != token:
            return Verdict(i, own)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


exact_match.exactness = "exact"
