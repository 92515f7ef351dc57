"""Which form a function has (forms.py): of several, the one in which drafts with a certain outcome come out right."""

from typing import NamedTuple

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution
from .calling import Given, Unreadable, called, likely, read
from .cases import alike, marginal
from .forms import Form, guesses, parsed
from .watch import fail, told_error

TWICE = "the rejected draft token stays in the text, and its replacement follows it: the replacement takes its place"
LATE = "you count the rejected token as accepted; the count is the number of draft tokens before it (i, not i + 1)"
ALL_THAT_PASS = "you count all draft tokens that pass; the first rejection ends the round"
COUNTS = {  # by how much a count is too large if all pass, if the first is rejected, and if the second is
    (0, 1, 1): LATE,
    (1, 1, 1): LATE,
    (0, 1, 0): ALL_THAT_PASS,
    (0, 2, 1): ALL_THAT_PASS,
    (-1, 0, 0): "your count is one too small where all draft tokens are accepted; it is their number K",
}
SCALARS = (
    "draft_probs has one number for each draft token: pass the draft's whole rows [K, V], for what replaces a "
    "rejected token is drawn from max(0, p - q), which needs q of every token"
)
N_VOCAB = 9
# the tokens of which the target is certain, where 7 and 5 are drafted: (accepted draft tokens, the next token)
TRIALS = {(7, 5, 6): (2, 6), (8, 5, 6): (0, 8), (7, 8, 6): (1, 8)}


class Tried(NamedTuple):
    """What the trials say about a form."""

    score: float  # how many results are right, and in how many trials all can be read
    hint: str | None
    form: Form
    has_bonus: bool = False  # whether a token comes back where all draft tokens are accepted


def form_of(fn, spec, array):
    """The Form in which most one-hot drafts have the right results; AssertionError if these name the mistake.

    A function that takes K + 1 rows, and returns a token after all draft tokens, is not read as one without a bonus.
    """
    specs = [spec] if spec else guesses(fn)
    forms = [parsed(candidate.replace("target", f"target[{rows}]") if "target[" not in candidate else candidate, array)
             for candidate in specs for rows in ("K+1,V", "K,V", "B,K+1,V")]  # fmt: skip
    tries = {str(form): tried(fn, form) for form in dict.fromkeys(forms)}
    best = max(tries.values(), key=lambda report: report.score)
    whole = tries.get(str(best.form).replace("target[K,V]", "target[K+1,V]"), best)
    _, hint, form, _ = whole if whole.has_bonus else best
    if form.axes.get("draft") in ("K", "B,K") and best.score > 0 and not form.is_test:
        fail(SCALARS)
    if hint:
        raise told_error(*hint.splitlines(), f"  (read as {form})")
    return form


def tried(fn, form):
    """The Tried of a form."""
    hints, counts, n_right, passes, has_bonus = [], [], 0, False, False
    for rows, (n_wanted, wanted) in TRIALS.items():
        n_real = 1 if form.one else 2
        drafted = [7, 5][:n_real]
        inputs = Given(np.array(drafted), likely(np.eye(N_VOCAB)[drafted]), np.eye(N_VOCAB)[list(rows)], rows[2])
        errors = []

        def outcome(rng, inputs=inputs, errors=errors):
            try:
                return called(fn, form, inputs, rng)
            except AssertionError as error:
                errors.append(str(error))

        try:
            distribution = exact_distribution(outcome, max_leaves=300)
        except CannotEnumerate:
            return Tried(1, None, form)  # check_verifier says why
        if errors:
            return Tried(-9, errors[0], form)
        n_right += 1
        for parts, share in distribution.items():
            try:
                n, token, count = read(form, parts, [*drafted, *[N_VOCAB - 1] * (not form.bonus)], n_real, N_VOCAB)
            except Unreadable as error:
                n_right -= share
                hints += [str(error)] * (share == 1)
                continue
            counts.append(None if count is None else count - n_wanted - (n_wanted == 2 and not form.bonus))
            is_right, passes = n == min(n_wanted, n_real), passes or n == n_real
            has_bonus = has_bonus or (n == n_real and token is not None)
            has_token = (n < n_real or form.bonus) and not form.is_test
            n_right += share * (is_right + (token == wanted if has_token else is_right))
            if share == 1 and (n_wanted, n, token) == (0, 1, 8) and {"tokens", "padded"} & {*form.results}:
                hints.append(TWICE)
    n_right -= 3 * (not passes) + 0.1 * len(hints)  # all tokens of a draft should pass in some trial
    hint = COUNTS.get(tuple(counts))
    hint = hint if hint and counts_agree(fn, form, counts) else (hints or [None])[0]
    return Tried(n_right, hint, form, has_bonus)


def counts_agree(fn, form, excess):
    """Whether the counts are too large by as much, as in COUNTS, where a draft token passes with probability a."""
    for i, a in enumerate((0.4, 0.3)):  # of two draft tokens, number i; the other one passes
        drafted, q, p = [7, 5], np.full((2, N_VOCAB), 0.1), np.full((3, N_VOCAB), 0.05)
        q[[0, 1], drafted], p[[0, 1], drafted] = 0.2, 0.6
        p[i], p[2] = (1 - 0.2 * a) / 8, 1 / N_VOCAB
        p[i, drafted[i]] = 0.2 * a
        try:
            distribution = exact_distribution(
                lambda rng, p=p, q=q: called(fn, form, Given(np.array([7, 5]), q, p, 0), rng)
            )
            distribution = marginal(
                distribution, lambda parts: read(form, parts, [7, 5, 8][: 3 - form.bonus], 2, N_VOCAB)[2]
            )
        except (AssertionError, CannotEnumerate, Unreadable):
            return False
        counts = 3 - form.bonus + excess[0], i + excess[1 + i]  # where all pass, and where number i does not
        if not alike(distribution, marginal({0: a, 1: 1 - a}, counts.__getitem__)):
            return False
    return True
