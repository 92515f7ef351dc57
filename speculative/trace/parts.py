"""The parts of a record: what became of each draft token, and of the token after them.

Draft tokens are recorded in the order in which they were tested: at each position the siblings up to the accepted one,
then the untested rest. In a chain that is the order of the draft.
"""

import numpy as np

from ..probs import residual

N_TOP, N_RESIDUAL = 8, 5


def decisions(step):
    """{draft token: "accepted", "rejected" or "dropped"} of a `Round`, in the order of the tests."""
    reached = [-1, *step.nodes]  # the text, and each accepted draft token: what follows it was tested
    if len(step.tokens) == step.n_accepted:
        reached.pop()  # but the text ended with the last of them
    found = {}
    for node, accepted in zip(reached, [*step.nodes, None]):
        for child in step.draft.children(node):
            found[child] = "accepted" if child == accepted else "rejected"
            if child == accepted:
                break
    return found | {node: "dropped" for node in range(len(step.drafted)) if node not in found}


def drafted_of(step, decode):
    """The records of the draft tokens of a `Round`, without their texts."""
    decided, (deciding, _) = decisions(step), uniforms_of(step)
    above = {child: node for node in range(-1, len(step.drafted)) for child in step.draft.children(node)}
    index = {node: i for i, node in enumerate([-1, *decided], -1)}
    rows = rows_of(step) if step.target_probs is not None else {}
    records = []
    for node, decision in decided.items():
        token = int(step.drafted[node])
        record = {
            "token": token, "text": "", "parent": index[above[node]], "decision": decision, "u": deciding.get(node),
        }  # fmt: skip
        if rows:
            p, q = rows[node]
            likely, rest = largest(np.maximum(p, q), N_TOP, token), residual(p, q)
            record |= {
                "p": float(p[token]), "q": float(q[token]), "overlap": float(np.minimum(p, q).sum()),
                "top": [[x, decode([x]), float(p[x]), float(q[x])] for x in likely],
                "residual": [[x, decode([x]), float(rest[x])] for x in largest(rest, N_RESIDUAL)],
            }  # fmt: skip
        records.append(record)
    return records


def rows_of(step):
    """{draft token: (p, q)}: q as it was drawn from, p as rejection sampling tests it.

    For the first child of a node p is the target's distribution, for each further one what the rejection of its elder
    siblings leaves of it, the residual.
    """
    rows = {}
    for above in range(-1, len(step.drafted)):
        p = step.target_probs[above + 1]
        for child in step.draft.children(above):
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

    A round has the numbers, but not their purposes. Rejection sampling draws one for each token that it tests, block
    verification one for each draft token, and both one more for the token that follows; exact_match draws each token
    until one differs. Other rules draw otherwise in a tree, so there the numbers have to explain every decision.
    """
    numbers, decided = flat(step.uniforms), decisions(step)
    tested = {node: decision for node, decision in decided.items() if decision != "dropped"}
    if step.draft.depth < len(step.drafted) and not explains(step, tested, numbers):
        return {}, None
    for some in (tested, decided):
        if len(numbers) == len(some) + 1:
            return dict(zip(some, numbers)), numbers[-1]
    return dict(zip(tested, numbers)), None


def explains(step, tested, numbers):
    """Whether rejection sampling with these numbers would have decided as it was decided."""
    if step.target_probs is None or len(numbers) != len(tested) + 1:
        return False
    rows = rows_of(step)
    tests = [(u, *rows[node], step.drafted[node], decision) for u, (node, decision) in zip(numbers, tested.items())]
    return all((u * q[token] < p[token]) == (decision == "accepted") for u, p, q, token, decision in tests)


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
