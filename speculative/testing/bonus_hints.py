"""Hints for verifiers: the bonus, which follows if every draft token is accepted."""

import numpy as np

from ..probs import residual
from .drafter_hints import of_temperature
from .mistakes import NEW_NUMBERS, PROBABILITIES, new_number_each, softmax, with_uniform
from .small_errors import same


def of_bonus(case, p, q, steps):
    known = [(guess, step, case.p[(guess,)]) for guess, step in enumerate(steps) if step.bonus is not None]
    known = [(guess, step, wanted) for guess, step, wanted in known if not same(step.bonus, wanted)]

    def all_are(wrong):
        return bool(known) and all(same(step.bonus, wrong(guess, wanted)) for guess, step, wanted in known)

    if not known:
        return None
    if all_are(lambda x, row: np.eye(4)[row.argmax()]):
        return "you took the most probable token as the bonus; draw it from the target's last row"
    if all_are(lambda x, row: q):
        return "you drew the bonus from the draft; draw it from the target's last row"
    if all_are(lambda x, row: p):
        return (
            "you drew the bonus from the row of the last draft token; the row after all draft tokens is target_probs[k]"
        )
    if all_are(lambda x, row: np.eye(4)[x]):
        return (
            "where all draft tokens are accepted you return the last draft token once more; draw a bonus from the "
            "target's last row"
        )
    if all_are(lambda x, row: softmax(row)):
        return PROBABILITIES
    powers = {round(of_temperature(step.bonus, wanted) or 0.0, 6) for _, step, wanted in known}
    if len(powers) == 1 and abs(min(powers) - 1) > 0.05 and 0.0 not in powers:
        return (
            f"the bonus is drawn at another temperature than its row (the row to the power {powers.pop():g}): draw "
            "from the target's last row as it is, after temperature, top-k and top-p"
        )
    if all_are(lambda x, row: np.full(4, 0.25)):
        return "you drew the bonus from all tokens with equal probability; draw it from the target's last row"
    if all_are(lambda x, row: new_number_each(row)):
        return NEW_NUMBERS
    if all_are(lambda x, row: residual(p, q)):
        return (
            "you drew the bonus from the residual; where all draft tokens are accepted it is the target's last row "
            "as it is"
        )
    if all_are(lambda x, row: residual(row, q)):
        return "you drew the bonus from a residual; the target's last row has no draft: draw from it as it is"
    if all_are(lambda x, row: with_uniform(row, 0, min(1, p[x] / q[x]))):
        return "the uniform number that decided on the draft token also draws the bonus: draw a new one"
    if all((step.bonus == 1).any() for _, step, _ in known):
        return "the bonus is one token for certain: draw it with rng from the target's last row"
    return "when all draft tokens are accepted, the bonus is drawn from the target's last row as it is"
