"""Hints for samplers: the mistake in a sentence, found from the distribution of the first tokens."""

import numpy as np

from ..probs import Sampling, residual
from .cases import TOLERANCE, largest_difference
from .small_errors import same

DRAFTS = (
    "the text has the draft's distribution: every draft token is accepted, whatever the target says, or a rejected "
    "one stays in the text"
)


def of_distribution(distribution, wanted, perfect, models, sampling, case):
    """The mistake in a sentence.

    Parameters
    ----------
    distribution, wanted : dict
        tokens -> probability: that of the sampler, and the target's.
    perfect : dict
        n_tokens -> (distribution, wanted, number of paths) of the same sampler where every draft token is accepted.
    models : tuple
        (target, draft model, prompt).
    sampling : Sampling
    case : str
    """
    target, other, prompt = models
    n_tokens = len(next(iter(distribution)))

    def is_of(model, sampling):
        return largest_difference(distribution, model.distribution(prompt, n_tokens, sampling)) <= TOLERANCE

    if (error := largest_difference(distribution, wanted)) < 1e-4:
        return (
            f"nearly right, off by {error:.1g}: compute in float64 throughout, not in float32 (torch's default), and "
            "add no epsilon"
        )
    if sampling.temperature == 0 and len(distribution) > 1:
        return (
            "your sampler draws at temperature 0, where the text is the greedy one: put the logits through `sampling`"
        )
    if sampling != Sampling() and is_of(target, Sampling()):
        return (
            "your sampler ignores `sampling`: the rows of the target are sampling(logits, tokens), at its temperature"
        )
    if 0 < sampling.temperature < 1 and is_of(target, Sampling(sampling.temperature**2)):
        return "your sampler applies the temperature twice: the rows of the target are sampling(logits, tokens), once"
    if sampling.temperature > 0 and is_of(target, Sampling(0)):
        if len(perfect[3][0]) > 1:
            return (
                "you took the most probable token as the bonus, or where nothing is drafted; draw it from the target's "
                "last row"
            )
        return (
            "your sampler is greedy: it takes the target's most probable token and draws nothing; draw from the row "
            "with rng"
        )
    if len(distribution) == 1 and sampling.temperature > 0:
        return "the text does not depend on the generator: draw from the one that is passed, do not seed in the loop"
    if n_tokens > 1 and "a draft model" in case and is_of(other, sampling):
        return DRAFTS
    if n_tokens == 1 and largest_difference(*perfect[1][:2]) > TOLERANCE:
        return (
            "already the first token does not have the target's distribution: where nothing is drafted it is a draw "
            "from sampling(target(tokens), tokens)[0]"
        )
    if any(largest_difference(*perfect[n][:2]) > TOLERANCE for n in perfect):
        return of_perfect(perfect[2][0], target, prompt, sampling)
    if "fewer" in case:
        return "your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft"
    return of_rejection(distribution, wanted, models, sampling, case)


def of_perfect(distribution, target, prompt, sampling):
    """Wrong if every draft token is accepted; `distribution` is the distribution of two tokens."""
    first = sampling(target(prompt), prompt)[0]
    second = np.array([[distribution.get((a, b), 0) for b in range(3)] for a in range(3)])
    given = second / np.maximum(second.sum(axis=1, keepdims=True), 1e-300)
    rows = np.array([sampling(target([*prompt, a]), [*prompt, a])[0] for a in range(3)])
    accepted = "your sampler goes wrong where every draft token is accepted"
    if not same(second.sum(axis=1), first) and not same(second.sum(axis=1), first @ rows):
        return accepted + ", as it is where draft and target are equal: accept x with probability min(1, p(x) / q(x))"
    if not same(given, rows) and same(second.sum(axis=1), first):
        if same(given, np.eye(3)[rows.argmax(axis=1)]):
            return "you took the most probable token as the bonus; draw it from the target's last row"
        if same(given, np.tile(first, (3, 1))):
            return (
                "where every draft token is accepted the bonus comes from the row before: it is row k of the "
                "target's k + 1"
            )
    return accepted + ": keep all K of them and the bonus (a[:-0] is empty)"


def of_rejection(distribution, wanted, models, sampling, case):
    """Wrong if a draft token is rejected, right if all are accepted."""
    target, other, prompt = models
    n_tokens = len(next(iter(distribution)))
    got, right = marginal(distribution, 1), marginal(wanted, 1)
    if largest_difference(got, right) > TOLERANCE:
        p, q = (sampling(model(prompt), prompt)[0] for model in (target, other))
        f = np.array([got.get((token,), 0) for token in range(3)])
        if "a draft model" in case and (hint := of_first(f, p, q)):
            return hint
        return (
            "your sampler goes wrong where a draft token is rejected: accept x with probability min(1, p(x) / q(x)), "
            "and replace the first rejected one by a draw from max(0, p - q), normalised"
        )
    if "K = 1" not in case:
        return (
            "right for K = 1, but not for a block of several draft tokens: test draft token i against row i, with a "
            "uniform number of its own, replace the first rejected one from its own row, and drop those after it"
        )
    n = next(
        n
        for n in range(1, n_tokens + 1)
        if largest_difference(marginal(distribution, n), marginal(wanted, n)) > TOLERANCE
    )
    return (
        f"the first {n - 1} tokens are right and the next is wrong: after a rejection, drop the draft tokens that "
        "follow it, append its replacement, and start the second round from that text"
    )


def of_first(f, p, q):
    """From the distribution f of the first token, where the target has p and the draft q."""
    kept = np.minimum(p, q)
    replaced = (f - kept) / (1 - kept.sum())
    wrongs = [
        (p, "on a rejection you drew from the target; draw from max(0, p - q), normalised"),
        (q, "on a rejection you drew from the draft; draw from max(0, p - q), normalised"),
        (abs(p - q) / abs(p - q).sum(), "you drew from |p - q|; the residual is max(0, p - q), normalised"),
        (residual(q, p), "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft"),
        (np.eye(3)[residual(p, q).argmax()], "you took the most probable token of the residual; draw from it"),
    ]
    if same(f, q):
        return DRAFTS
    for row, hint in wrongs:
        if same(replaced, row):
            return hint
    upside_down = q * np.minimum(1, q / p)
    for rest in (residual(p, q), residual(q, p), p):
        if same(f, upside_down + (1 - upside_down.sum()) * rest):
            return "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft"
    return None


def marginal(distribution, n):
    """The distribution of the first n tokens."""
    found = {}
    for tokens, probability in distribution.items():
        found[tokens[:n]] = found.get(tokens[:n], 0) + probability
    return found
