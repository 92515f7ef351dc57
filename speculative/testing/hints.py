"""Hints for verifiers: the mistake in a sentence, found from its decisions on cases made to tell mistakes apart.

Here: one draft token. The token after it is in bonus_hints.py, two draft tokens are in block_hints.py.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from ..exact.enumeration import exact_distribution
from ..probs import residual
from .block_hints import of_block
from .bonus_hints import of_bonus
from .cases import Case, show
from .mistakes import KINDS, WRONG_ACCEPTANCE, WRONG_RESIDUALS, with_uniform
from .small_errors import of_precision, same


@dataclass
class Step:
    """What a verifier does with one draft token."""

    accepted: float  # the probability that it is accepted
    replaced: np.ndarray | None  # the distribution of its replacement; None if it is always accepted
    bonus: np.ndarray | None  # the distribution of the token after it; None if it is never accepted
    asks: bool  # whether anything is drawn from rng

    @classmethod
    def of(cls, verifier, case, guess):
        distribution = exact_distribution(lambda rng: (*case.run(verifier, rng, [guess])[1:], rng.n_draws > 0))
        rows = np.zeros((2, case.n_vocab))
        for (n_accepted, token, _), probability in distribution.items():
            rows[n_accepted, token] += probability
        totals = rows.sum(axis=1)
        replaced, bonus = (rows[n] / totals[n] if totals[n] > 0 else None for n in (0, 1))
        return cls(totals[1], replaced, bonus, any(asks for *_, asks in distribution))


def story(verifier, case):
    """Lines that show a case: p and q of the first step, and what happens to each token that can be drafted there."""
    lines = ["", f"  K = {case.K}, target p = {show(case.p[()])}"]
    if case.K:
        lines[-1] += f", draft q = {show(case.q[()])}"
    if case.K != 1:
        return lines
    for guess in np.flatnonzero(case.q[()]):
        step = Step.of(verifier, case, int(guess))
        by = f", replaced by a draw from {show(step.replaced)}" if step.replaced is not None else ""
        lines.append(f"  draft token {guess}: accepted with probability {step.accepted:.6g}{by}")
    return lines


def diagnose(verifier, failed, rng):
    """The mistake in a sentence; `failed` is the case whose distribution is wrong."""
    case = Case(4, 1, "random", rng)
    case.p[()], case.q[()] = np.array([0.2, 0.45, 0.05, 0.3]), np.array([0.35, 0.1, 0.4, 0.15])
    p, q, steps = case.p[()], case.q[()], [Step.of(verifier, case, guess) for guess in range(4)]
    looks = of_asking, of_counting, of_precision, of_bonus, of_acceptance, of_residual, of_sum
    for look in looks:
        if hint := look(case, p, q, steps):
            return hint
    return of_lists(verifier) or of_kind(failed) or of_block(verifier) or of_case(verifier, failed)


def of_asking(case, p, q, steps):
    if any(step.asks for step in steps):
        return None
    accepted = [step.accepted for step in steps]
    if same(accepted, np.eye(4)[p.argmax()]):
        return "you accept only the target's most probable token; that is right for temperature 0 alone"
    if same(accepted, p >= q):
        return "you accept exactly if p(x) >= q(x); draw the decision instead: rng.random() < p(x) / q(x)"
    if same(accepted, np.ones(4)):
        return (
            "you accept every draft token, whatever the target says, and draw nothing: accept with probability "
            "min(1, p / q)"
        )
    greedy = all(same(step.bonus, np.eye(4)[case.p[(x,)].argmax()]) for x, step in enumerate(steps) if step.accepted)
    if greedy and same(accepted, p > 0.09):  # min(epsilon, delta exp(-entropy)) with Medusa's numbers, for this p
        return (
            "your verifier draws nothing from rng, and accepts every draft token above a threshold: typical "
            "acceptance, which is LOSSY; accept with probability min(1, p / q)"
        )
    return (
        "your verifier draws nothing from rng: whether a draft token is accepted must be drawn with rng; here it is "
        "certain, or comes from another source of randomness (np.random, random, a generator of your own)"
    )


def of_counting(case, p, q, steps):
    """n_accepted is one too large on a rejection, or one too small if all are accepted."""
    right, rest = np.minimum(1, p / q), residual(p, q)
    mixed = [a * case.p[(x,)] + (1 - a) * rest for x, a in enumerate(right)]
    if same([step.accepted for step in steps], 1) and all(same(step.bonus, row) for step, row in zip(steps, mixed)):
        return (
            "on a rejection you count the rejected token as accepted; n_accepted is the number of draft tokens "
            "before it (i, not i + 1)"
        )
    if same([step.accepted for step in steps], 0) and all(same(step.replaced, row) for step, row in zip(steps, mixed)):
        return (
            "n_accepted is one too small where all draft tokens are accepted; it is their number k, and next_token "
            "the bonus"
        )
    return None


def of_acceptance(case, p, q, steps):
    accepted = np.array([step.accepted for step in steps])
    replaced = [step.replaced for step in steps]
    if same(accepted, np.minimum(1, p / q)):
        return None
    if all(r is None or same(r, p) for r in replaced) and same(accepted, p):
        return "after a match that failed you drew once more; the draw that did not match is the token to keep"
    if same(accepted, np.minimum(1, q / p)) and all(r is None or same(r, residual(q, p)) for r in replaced):
        return (
            "you have p and q swapped, in the ratio (it is upside down) and in the residual: accept with probability "
            "min(1, p / q), replace from max(0, p - q), p the target and q the draft"
        )
    for wrong, hint in WRONG_ACCEPTANCE:
        if same(accepted, wrong(p, q)):
            return hint
    if same(accepted, [min(1, case.p[(x,)][x] / q[x]) for x in range(4)]):
        return "draft token i is tested against row i of the target; yours is tested against another, i + 1 or i - 1"
    if np.ptp(accepted) < 1e-9 and 0 < accepted[0] < 1:
        return (
            f"every draft token is accepted with the same probability, {accepted[0]:.6g}; it is min(1, p(x) / q(x)), "
            "of the draft token x"
        )
    if all(share in (0, 1) for share in accepted) and 0 < accepted.sum():
        return "whether a draft token is accepted must be drawn with rng; here it is certain"
    return None


def of_residual(case, p, q, steps):
    rest = residual(p, q)
    rejected = [(x, step.replaced) for x, step in enumerate(steps) if step.replaced is not None]
    for wrong, hint in WRONG_RESIDUALS:
        rows = [wrong(p, q, x, case.p[(x,)]) for x, _ in rejected]
        if rejected and all(same(replaced, row / row.sum()) for (_, replaced), row in zip(rejected, rows)):
            return hint
    rejects = [(x, replaced) for x, replaced in rejected if p[x] < q[x]]
    if rejects and all(same(replaced, with_uniform(rest, p[x] / q[x], 1)) for x, replaced in rejects):
        return "the uniform number that rejected the draft token also draws its replacement: draw a new one"
    if rejects and all((replaced == 1).any() for _, replaced in rejects):
        return "a rejected token is always replaced by the same token: draw it with rng from max(0, p - q), normalised"
    accepted = np.array([step.accepted for step in steps])
    if rejected and same(accepted, np.minimum(1, p / q)) and any(not same(row, rest) for _, row in rejected):
        return "what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with"
    return None


def of_sum(case, p, q, steps):
    accepted = np.array([step.accepted for step in steps])
    distribution = q * accepted + sum(
        q[x] * (1 - s.accepted) * s.replaced for x, s in enumerate(steps) if s.replaced is not None
    )
    if not same(distribution, p):
        wrong = int(np.argmax(abs(accepted - np.minimum(1, p / q))))
        return (
            "what you accept and what you replace by do not add up to the target: min(p, q) + max(0, p - q) = p; with "
            f"p(x) = {p[wrong]:g} and q(x) = {q[wrong]:g} you accept with {accepted[wrong]:.4g}, and min(1, p / q) = "
            f"{min(1, p[wrong] / q[wrong]):.4g}"
        )
    return None


def of_case(verifier, case):
    """What is wrong in the case that failed, token by token, compared with rejection sampling."""
    for guesses in itertools.product(range(case.n_vocab), repeat=case.K):
        if not all(case.q[guesses[:i]][x] > 0 for i, x in enumerate(guesses)):
            continue
        distribution = exact_distribution(lambda rng, guesses=guesses: case.run(verifier, rng, guesses)[1:])
        for i, x in enumerate(guesses):
            p, q = case.p[guesses[:i]], case.q[guesses[:i]]
            tested, kept = (sum(share for (n, _), share in distribution.items() if n >= least) for least in (i, i + 1))
            if tested > 0 and not same(kept / tested, min(1, p[x] / q[x])):
                return (
                    f"a draft token x with p(x) = {p[x]:.6g} and q(x) = {q[x]:.6g} is accepted with "
                    f"{kept / tested:.6g}; min(1, p / q) is {min(1, p[x] / q[x]):.6g}"
                )
    return (
        "the draft tokens are accepted as they should be, but the token after them is not drawn from the right "
        "distribution"
    )


def of_lists(verifier):
    """Rows without their zeros, as lists of (token, probability), of which the i-th are subtracted from each other."""
    case = Case(4, 1, "random", np.random.default_rng(0))
    case.p[()], case.q[()] = np.array([0, 0.45, 0.25, 0.3]), np.array([0.5, 0.1, 0.4, 0])
    step = Step.of(verifier, case, 2)
    wrong = np.maximum(case.p[()] - np.array([0, 0.5, 0.1, 0.4]), 0)
    if same(step.replaced, wrong / wrong.sum()):
        return (
            "your residual subtracts the probabilities of different tokens: max(0, p - q) goes by token id, not by "
            "place in two lists that leave out the tokens of probability 0"
        )
    return None


def of_kind(failed):
    """The hint if only special distributions show the mistake."""
    if failed.K == 0:
        return "wrong where nothing is drafted (K = 0): the one token is then drawn from target_probs[0]"
    return KINDS.get(failed.kind)
