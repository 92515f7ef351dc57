"""Rejection sampling, the original rule: accept with probability min(1, p / q), replace the first rejected draft token.

Exact: since min(p, q) + max(0, p - q) = p, each token has the target's distribution for any q, as long as the draft
token was drawn from q.
Source: Leviathan et al., arXiv:2211.17192, algorithm 1 and appendix A.1; Chen et al., arXiv:2302.01318, theorem 1.
Next: exact_match.py
"""

from ..interfaces import Verdict
from ..probs import residual, sample_token


def rejection(draft, target_probs, rng):
    """The verdict of rejection sampling on a draft.

    Draft tokens are tested in turn, with one uniform number u each. The first one that fails is replaced by a token
    drawn from norm(max(0, p - q)), and those after it are dropped. If all pass, a bonus token is drawn from the
    target's last row.

    Parameters
    ----------
    draft : Draft
        tokens [k], probs [k, n_vocab] (q).
    target_probs : array [k + 1, n_vocab] float64
        p at the place of each draft token, and after the last.
    rng : RandomSource

    Returns
    -------
    Verdict
    """
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[token] < p[token]:  # u < p / q without the division; strict, so that p = 0 never passes
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


rejection.exactness = "exact"
