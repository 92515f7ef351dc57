"""The parts of a record: what became of each draft token, and of the token after them.

A tree is recorded in the order in which its tokens were tested: at each place the siblings up to the accepted one, then
the untested rest. In a chain that is the order of the draft.
"""

import numpy as np

from ..probs import residual
from ..tree import is_chain

N_TOP, N_RESIDUAL = 8, 5


def decided(step):
    """(tested, others) of a `Round`: {draft token: "accepted" or "rejected"} in order, and the indices of the rest."""
    accepted = list(step.nodes)
    if len(step.tokens) > step.n_accepted:
        accepted.append(None)  # another place was tested, and nothing accepted there
    tested = {}
    for above, node in zip([-1, *accepted], accepted):
        for child in step.children(above):
            tested[child] = "accepted" if child == node else "rejected"
            if child == node:
                break
    return tested, [node for node in range(len(step.drafted)) if node not in tested]


def guesses_of(step, decode):
    """The records of the draft tokens of a `Round`, without their texts."""
    tested, others = decided(step)
    rows = rows_of(step) if step.target_probs is not None else {}
    order = [*tested, *others]
    of_guesses, _ = uniforms_of(step)
    guesses = []
    for node in order:
        token = int(step.drafted[node])
        guess = {"token": token, "text": "", "decision": tested.get(node, "dropped"), "u": of_guesses.get(node)}
        if not is_chain(step.parents):
            parent = int(step.parents[node])
            guess["parent"] = order.index(parent) if parent >= 0 else -1
        if rows:
            p, q = rows[node]
            likely = largest(np.maximum(p, q), N_TOP, token)
            after = residual(p, q)
            guess |= {
                "p": float(p[token]), "q": float(q[token]), "overlap": float(np.minimum(p, q).sum()),
                "top": [[x, decode([x]), float(p[x]), float(q[x])] for x in likely],
                "residual": [[x, decode([x]), float(after[x])] for x in largest(after, N_RESIDUAL)],
            }  # fmt: skip
        guesses.append(guess)
    return guesses


def rows_of(step):
    """{draft token: (p, q)}: q as it was drawn from, p as rejection sampling tests it.

    For the first child of a place p is the target's distribution, for each further one what the rejection of its elder
    siblings leaves of it, the residual.
    """
    rows = {}
    for above in range(-1, len(step.drafted)):
        p = step.target_probs[above + 1]
        for child in step.children(above):
            rows[child] = p, step.draft_probs[child]
            p = residual(*rows[child])
    return rows


def next_of(step, decode):
    """The record of the token after the accepted ones, or None."""
    if len(step.tokens) == step.n_accepted:
        return None
    token = int(step.tokens[-1])
    record = {"token": token, "text": decode([token]), "origin": step.origins[-1], "u": uniforms_of(step)[1]}
    if step.target_probs is not None:
        p = step.target_probs[[-1, *step.nodes][-1] + 1]
        record |= {"p": float(p[token]), "top": [[x, decode([x]), float(p[x])] for x in largest(p, N_TOP, token)]}
    return record


def uniforms_of(step):
    """({draft token: the number that decided on it}, the number that drew the last token or None).

    The rules of this library draw one number for each draft token that they test: up to the first rejection
    (rejection), or all of them (block). Most draw one more for the token that follows. If the count fits neither case,
    the second result is None. In a tree the numbers are assigned only if they explain every decision.
    """
    numbers, k = flat(step.uniforms), len(step.drafted)
    if not is_chain(step.parents):
        return uniforms_of_tree(step, numbers)
    n_tested = min(step.n_accepted + 1, k)
    fits = len(numbers) in (n_tested + 1, k + 1)
    n_decided = len(numbers) - 1 if fits else n_tested
    return dict(enumerate(numbers[:n_decided])), numbers[-1] if fits else None


def uniforms_of_tree(step, numbers):
    """`uniforms_of` for rejection sampling over a tree; nothing for another rule."""
    tested, _ = decided(step)
    if step.target_probs is None or len(numbers) != len(tested) + 1:
        return {}, None
    rows = rows_of(step)
    for (node, decision), number in zip(tested.items(), numbers):
        (p, q), token = rows[node], step.drafted[node]
        if (number * q[token] < p[token]) != (decision == "accepted"):
            return {}, None
    return dict(zip(tested, numbers)), numbers[-1]


def flat(uniforms):
    """The numbers [n] as floats; a rule may draw several at once."""
    return [float(number) for drawn in uniforms for number in np.ravel(drawn)]


def largest(values, n, also=None):
    """The indices of the n largest positive values [n_vocab], largest first, and the index `also` if it is missing."""
    n = min(n, len(values))
    some = np.argpartition(-values, n - 1)[:n]
    some = some[values[some] > 0]
    found = some[np.argsort(-values[some], kind="stable")].tolist()
    return found if also is None or also in found else [*found, also]
