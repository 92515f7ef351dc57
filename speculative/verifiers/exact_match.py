"""Sample and match: draw each token from the target, and keep the guesses for as long as they come out the same.

Exact for every drafter, since each token is the target's own draw; it needs no q. A guess x is accepted with
probability p(x), on average sum p q: at most sum min(p, q), what rejection accepts. What matters is that the draw which
did not match is the token that is kept: a second draw would be one given that the first one failed.
Next: block.py
"""

from ..interfaces import Verdict
from ..probs import sample_token


def exact_match(draft, target_probs, rng):
    """The verdict on a block of guesses, with one uniform number for each row up to the first mismatch.

    Parameters and result as in `rejection`; draft.probs is not used.
    """
    for i, token in enumerate(draft.tokens):
        own = sample_token(target_probs[i], rng)
        if own != token:
            return Verdict(i, own)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


exact_match.exactness = "exact"
