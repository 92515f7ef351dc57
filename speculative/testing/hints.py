"""What went wrong in a verifier, in a sentence: from how it decides on cases that are made to tell mistakes apart.

Here: one guess. Two guesses are in block_hints.py.
"""

from dataclasses import dataclass

import numpy as np

from ..exact import exact_law
from ..probs import residual
from .block_hints import of_block
from .cases import Case, show
from .small_errors import of_precision, same


@dataclass
class Step:
    """What a verifier does with one drafted token."""

    accepted: float  # how often it is accepted
    replaced: np.ndarray | None  # the distribution of what comes instead; None where it is always accepted
    bonus: np.ndarray | None  # the distribution of the token after it; None where it is never accepted
    asks: bool  # whether rng is asked for anything

    @classmethod
    def of(cls, verifier, case, guess):
        law = exact_law(lambda rng: (*case.run(verifier, rng, [guess])[1:], rng.n_draws > 0))
        rows = np.zeros((2, case.n_vocab))
        for (n_accepted, token, _), probability in law.items():
            rows[n_accepted, token] += probability
        totals = rows.sum(axis=1)
        replaced, bonus = (rows[n] / totals[n] if totals[n] > 0 else None for n in (0, 1))
        return cls(totals[1], replaced, bonus, any(asks for *_, asks in law))


def story(verifier, case):
    """Lines that show a case: p and q of the first step, and what becomes of each token that can be drafted there."""
    lines = ["", f"  K = {case.K}, target p = {show(case.p[()])}"]
    if case.K:
        lines[-1] += f", draft q = {show(case.q[()])}"
    if case.K != 1:
        return lines
    for guess in np.flatnonzero(case.q[()]):
        step = Step.of(verifier, case, int(guess))
        by = f", replaced by a draw from {show(step.replaced)}" if step.replaced is not None else ""
        lines.append(f"  drafted token {guess}: accepted with probability {step.accepted:.6g}{by}")
    return lines


def diagnose(verifier, failed, rng):
    """The mistake in a sentence; `failed` is the case whose distribution is wrong."""
    case = Case(4, 1, "random", rng)
    case.p[()], case.q[()] = np.array([0.45, 0.3, 0.2, 0.05]), np.array([0.1, 0.15, 0.35, 0.4])
    p, q, steps = case.p[()], case.q[()], [Step.of(verifier, case, guess) for guess in range(4)]
    looks = of_asking, of_counting, of_precision, of_bonus, of_acceptance, of_residual, of_sum
    for look in looks:
        if hint := look(case, p, q, steps):
            return hint
    return of_kind(failed) or of_block(verifier)


def of_asking(case, p, q, steps):
    if any(step.asks for step in steps):
        return None
    accepted = [step.accepted for step in steps]
    if same(accepted, np.eye(4)[p.argmax()]):
        return "you accept only the target's likeliest token; that is right for temperature 0 alone"
    if same(accepted, p >= q):
        return "you accept where p(x) >= q(x) and never else; draw it: rng.random() < p(x) / q(x)"
    if same(accepted, np.ones(4)):
        return "you accept every guess, whatever the target says, and draw nothing: accept with probability min(1, p / q)"
    return (
        "your verifier asks rng for nothing: whether a guess is accepted must be drawn with rng; here it is certain, one "
        "way or the other, or comes from another source of randomness (np.random, random, a generator of your own)"
    )


def of_counting(case, p, q, steps):
    """n_accepted one too many on a rejection, or one too few where all are accepted."""
    right, rest = np.minimum(1, p / q), residual(p, q)
    mixed = [a * case.p[(x,)] + (1 - a) * rest for x, a in enumerate(right)]
    if same([step.accepted for step in steps], 1) and all(same(step.bonus, row) for step, row in zip(steps, mixed)):
        return (
            "on a rejection you count the rejected guess as accepted; n_accepted is the number of guesses before it "
            "(i, not i + 1)"
        )
    if same([step.accepted for step in steps], 0) and all(same(step.replaced, row) for step, row in zip(steps, mixed)):
        return "n_accepted is one too small where all guesses are accepted; it is their number k, and next_token the bonus"
    return None


def of_bonus(case, p, q, steps):
    known = [(guess, step, case.p[(guess,)]) for guess, step in enumerate(steps) if step.bonus is not None]
    known = [(guess, step, wanted) for guess, step, wanted in known if not same(step.bonus, wanted)]

    def all_are(wrong):
        return bool(known) and all(same(step.bonus, wrong(guess, wanted)) for guess, step, wanted in known)

    if not known:
        return None
    if all_are(lambda x, row: np.eye(4)[row.argmax()]):
        return "you took the likeliest token as the bonus; draw it from the target's last row"
    if all_are(lambda x, row: q):
        return "you drew the bonus from the draft; draw it from the target's last row"
    if all_are(lambda x, row: p):
        return "you drew the bonus from the row of the last guess; the row after all guesses is target_probs[k]"
    if all_are(lambda x, row: np.eye(4)[x]):
        return "where all guesses are accepted you return the last guess once more; draw a bonus from the target's last row"
    if all_are(lambda x, row: residual(p, q)):
        return "you drew the bonus from the residual; where all guesses are accepted it is the target's last row as it is"
    if all_are(lambda x, row: residual(row, q)):
        return "you drew the bonus from a residual; the target's last row has no draft: draw from it as it is"
    if all_are(lambda x, row: with_uniform(row, 0, min(1, p[x] / q[x]))):
        return "the uniform number that decided on the guess also draws the bonus: draw a new one"
    if all((step.bonus == 1).any() for _, step, _ in known):
        return "the bonus is one token for certain: draw it with rng from the target's last row"
    return "when all guesses are accepted, the bonus is drawn from the target's last row as it is"


def with_uniform(row, low, high):
    """The distribution of a draw from a row by its cumulative sum, with a uniform number from [low, high)."""
    edges = np.clip(np.concatenate([[0], np.cumsum(row)]), low, high)
    return np.diff(edges) / (high - low) if high > low else row


def of_acceptance(case, p, q, steps):
    accepted = np.array([step.accepted for step in steps])
    replaced = [step.replaced for step in steps]
    if same(accepted, np.minimum(1, p / q)):
        return None
    if all(r is None or same(r, p) for r in replaced) and same(accepted, p):
        return "after a match that failed you drew once more; the draw that did not match is the token to keep"
    if same(accepted, np.minimum(1, q / p)) and all(r is None or same(r, residual(q, p)) for r in replaced):
        return (
            "you have p and q exchanged, in the ratio (it is upside down) and in the residual: accept with probability "
            "min(1, p / q), replace from max(0, p - q), p the target and q the draft"
        )
    for wrong, hint in WRONG_ACCEPTANCE:
        if same(accepted, wrong(p, q)):
            return hint
    if same(accepted, [min(1, case.p[(x,)][x] / q[x]) for x in range(4)]):
        return "guess i is tested against row i of the target; yours is tested against the row after it, i + 1"
    if np.ptp(accepted) < 1e-9 and 0 < accepted[0] < 1:
        return (
            f"every guess is accepted with the same probability, {accepted[0]:.6g}; it is min(1, p(x) / q(x)), of the "
            "drafted token x"
        )
    if all(share in (0, 1) for share in accepted) and 0 < accepted.sum():
        return "whether a guess is accepted must be drawn with rng: here it is certain, one way or the other"
    return None


WRONG_ACCEPTANCE = [  # (acceptance probabilities of each guess, the mistake)
    (
        lambda p, q: np.minimum(1, q / p),
        "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft",
    ),
    (
        lambda p, q: np.ones(4),
        "you accept every guess, whatever the target says; accept a guess x with probability min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.eye(4)[p.argmax()],
        "you accept only the target's likeliest token; that is right for temperature 0 alone",
    ),
    (
        lambda p, q: p >= q,
        "you accept where p(x) >= q(x) and never else; where it is less, accept with probability p(x) / q(x)",
    ),
    (
        lambda p, q: 1 - np.minimum(1, p / q),
        "you accept where you should reject, and the other way round: accept if u < p / q",
    ),
    (
        lambda p, q: np.maximum(0, 1 - q / p),
        "you accept where you should reject, with the ratio upside down: accept with probability min(1, p / q)",
    ),
    (
        lambda p, q: np.where(p > q, 0, 1 - p / q),
        "you accept where you should reject, and the other way round: accept if u < p / q",
    ),
    (
        lambda p, q: p,
        "you accept a guess x with the target's probability p(x) alone; divide by the draft's: min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: q,
        "you accept a guess x with the draft's probability q(x); it is min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.minimum(p, q),
        "you accept with probability min(p(x), q(x)), which is how often x is drafted and accepted; given that it is "
        "drafted, accept with min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.clip(p - q, 0, 1),
        "you accept with probability p(x) - q(x); it is the ratio min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: np.minimum(1, np.abs(p - q)),
        "you accept with probability |p(x) - q(x)|; it is the ratio min(1, p(x) / q(x))",
    ),
    (
        lambda p, q: p / (p + q),
        "you accept with probability p / (p + q); it is min(1, p / q)",
    ),
    (
        lambda p, q: np.clip(np.log(p) - np.log(q), 0, 1),
        "you compare a uniform number with log p - log q; take its logarithm, too: log u < log p(x) - log q(x)",
    ),
]


def of_residual(case, p, q, steps):
    rest = residual(p, q)
    rejected = [(x, step.replaced) for x, step in enumerate(steps) if step.replaced is not None]
    for wrong, hint in WRONG_RESIDUALS:
        rows = [wrong(p, q, x, case.p[(x,)]) for x, _ in rejected]
        if rejected and all(same(replaced, row / row.sum()) for (_, replaced), row in zip(rejected, rows)):
            return hint
    rejects = [(x, replaced) for x, replaced in rejected if p[x] < q[x]]
    if rejects and all(same(replaced, with_uniform(rest, p[x] / q[x], 1)) for x, replaced in rejects):
        return "the uniform number that rejected the guess also draws its replacement: draw a new one"
    if rejects and all((replaced == 1).any() for _, replaced in rejects):
        return "what replaces a rejected guess is one token for certain: draw it with rng from max(0, p - q), normalised"
    accepted = np.array([step.accepted for step in steps])
    if rejected and same(accepted, np.minimum(1, p / q)) and any(not same(row, rest) for _, row in rejected):
        return "what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with"
    return None


def at_the_end(p, q, place):
    """The residual without normalisation, where what is missing to 1 goes to the token at `place`."""
    row = np.maximum(p - q, 0)
    row[place] += 1 - row.sum()
    return row


NORMALISE = "your residual is not normalised: divide max(0, p - q) by its sum before you draw"
WRONG_RESIDUALS = [  # (weights of what comes instead of a rejected x, r the target's next row; the mistake)
    (lambda p, q, x, r: p, "on a rejection you drew from the target; draw from max(0, p - q), normalised"),
    (lambda p, q, x, r: q, "on a rejection you drew from the draft; draw from max(0, p - q), normalised"),
    (
        lambda p, q, x, r: abs(p - q),
        "you drew from |p - q|; the residual keeps only where the target has more: max(0, p - q)",
    ),
    (
        lambda p, q, x, r: residual(q, p),
        "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft",
    ),
    (
        lambda p, q, x, r: np.eye(4)[(p - q).argmax()],
        "you took the likeliest token of the residual or of the target; draw from max(0, p - q), normalised",
    ),
    (lambda p, q, x, r: np.eye(4)[x], "the rejected guess comes out all the same; draw from max(0, p - q), normalised"),
    (
        lambda p, q, x, r: p * (np.arange(4) != x),
        "you drew from the target without the rejected token, which is right for a one-hot draft alone; "
        "draw from max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: np.minimum(p, q),
        "you drew from min(p, q), what is accepted already; draw from what is missing, max(0, p - q), normalised",
    ),
    (
        lambda p, q, x, r: np.ones(4),
        "on a rejection you drew from all tokens alike; draw from max(0, p - q), normalised",
    ),
    (lambda p, q, x, r: at_the_end(p, q, 3), NORMALISE),
    (lambda p, q, x, r: at_the_end(p, q, 0), NORMALISE),
    (lambda p, q, x, r: at_the_end(p, q, 1), NORMALISE),
    (
        lambda p, q, x, r: residual(r, q),
        "the residual of guess i is of row i of target and draft; yours takes the target's row after it, i + 1",
    ),
    (lambda p, q, x, r: r, "on a rejection you drew from the target's last row; draw from max(0, p - q) of row i"),
    (
        lambda p, q, x, r: np.exp(np.maximum(p - q, 0)),
        "you put a softmax over the residual; divide max(0, p - q) by its sum: they are probabilities, no logits",
    ),
    (
        lambda p, q, x, r: np.exp(p - q),
        "you put a softmax over p - q; the residual is max(0, p - q), divided by its sum",
    ),
]


def of_sum(case, p, q, steps):
    accepted = np.array([step.accepted for step in steps])
    law = q * accepted + sum(q[x] * (1 - s.accepted) * s.replaced for x, s in enumerate(steps) if s.replaced is not None)
    if not same(law, p):
        wrong = int(np.argmax(abs(accepted - np.minimum(1, p / q))))
        return (
            "what you accept and what you replace by do not add up to the target: min(p, q) + max(0, p - q) = p; with "
            f"p(x) = {p[wrong]:g} and q(x) = {q[wrong]:g} you accept with {accepted[wrong]:.4g}, and "
            f"min(1, p / q) = {min(1, p[wrong] / q[wrong]):.4g}"
        )
    return None


def of_kind(failed):
    """Where the distributions made to tell mistakes apart show none, but special ones do."""
    if failed.K == 0:
        return "wrong where nothing is drafted (K = 0): the one token is then drawn from target_probs[0]"
    return KINDS.get(failed.kind)


KINDS = {
    "zeros in p": "right, but not where the target has a token of probability 0: such a token must never come out",
    "zeros in q": "right, but not where the draft has tokens of probability 0: these come out by the residual alone",
    "one-hot q": "right, but not where the draft is certain (one-hot rows): accept x with p(x), else draw from the rest",
    "one-hot p": "right, but not where the target is certain (temperature 0, one-hot rows): the text is the greedy one",
    "one-hot p and q": "right, but not where target and draft are certain (temperature 0, one-hot rows)",
    "equal": "right, but not where target and draft are equal: every guess is accepted then, and max(0, p - q) is 0 / 0",
    "disjoint": "right, but not where target and draft have no token in common: nothing is accepted then",
}
