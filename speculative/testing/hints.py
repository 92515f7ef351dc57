"""What went wrong in a verifier, in a sentence: from how it decides on cases that are made to tell mistakes apart."""

import numpy as np

from ..exact import exact_law
from ..probs import residual
from .cases import Case, show


def story(verifier, case):
    """Lines that show a case: p and q of the first step, and what becomes of each token that can be drafted there."""
    lines = ["", f"  K = {case.K}, target p = {show(case.p[()])}"]
    if case.K:
        lines[-1] += f", draft q = {show(case.q[()])}"
    if case.K != 1:
        return lines
    for guess in np.flatnonzero(case.q[()]):
        accepted, replaced, _ = step(verifier, case, int(guess))
        by = f", replaced by a draw from {show(replaced)}" if replaced is not None else ""
        lines.append(f"  drafted token {guess}: accepted with probability {accepted:.6g}{by}")
    return lines


def step(verifier, case, guess):
    """For K = 1 and a drafted token: how often it is accepted, and the laws of its replacement and of the bonus."""
    law = exact_law(lambda rng: case.run(verifier, rng, [guess])[1:])
    rows = np.zeros((2, case.n_vocab))
    for (n_accepted, token), probability in law.items():
        rows[n_accepted, token] += probability
    totals = rows.sum(axis=1)
    replaced, bonus = (rows[n] / totals[n] if totals[n] > 0 else None for n in (0, 1))
    return totals[1], replaced, bonus


def same(a, b):
    return a is not None and np.allclose(a, b, rtol=0, atol=1e-9)


def diagnose(verifier, rng):
    """The mistake in a sentence, from how the verifier decides on cases made to tell mistakes apart."""
    case = Case(4, 1, "random", rng)
    case.p[()], case.q[()] = np.array([0.45, 0.3, 0.2, 0.05]), np.array([0.1, 0.15, 0.35, 0.4])
    p, q, steps = case.p[()], case.q[()], [step(verifier, case, guess) for guess in range(4)]
    return of_bonus(case, steps) or of_acceptance(p, q, steps) or of_residual(p, q, steps) or of_block(verifier)


def of_bonus(case, steps):
    for guess, (_, _, bonus) in enumerate(steps):
        wanted = case.p[(guess,)]
        if bonus is None or same(bonus, wanted):
            continue
        if same(bonus, np.eye(4)[wanted.argmax()]):
            return "you took the likeliest token as the bonus; draw it from the target's last row"
        if same(bonus, case.q[()]):
            return "you drew the bonus from the draft; draw it from the target's last row"
        if same(bonus, case.p[()]):
            return "you drew the bonus from the row of the last guess; the row behind all guesses is target_probs[k]"
        return "when all guesses are accepted, the bonus is drawn from the target's last row as it is"
    return None


def of_acceptance(p, q, steps):
    accepted = [accepted for accepted, _, _ in steps]
    if same(accepted, np.minimum(1, p / q)):
        return None
    if all(same(replaced, p) or replaced is None for _, replaced, _ in steps) and same(accepted, p):
        return "after a match that failed you drew once more; the draw that did not match is the token to keep"
    if same(accepted, np.minimum(1, q / p)):
        return "you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft"
    if same(accepted, np.eye(4)[p.argmax()]):
        return "you accept only the target's likeliest token; that is right for temperature 0 alone"
    if all(share in (0, 1) for share in accepted):
        return "whether a guess is accepted must be drawn with rng: here it is certain, one way or the other"
    return None


def of_residual(p, q, steps):
    wrongs = {
        "on a rejection you drew from the target; draw from max(0, p - q), normalised": lambda x: p,
        "on a rejection you drew from the draft; draw from max(0, p - q), normalised": lambda x: q,
        "you drew from |p - q|; the residual keeps only where the target has more: max(0, p - q)": lambda x: abs(p - q),
        "your residual is the wrong way round; it is max(0, p - q), p the target and q the draft": lambda x: residual(
            q, p
        ),
        "you took the likeliest token of the residual; draw from it": lambda x: np.eye(4)[(p - q).argmax()],
        "you drew from the target without the rejected token, which is right for a one-hot draft alone; "
        "draw from max(0, p - q), normalised": lambda x: p * (np.arange(4) != x),
    }
    rejected = [(x, replaced) for x, (_, replaced, _) in enumerate(steps) if replaced is not None]
    for hint, wrong in wrongs.items():
        if rejected and all(same(replaced, wrong(x) / wrong(x).sum()) for x, replaced in rejected):
            return hint
    gaps = [abs(replaced - residual(p, q)).max() for _, replaced in rejected]
    if gaps and 1e-13 < max(gaps) < 1e-5:
        return f"your residual is off by {max(gaps):.1g}: add no epsilon to max(0, p - q), and compute in float64"
    accepted = np.array([share for share, _, _ in steps])
    if gaps and max(gaps) > 1e-5 and same(accepted, np.minimum(1, p / q)):
        return "what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with"
    law = q * accepted + sum(q[x] * (1 - accepted[x]) * replaced for x, replaced in rejected)
    if not same(law, p):
        return "what you accept and what you replace by do not add up to the target: min(p, q) + max(0, p - q) = p"
    return None


def of_block(verifier):
    """Mistakes that K = 1 hides: what becomes of two guesses whose ratios p / q lie on both sides of 1."""
    case = Case(3, 2, "random", np.random.default_rng(0))
    p, q = np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5]]), np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]])
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = p[len(tokens) % 2], q[len(tokens) % 2]
    ratio = p / q

    def all_accepted(*guesses):
        return exact_law(lambda rng: case.run(verifier, rng, guesses)[1]).get(2, 0)

    if same(all_accepted(0, 0), ratio[:, 0].min()):
        return "one uniform number decides on several guesses; draw a new one for each"
    if same(all_accepted(0, 0), ratio[0, 0] ** 2):
        return "right for K = 1 alone: guess i is tested against row i of the target, not always against the first"
    excess = np.maximum(ratio[0, 0] * p[1] - q[1], 0).sum()
    if same(all_accepted(0, 2), excess / (excess + 1 - ratio[0, 0])):
        return "block verification keeps the longest beginning that passes; do not stop at the first that does not"
    if same(all_accepted(2, 0), ratio[0, 2] * ratio[1, 0]):
        return "block verification holds the ratio of the whole beginning at 1 at most, in each step"
    if same(all_accepted(0, 2), 1):  # a rule that looks at the block
        law = exact_law(lambda rng: case.run(verifier, rng, (0, 0))[1:])
        replaced = np.array([law.get((1, token), 0) for token in range(3)])
        if replaced.any() and same(replaced / replaced.sum(), residual(p[1], q[1])):
            return "after block verification the residual is max(0, p-hat p - q), with the ratio p-hat of what is kept"
    return "right for K = 1, but not for a block of several guesses"
