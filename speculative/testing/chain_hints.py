"""Hints for verifiers: the mistake in a sentence, found from its decisions on drafts made to tell mistakes apart.

First one draft token, with P and Q: whether it is accepted, what replaces it, and what follows it (the bonus). What is
right for one token may be wrong for two, with P_2 and Q_2, or for distributions of a special kind. p is the target's
distribution and q the draft's. A table has for each hint what its mistake leads to.
"""

import itertools

import numpy as np

from ..exact.enumeration import exact_distribution
from ..interfaces import Draft
from ..logits.probs import residual
from .block_hints import mistake_in_block
from .cases import Case, decided, decisions, same
from .drafter_hints import exponent_of

P, Q = np.array([0.2, 0.45, 0.05, 0.3]), np.array([0.35, 0.1, 0.4, 0.15])
RIGHT, REST = np.minimum(1, P / Q), residual(P, Q)  # how likely each token is to be accepted, and what replaces it
UPSIDE_DOWN, EXCESS, ONE_HOT = np.minimum(1, Q / P), np.maximum(P - Q, 0), np.eye(4)
BEST = ONE_HOT[P.argmax()]


class Step:
    """A verifier's behaviour on one draft token."""

    def __init__(self, verifier, token, p, q, after):
        """p and q [n_vocab] are for the draft token, and `after` is the target's row that follows it."""
        draft, rows = Draft(np.array([token]), np.array([q])), np.zeros((2, len(p)))

        def decision(rng):
            return *decided(verifier, draft, np.array([p, after]), rng), rng.n_draws > 0

        distribution = exact_distribution(decision)
        for (accepted, next_token, _), share in distribution.items():
            rows[len(accepted), next_token] += share
        self.token, self.p, self.q, self.after = token, p[token], q[token], after
        self.accepted = rows[1].sum()  # the probability that it is accepted
        self.replaced, self.bonus = map(normalised, rows)  # of its replacement, and of the token after it
        self.asks = any(asks for *_, asks in distribution)  # whether anything is drawn from rng


def normalised(row):
    """The distribution with these weights; None if they are 0."""
    return row / row.sum() if row.any() else None


def mistake_on_a_chain(verifier, failed, rng):
    """The mistake in a sentence; `failed` is the case whose distribution is wrong."""
    case = Case(4, 1, "random", rng)
    steps = [Step(verifier, token, P, Q, case.p[(token,)]) for token in range(4)]
    looks = certainty_hint, count_hint, precision_hint, bonus_hint, acceptance_hint, residual_hint, sum_hint
    return (
        next((hint for look in looks if (hint := look(steps))), None)
        or lists_hint(verifier)
        or kind_hint(failed)
        or block_hint(verifier)
        or case_hint(verifier, failed)
    )


# ------------------------------------------------------------------------------------------------ one draft token


def certainty_hint(steps):
    """Where nothing is drawn."""
    if any(step.asks for step in steps):
        return None
    accepted = [step.accepted for step in steps]
    if same(accepted, BEST):
        return MOST_PROBABLE
    if same(accepted, P >= Q):
        return "you accept exactly if p(x) >= q(x); draw the decision instead: rng.random() < p(x) / q(x)"
    if same(accepted, 1):
        return (
            "you accept every draft token, whatever the target says, and draw nothing: accept with probability "
            "min(1, p / q)"
        )
    greedy = all(same(step.bonus, ONE_HOT[step.after.argmax()]) for step in steps if step.accepted)
    if greedy and same(accepted, P > 0.09):  # min(epsilon, delta exp(-entropy)) with Medusa's numbers, for this P
        return (
            "your verifier draws nothing from rng, and accepts every draft token above a threshold: typical "
            "acceptance, which is LOSSY; accept with probability min(1, p / q)"
        )
    return (
        "your verifier draws nothing from rng: whether a draft token is accepted must be drawn with rng; here it is "
        "certain, or comes from another source of randomness (np.random, random, a generator of your own)"
    )


def count_hint(steps):
    """n_accepted is one too large on a rejection, or one too small if all are accepted."""
    mixed = [a * step.after + (1 - a) * REST for step, a in zip(steps, RIGHT)]
    if all(same(step.accepted, 1) and same(step.bonus, row) for step, row in zip(steps, mixed)):
        return (
            "on a rejection you count the rejected token as accepted; n_accepted is the number of draft tokens "
            "before it (i, not i + 1)"
        )
    if all(same(step.accepted, 0) and same(step.replaced, row) for step, row in zip(steps, mixed)):
        return (
            "n_accepted is one too small where all draft tokens are accepted; it is their number k, and next_token "
            "the bonus"
        )
    return None


def precision_hint(steps):
    """Where everything is nearly right: an epsilon against a division by zero, or float32."""
    accepted = np.array([step.accepted for step in steps])
    replaced = [step.replaced for step in steps if step.p < step.q and step.replaced is not None]
    in_ratio = abs(accepted - RIGHT).max()
    in_residual = max((abs(row - REST).max() for row in replaced), default=0)
    in_bonus = max((abs(step.bonus - step.after).max() for step in steps if step.bonus is not None), default=0)
    error = max(in_ratio, in_residual, in_bonus)
    if error < 1e-13:
        return None
    if in_bonus < 1e-13 and (epsilon := epsilon_in_ratio(accepted)):
        return (
            f"an epsilon of {epsilon:.1g} makes the ratio p / q wrong: add none, for a token that was drafted has "
            "q(x) > 0"
        )
    if error > 2e-3:  # the errors of float16 are smaller
        return None
    if max(in_ratio, in_bonus) < 1e-13:
        epsilon = epsilon_in_residual(replaced)
        cause = f" ({epsilon:.1g}, by the look of it)" if epsilon else ""
        return (
            f"your residual is off by {in_residual:.1g}: add no epsilon{cause} to max(0, p - q), and compute in "
            "float64, not in float32 (torch's default)"
        )
    return NEARLY_RIGHT.format(error)


def epsilon_in_ratio(accepted):
    """The epsilon of p / (q + epsilon), (p + epsilon) / (q + epsilon) or p / q + epsilon; None without an epsilon."""
    less = (P < Q) & (accepted > 0) & (accepted < 1)
    if less.sum() < 2:
        return None
    a, p, q = accepted[less], P[less], Q[less]
    for found in (p / a - q, (a * q - p) / (1 - a), a - p / q, a * q - p):
        if found.min() > 1e-14 and np.ptp(found) < 0.01 * found.min() + 1e-15:
            return float(found.mean())
    return None


def epsilon_in_residual(replaced):
    """The epsilon of max(0, p - q) + epsilon, normalised, or None."""
    weights = np.array([row[P <= Q] for row in replaced])
    if weights.size == 0 or weights.min() <= 0 or np.ptp(weights) > 0.01 * weights.min():
        return None
    share = weights.mean()
    return float(share * EXCESS.sum() / (1 - 4 * share))


def bonus_hint(steps):
    wrong = [step for step in steps if step.bonus is not None and not same(step.bonus, step.after)]
    if not wrong:
        return None
    tables = [wrong_bonuses(step) for step in wrong]
    for hint in tables[0]:
        if all(same(step.bonus, table[hint]) for step, table in zip(wrong, tables)):
            return hint
    powers = {round(exponent_of(step.bonus, step.after) or 0.0, 6) for step in wrong}
    if len(powers) == 1 and abs(min(powers) - 1) > 0.05 and 0.0 not in powers:
        return (
            f"the bonus is drawn at another temperature than its row (the row to the power {powers.pop():g}): draw "
            "from the target's last row as it is, after temperature, top-k and top-p"
        )
    if all((step.bonus == 1).any() for step in wrong):
        return "the bonus is one token for certain: draw it with rng from the target's last row"
    return "when all draft tokens are accepted, the bonus is drawn from the target's last row as it is"


def wrong_bonuses(step):
    """The mistake: the distribution of the bonus."""
    after, passes = step.after, min(1, step.p / step.q)
    return {
        "you took the most probable token as the bonus; draw it from the target's last row": ONE_HOT[after.argmax()],
        "you drew the bonus from the draft; draw it from the target's last row": Q,
        "you drew the bonus from the row of the last draft token; the row after all draft tokens is target_probs[k]": P,
        "where all draft tokens are accepted you return the last draft token once more; "
        "draw a bonus from the target's last row": ONE_HOT[step.token],
        PROBABILITIES: softmax(after),
        "you drew the bonus from all tokens with equal probability; draw it from the target's last row": np.ones(4) / 4,
        NEW_NUMBERS: new_number_each(after),
        "you drew the bonus from the residual; "
        "where all draft tokens are accepted it is the target's last row as it is": REST,
        "you drew the bonus from a residual; the target's last row has no draft: draw from it as it is": residual(
            after, Q
        ),
        "the uniform number that decided on the draft token also draws the bonus: draw a new one": with_uniform(
            after, 0, passes
        ),
    }


def acceptance_hint(steps):
    accepted = np.array([step.accepted for step in steps])
    if same(accepted, RIGHT):
        return None

    def replaced_from(row):
        return all(step.replaced is None or same(step.replaced, row) for step in steps)

    if same(accepted, P) and replaced_from(P):
        return DRAWN_ONCE_MORE
    if same(accepted, UPSIDE_DOWN) and replaced_from(residual(Q, P)):
        return (
            "you have p and q swapped, in the ratio (it is upside down) and in the residual: accept with probability "
            "min(1, p / q), replace from max(0, p - q), p the target and q the draft"
        )
    for hint, wrong in WRONG_ACCEPTANCE.items():
        if any(same(accepted, one) for one in np.atleast_2d(wrong)):
            return hint
    if same(accepted, [min(1, step.after[step.token] / step.q) for step in steps]):
        return "draft token i is tested against row i of the target; yours is tested against another, i + 1 or i - 1"
    if np.ptp(accepted) < 1e-9 and 0 < accepted[0] < 1:
        return (
            f"every draft token is accepted with the same probability, {accepted[0]:.6g}; it is min(1, p(x) / q(x)), "
            "of the draft token x"
        )
    if all(share in (0, 1) for share in accepted) and accepted.any():
        return "whether a draft token is accepted must be drawn with rng; here it is certain"
    return None


def residual_hint(steps):
    rejected = [step for step in steps if step.replaced is not None]
    if not rejected:
        return None
    tables = [wrong_residuals(step.token, step.after) for step in rejected]
    for hint in tables[0]:
        for rows in zip(*(np.atleast_2d(table[hint]) for table in tables)):
            if all(same(step.replaced, row / row.sum()) for step, row in zip(rejected, rows)):
                return hint
    rightly = [step for step in rejected if step.p < step.q]
    if rightly and all(same(step.replaced, with_uniform(REST, step.p / step.q, 1)) for step in rightly):
        return "the uniform number that rejected the draft token also draws its replacement: draw a new one"
    if rightly and all((step.replaced == 1).any() for step in rightly):
        return "a rejected token is always replaced by the same token: draw it with rng from max(0, p - q), normalised"
    if same([step.accepted for step in steps], RIGHT) and not all(same(step.replaced, REST) for step in rejected):
        return "what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with"
    return None


def sum_hint(steps):
    accepted = np.array([step.accepted for step in steps])
    replaced = sum(step.q * (1 - step.accepted) * step.replaced for step in steps if step.replaced is not None)
    if same(Q * accepted + replaced, P):
        return None
    x = int(np.argmax(abs(accepted - RIGHT)))
    return (
        "what you accept and what you replace by do not add up to the target: min(p, q) + max(0, p - q) = p; with "
        f"p(x) = {P[x]:g} and q(x) = {Q[x]:g} you accept with {accepted[x]:.4g}, and min(1, p / q) = {RIGHT[x]:.4g}"
    )


# ------------------------------------------------------------------------------------------------ tables


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


def with_uniform(row, low, high):
    """The distribution of a draw from a row by its cumulative sum, with a uniform number from [low, high)."""
    edges = np.clip(np.concatenate([[0], np.cumsum(row)]), low, high)
    return np.diff(edges) / (high - low) if high > low else row


def new_number_each(row):
    """The distribution of a draw by the cumulative sum, with a new uniform number for each of its comparisons."""
    below = np.minimum(np.cumsum(row), 1)
    below[-1] = 1  # if none is found, the last
    return below * np.concatenate([[1], np.cumprod(1 - below)[:-1]])


NEARLY_RIGHT = (  # also of samplers
    "nearly right, off by {:.1g}: compute in float64 throughout, not in float32 (torch's default), and add no epsilon"
)
DRAWN_ONCE_MORE = "after a match that failed you drew once more; the draw that did not match is the token to keep"
MOST_PROBABLE = "you accept only the target's most probable token; that is right for temperature 0 alone"
NEW_NUMBERS = (
    "you draw a new uniform number for each step of the cumulative sum; a token is drawn with one number for all"
)
PROBABILITIES = "target_probs and draft.probs are probabilities already: apply no softmax, exp or temperature to them"
NORMALISE = "your residual is not normalised: divide max(0, p - q) by its sum before you draw"
WRONG_ACCEPTANCE = {  # the mistake: the probabilities [4] with which each draft token is accepted, or several such rows
    PROBABILITIES: np.minimum(1, [softmax(P) / softmax(Q), softmax(P) / Q, np.exp(P - Q), P / softmax(Q)]),
    "you never accept a draft token; accept a draft token x with probability min(1, p(x) / q(x))": np.zeros(4),
    "you accept with the square of the ratio, as two tests of one draft token do; "
    "accept with min(1, p / q), tested once": RIGHT**2,
    "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft": UPSIDE_DOWN,
    "you accept every draft token, whatever the target says; "
    "accept a draft token x with probability min(1, p(x) / q(x))": np.ones(4),
    MOST_PROBABLE: BEST,
    "you accept exactly if p(x) >= q(x); if p(x) is less, accept with probability p(x) / q(x)": P >= Q,
    "you accept where you should reject, and the other way round: accept if u < p / q": [
        1 - RIGHT,
        np.where(P > Q, 0, 1 - P / Q),
    ],
    "you accept where you should reject, with the ratio upside down: accept with probability min(1, p / q)": 1
    - UPSIDE_DOWN,
    "you accept a draft token x with the target's probability p(x) alone; "
    "divide by the draft's: min(1, p(x) / q(x))": P,
    "you accept a draft token x with the draft's probability q(x); it is min(1, p(x) / q(x))": Q,
    "you accept with probability min(p(x), q(x)), which is how often x is drafted and accepted; "
    "given that it is drafted, accept with min(1, p(x) / q(x))": np.minimum(P, Q),
    "you accept with probability p(x) - q(x); it is the ratio min(1, p(x) / q(x))": EXCESS,
    "you accept with probability |p(x) - q(x)|; it is the ratio min(1, p(x) / q(x))": abs(P - Q),
    "you accept with probability p / (p + q); it is min(1, p / q)": P / (P + Q),
    "you compare a uniform number with log p - log q; take its logarithm, too: log u < log p(x) - log q(x)": np.clip(
        np.log(P / Q), 0, 1
    ),
}


def wrong_residuals(x, after):
    """The mistake: the weights [4] of the replacement of a rejected token x, or several such rows."""
    missing = 1 - EXCESS.sum()
    return {
        "on a rejection you drew from the target; draw from max(0, p - q), normalised": P,
        "on a rejection you drew from the draft; draw from max(0, p - q), normalised": Q,
        "you drew from |p - q|; the residual keeps only where the target has more: max(0, p - q)": abs(P - Q),
        "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft": residual(Q, P),
        "you took the most probable token of the residual or of the target; draw from max(0, p - q), normalised": BEST,
        "the rejected token is returned anyway; draw from max(0, p - q), normalised": ONE_HOT[x],
        "you drew from the target without the rejected token, which is right for a one-hot draft alone; "
        "draw from max(0, p - q), normalised": P * (1 - ONE_HOT[x]),
        "you drew from min(p, q), what is accepted already; "
        "draw from what is missing, max(0, p - q), normalised": np.minimum(P, Q),
        "on a rejection you drew from all tokens with equal probability; draw from max(0, p - q), normalised": np.ones(
            4
        ),
        NORMALISE: [EXCESS + missing * ONE_HOT[3], EXCESS + missing * ONE_HOT[0]],  # the last, or the first, if none
        NEW_NUMBERS: [new_number_each(REST), new_number_each(EXCESS)],
        "the residual of draft token i is of row i of target and draft; "
        "yours takes the target's row after it, i + 1": residual(after, Q),
        "on a rejection you drew from the target's last row; draw from max(0, p - q) of row i": after,
        "you drew with equal probability from all tokens with p > q; their weights are max(0, p - q)": P > Q,
        "you drew from p / q; the residual is the difference max(0, p - q), normalised": P / Q,
        "you drew from p where it is more than q; the residual is the difference max(0, p - q), normalised": np.where(
            P > Q, P, 0
        ),
        PROBABILITIES: softmax(P),
        "you put a softmax over the residual; "
        "divide max(0, p - q) by its sum: these are probabilities, not logits": np.exp(EXCESS),
        "you put a softmax over p - q; the residual is max(0, p - q), divided by its sum": np.exp(P - Q),
    }


KINDS = {
    "zeros in p": "right, but not where the target has a token of probability 0: such a token must never be returned",
    "zeros in q": "right, but not where the draft has tokens of probability 0: these come only from the residual",
    "one-hot q": "right, but not where the draft is certain (one-hot rows): accept x with p(x), else draw from the "
    "rest",
    "one-hot p": "right, but not where the target is certain (temperature 0, one-hot rows): the text is the greedy one",
    "one-hot p and q": "right, but not where target and draft are certain (temperature 0, one-hot rows)",
    "equal": "right, but not where target and draft are equal: every draft token is accepted then, and max(0, p - q) "
    "is 0 / 0",
    "tie": "right, but not where p(x) = q(x) for the draft token x: it is accepted then, with probability 1",
    "disjoint": "right, but not where target and draft have no token in common: nothing is accepted then",
}


def kind_hint(failed):
    """Where only special distributions show the mistake."""
    if failed.K == 0:
        return "wrong where nothing is drafted (K = 0): the one token is then drawn from target_probs[0]"
    return KINDS.get(failed.kind)


def lists_hint(verifier):
    """Rows without their zeros, as lists of (token, probability), of which the i-th are subtracted from each other."""
    p, q = np.array([0, 0.45, 0.25, 0.3]), np.array([0.5, 0.1, 0.4, 0])
    wrong = np.maximum(p - np.array([0, 0.5, 0.1, 0.4]), 0)
    if same(Step(verifier, 2, p, q, P).replaced, wrong / wrong.sum()):
        return (
            "your residual subtracts the probabilities of different tokens: max(0, p - q) goes by token id, not by "
            "place in two lists that leave out the tokens of probability 0"
        )
    return None


# ------------------------------------------------------------------------------------------------ two draft tokens

P_2 = np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])  # rows that differ, with ratios on both sides of 1
Q_2 = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.25, 0.25, 0.5]])
RATIO = P_2 / Q_2
A, B = RATIO[0, 0], RATIO[1, 0]  # of the draft tokens 0, 0: both below 1
REST_2 = [residual(P_2[i], Q_2[i]) for i in range(2)]


class Two:
    """A verifier's behaviour on two draft tokens."""

    def __init__(self, verifier, *tokens):
        rows = np.zeros((3, 3))  # [n_accepted, next_token]
        for (accepted, next_token), share in decisions(verifier, tokens, Q_2[:2], P_2).items():
            rows[len(accepted), next_token] += share
        a, b = (min(1, RATIO[i, token]) for i, token in enumerate(tokens))
        self.is_by_rejection = same(rows, [(1 - a) * REST_2[0], a * (1 - b) * REST_2[1], a * b * P_2[2]])
        self.shares = rows.sum(axis=1)  # [n_accepted]
        self.next_token = [normalised(row) for row in rows]  # its distribution for each n_accepted, or None


def block_hint(verifier):
    """The mistake with two draft tokens; None if it decides on these two as rejection sampling does."""
    low, late, early = (Two(verifier, *tokens) for tokens in ((0, 0), (0, 2), (2, 0)))
    if low.is_by_rejection and late.is_by_rejection and early.is_by_rejection:
        return None
    return (
        mistake_in_block(verifier)
        or tests_hint(low, late, early)
        or rows_hint(low, early)
        or "right for K = 1, but not for a block of several draft tokens"
    )


def tests_hint(low, late, early):
    if same(low.shares[2], min(A, B)) and same(late.shares[2], A):
        return "one uniform number decides on several draft tokens; draw a new one for each"
    if same(low.shares[2], A**2):
        return (
            "right for K = 1 alone: draft token i is tested against row i of the target, not always against the first"
        )
    if same(low.shares, [(1 - A) * (1 - B), A * (1 - B) + (1 - A) * B, A * B]):
        return (
            "you count all draft tokens that pass; the first rejection ends the round, and what was drafted after it "
            "is dropped"
        )
    if same(low.shares[2], B) and same(early.shares[2], B):
        return (
            "you keep draft tokens after a rejected one; the first rejection ends the round, and those after it are "
            "dropped"
        )
    if low.shares[1] == late.shares[1] == early.shares[1] == 0:
        return "you accept all draft tokens or none; keep those before the first rejection, tested one by one"
    if same(low.shares[1:].sum(), A) and same(low.shares[2], A * B * A):
        return (
            "each draft token is tested with its own ratio p / q; yours is tested with the product of the ratios up "
            "to it"
        )
    return None


def rows_hint(low, early):
    """Where the acceptance is right, but the next token comes from a wrong row."""
    if not (same(low.shares, [1 - A, A * (1 - B), A * B]) and same(early.shares, [0, 1 - B, B])):
        return None
    if not same(low.next_token[2], P_2[2]):
        return "right for K = 1, but the bonus is not drawn from target_probs[k], the row after all k draft tokens"
    if same(low.next_token[0], P_2[2]) and same(low.next_token[1], P_2[2]):
        return "on a rejection you drew from the target's last row; draw from max(0, p - q) of the rejected token's row"
    differences = P_2[:2] - Q_2[:2]
    for added in (
        np.maximum(differences, 0).sum(axis=0),
        REST_2[0] + REST_2[1],
        np.maximum(differences.sum(axis=0), 0),
    ):
        if same(low.next_token[0], added / added.sum()) and same(low.next_token[1], added / added.sum()):
            return "your residual adds up all rows of the draft; take row i alone, that of the rejected token"
    if same(low.next_token[0], REST_2[0]) and same(low.next_token[1], REST_2[0]):
        return (
            "your residual is always that of the first row; take row i of target and draft, that of the rejected token"
        )
    if same(low.next_token[0], REST_2[1]):
        return (
            "your residual is that of the last drafted row; take row i of target and draft, that of the rejected token"
        )
    if not same(low.next_token[0], REST_2[0]) or not same(low.next_token[1], REST_2[1]):
        return (
            "right for K = 1, but in a block the replacement of draft token i is drawn from max(0, p - q) of another "
            "row than i"
        )
    return None


def case_hint(verifier, case):
    """The errors in the case that failed, token by token, compared with rejection sampling."""
    for tokens in itertools.product(range(case.n_vocab), repeat=case.K):
        p, q = (np.array([rows[tokens[:i]] for i in range(case.K + 1)]) for rows in (case.p, case.q))
        if not all(q[i, x] > 0 for i, x in enumerate(tokens)):
            continue
        distribution = decisions(verifier, tokens, q[:-1], p)
        for i, x in enumerate(tokens):
            tested, kept = (sum(share for (n, _), share in distribution.items() if len(n) >= k) for k in (i, i + 1))
            if tested > 0 and not same(kept / tested, right := min(1, p[i, x] / q[i, x])):
                return (
                    f"a draft token x with p(x) = {p[i, x]:.6g} and q(x) = {q[i, x]:.6g} is accepted with "
                    f"{kept / tested:.6g}; min(1, p / q) is {right:.6g}"
                )
    return (
        "the draft tokens are accepted as they should be, but the token after them is not drawn from the right "
        "distribution"
    )
