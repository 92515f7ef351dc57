"""Hints for samplers: the mistake in a sentence, found from the distribution of the first tokens."""

from dataclasses import fields, replace

import numpy as np

from ..logits.probs import Sampling, residual
from .cases import TOLERANCE, largest_difference, same
from .chain_hints import NEARLY_RIGHT

DRAFTS = (
    "the text has the draft's distribution: every draft token is accepted, whatever the target says, or a rejected "
    "one stays in the text"
)


def mistake_in_a_text(distribution, wanted, perfect, models, sampling, case):
    """The mistake in a sentence.

    Parameters
    ----------
    distribution, wanted : dict
        tokens -> probability: that of the sampler, and the target's.
    perfect : dict
        n_tokens -> (distribution, wanted) of the same sampler where every draft token is accepted.
    models : tuple
        (target, draft model, prompt).
    sampling : Sampling
    case : str
    """
    target, other, prompt = models
    n_tokens, temperature = len(next(iter(distribution))), getattr(sampling, "temperature", 1)

    def is_of(model, sampling):
        return largest_difference(distribution, model.distribution(prompt, n_tokens, sampling)) <= TOLERANCE

    if (error := largest_difference(distribution, wanted)) < 1e-4:
        return NEARLY_RIGHT.format(error)
    if temperature == 0 and len(distribution) > 1:
        return (
            "your sampler draws at temperature 0, where the text is the greedy one: put the logits through `sampling`"
        )
    for name in ignored_fields(sampling):
        if is_of(target, replace(sampling, **{name: getattr(Sampling, name)})):
            return (
                f"your sampler ignores sampling.{name}: do not read single fields of `sampling`, the rows of the "
                "target are sampling(logits, tokens), which applies all of them"
            )
    if sampling != Sampling() and is_of(target, Sampling()):
        return (
            "your sampler ignores `sampling`: the rows of the target are sampling(logits, tokens), at its temperature"
        )
    if 0 < temperature < 1 and is_of(target, Sampling(temperature**2)):
        return "your sampler applies the temperature twice: the rows of the target are sampling(logits, tokens), once"
    if temperature > 0 and is_of(target, Sampling(0)):
        if len(perfect[3][0]) > 1:
            return (
                "you took the most probable token as the bonus, or where nothing is drafted; draw it from the target's "
                "last row"
            )
        return (
            "your sampler is greedy: it takes the target's most probable token and draws nothing; draw from the row "
            "with rng"
        )
    if temperature > 0 and len(distribution) == 1:
        return "the text does not depend on the generator: draw from the one that is passed, do not seed in the loop"
    if n_tokens > 1 and "a draft model" in case and is_of(other, sampling):
        return DRAFTS
    if n_tokens == 1 and largest_difference(*perfect[1]) > TOLERANCE:
        return (
            "already the first token does not have the target's distribution: where nothing is drafted it is a draw "
            "from sampling(target(tokens), tokens)[0]"
        )
    if any(largest_difference(*both) > TOLERANCE for both in perfect.values()):
        return all_accepted_hint(perfect[2][0], target, prompt, sampling)
    if "fewer" in case:
        return "your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft"
    return rejection_hint(distribution, wanted, models, sampling, case)


def ignored_fields(sampling):
    """The names of a sampling's steps other than its temperature."""
    names = [field.name for field in fields(sampling)] if isinstance(sampling, Sampling) else []
    return [name for name in names[1:] if getattr(sampling, name) != getattr(Sampling, name)]


def all_accepted_hint(distribution, target, prompt, sampling):
    """Wrong if every draft token is accepted; `distribution` is the distribution of two tokens."""
    first = sampling(target(prompt), prompt)[0]
    second = np.array([[distribution.get((a, b), 0) for b in range(3)] for a in range(3)])
    given = second / np.maximum(second.sum(axis=1, keepdims=True), 1e-300)
    rows = np.array([sampling(target([*prompt, a]), [*prompt, a])[0] for a in range(3)])
    accepted = "your sampler goes wrong where every draft token is accepted"
    first_is_right = same(second.sum(axis=1), first)
    if not first_is_right and not same(second.sum(axis=1), first @ rows):
        return accepted + ", as it is where draft and target are equal: accept x with probability min(1, p(x) / q(x))"
    bonus_is_wrong = first_is_right and not same(given, rows)
    if bonus_is_wrong and same(given, np.eye(3)[rows.argmax(axis=1)]):
        return "you took the most probable token as the bonus; draw it from the target's last row"
    if bonus_is_wrong and same(given, np.tile(first, (3, 1))):
        return (
            "where every draft token is accepted the bonus comes from the row before: it is row k of the target's k + 1"
        )
    return accepted + ": keep all K of them and the bonus (a[:-0] is empty)"


def rejection_hint(distribution, wanted, models, sampling, case):
    """Wrong if a draft token is rejected, right if all are accepted."""
    target, other, prompt = models

    def is_wrong(n):
        return largest_difference(marginal(distribution, n), marginal(wanted, n)) > TOLERANCE

    if is_wrong(1):
        p, q = (sampling(model(prompt), prompt)[0] for model in (target, other))
        f = np.array([marginal(distribution, 1).get((token,), 0) for token in range(3)])
        return (first_token_hint(f, p, q) if "a draft model" in case else None) or (
            "your sampler goes wrong where a draft token is rejected: accept x with probability min(1, p(x) / q(x)), "
            "and replace the first rejected one by a draw from max(0, p - q), normalised"
        )
    if "K = 1" not in case:
        return (
            "right for K = 1, but not for a block of several draft tokens: test draft token i against row i, with a "
            "uniform number of its own, replace the first rejected one from its own row, and drop those after it"
        )
    n_right = next(n for n in range(1, len(next(iter(distribution)))) if is_wrong(n + 1))
    return (
        f"the first {n_right} tokens are right and the next is wrong: after a rejection, drop the draft tokens that "
        "follow it, append its replacement, and start the second round from that text"
    )


def first_token_hint(f, p, q):
    """From the distribution f of the first token, where the target has p and the draft q."""
    if same(f, q):
        return DRAFTS
    kept, excess = np.minimum(p, q), residual(p, q)
    replaced = (f - kept) / (1 - kept.sum())
    wrong = {
        "on a rejection you drew from the target; draw from max(0, p - q), normalised": p,
        "on a rejection you drew from the draft; draw from max(0, p - q), normalised": q,
        "you drew from |p - q|; the residual is max(0, p - q), normalised": abs(p - q) / abs(p - q).sum(),
        "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft": residual(q, p),
        "you took the most probable token of the residual; draw from it": np.eye(3)[excess.argmax()],
    }
    if hint := next((hint for hint, row in wrong.items() if same(replaced, row)), None):
        return hint
    if same(f, kept + drawn_again(p, q, excess)):
        return (
            "a rejected token is replaced by a draw with the random number that drew the draft token: draw it with a "
            "number of its own"
        )
    upside_down = q * np.minimum(1, q / p)
    if any(same(f, upside_down + (1 - upside_down.sum()) * rest) for rest in (excess, residual(q, p), p)):
        return "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft"
    return None


def drawn_again(p, q, excess):
    """What replaces rejected tokens, where the uniform number that drew x from q also draws from the residual."""
    q_ends, ends = (np.minimum(np.cumsum(row), 1) for row in (q, excess))
    q_begins, begins = (np.concatenate([[0], row[:-1]]) for row in (q_ends, ends))
    both = np.minimum(q_ends[:, None], ends) - np.maximum(q_begins[:, None], begins)  # the share of u of x and of y
    return (1 - np.minimum(1, p / q)) @ np.maximum(both, 0)


def marginal(distribution, n):
    """The distribution of the first n tokens."""
    found = {}
    for tokens, share in distribution.items():
        found[tokens[:n]] = found.get(tokens[:n], 0) + share
    return found
