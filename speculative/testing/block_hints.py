"""Hints for block verification: the mistake in a sentence, found by comparison with rules that have it built in.

p-hat_i = min(1, p-hat_(i-1) p / q) is the ratio of the first i draft tokens. For i < K they pass with probability
h_i = S / (S + 1 - p-hat_i), where S is the sum of max(0, p-hat_i p - q) over the rows after them; all K pass with
p-hat_K. The longest prefix that passes is kept (arXiv:2403.10444, algorithm 2). A verifier that decides on small drafts
as one of the MISTAKES does has this mistake.
"""

import itertools
from functools import partial

import numpy as np

from ..interfaces import Verdict
from ..logits.probs import residual, sample_token
from .cases import decisions, largest_difference

P = np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5], [0.7, 0.1, 0.2], [0.35, 0.4, 0.25]])  # ratios on both sides of 1
Q = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.25, 0.25, 0.5]])
DRAFTS = (0, 0), (0, 2), (2, 0), (0, 1, 0), (2, 0, 2)


def wrong_block(
    draft, target_probs, rng, *,
    ratio=lambda before, now: min(1.0, before * now), passes=lambda S, p_hat: S / (S + 1 - p_hat), row=0, numbers="new",
    certain=True, keeps="the longest", left=lambda p_hats, n: p_hats[n], subtracted=lambda n: n,
):  # fmt: skip
    """Block verification, with a part of it exchanged."""
    k, p_hats, passed, u = len(draft.tokens), [1.0], [0], rng.random()
    for i, x in enumerate(draft.tokens, 1):
        p_hats.append(ratio(p_hats[-1], target_probs[i - 1, x] / draft.probs[i - 1, x]))
        h = p_hats[i]
        if i < k and (h < 1 or not certain):  # where p-hat is 1, prefix i passes
            at = min(max(i + row, 0), k - 1)
            h = passes(np.maximum(h * target_probs[at] - draft.probs[at], 0).sum(), h)
        if (u if numbers == "one" else rng.random()) < h:
            passed.append(i)
            if keeps == "the first":
                break
        elif keeps == "until one fails":
            break
    n = passed[-1]
    weights = target_probs[k] if n == k else residual(left(p_hats, n) * target_probs[n], draft.probs[subtracted(n)])
    return Verdict(n, sample_token(weights, rng))


MISTAKES = {  # the hint: the part that is exchanged for a wrong one
    "block verification keeps the longest prefix that passes; do not stop at the first that does not": {
        "keeps": "until one fails"},
    "block verification keeps the longest prefix that passes; yours stops at the first that does": {
        "keeps": "the first"},
    "block verification caps the ratio of the whole prefix at 1, in each step": {"ratio": lambda a, b: a * b},
    "in block verification p-hat is the ratio of the whole prefix, min(1, p-hat p / q) with the p-hat of the step "
    "before; yours is the ratio of one draft token": {"ratio": lambda before, now: min(1.0, now)},
    "in block verification each prefix is tested with a uniform number of its own; yours has one for all": {
        "numbers": "one"},
    "in block verification prefix i passes with S / (S + 1 - p-hat); yours leaves out - p-hat, S / (S + 1)": {
        "passes": lambda S, p_hat: S / (S + 1)},
    "in block verification prefix i passes with S / (S + 1 - p-hat); yours passes with S alone": {
        "passes": lambda S, p_hat: S},
    "in block verification prefix i passes with S / (S + 1 - p-hat) where i < K; with p-hat only where i = K": {
        "passes": lambda S, p_hat: p_hat},
    "in block verification S is the sum of max(0, p-hat p - q) over the rows after prefix i, target_probs[i] and "
    "draft.probs[i]; yours takes those before its last token": {"row": -1},
    "in block verification S is the sum of max(0, p-hat p - q) over the rows after prefix i, target_probs[i] and "
    "draft.probs[i]; yours takes later ones": {"row": 1},
    "after block verification the residual is max(0, p-hat p - q), with the ratio p-hat of what is kept": {
        "left": lambda p_hats, n: 1.0},
    "after block verification the residual is max(0, p-hat p - q), with the p-hat of the kept prefix; yours takes that "
    "of the whole draft": {"left": lambda p_hats, n: p_hats[-1]},
    "after block verification the residual is max(0, p-hat p - q), with the p-hat of the kept prefix; yours takes that "
    "of one draft token more": {"left": lambda p_hats, n: p_hats[n + 1]},
    "after block verification the residual is of the rows after the kept prefix; yours subtracts the last row of the "
    "draft": {"subtracted": lambda n: -1},
}  # fmt: skip


def mistake_in_block(verifier):
    """The mistake in a sentence, or None."""
    found = [of_drafts(verifier, tokens) for tokens in DRAFTS]
    for (hint, part), certain in itertools.product(MISTAKES.items(), (True, False)):
        if not certain and "passes" not in part:
            continue
        part = {**part, "certain": certain}
        wrong = (of_drafts(partial(wrong_block, **part), tokens) for tokens in DRAFTS)
        if all(largest_difference(a, b) < 1e-9 for a, b in zip(found, wrong)):
            return hint
    return None


def of_drafts(verifier, tokens):
    return decisions(verifier, tokens, Q[: len(tokens)], P[: len(tokens) + 1])
