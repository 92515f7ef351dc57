"""Mistakes in verifiers: verifiers.txt lists edits of `chain`, or of the library's rejection, block and traversal.

Below are the right program, the functions that edits call, and the mistakes that are too large for an edit. p is the
target's distribution and q the draft's, both [n_vocab].
"""

from pathlib import Path

import numpy as np

from ...interfaces import Draft, Verdict
from ...logits.probs import residual, sample_token
from ...theory.candidates import k_seq_divisor
from ...verifiers.block import block
from ...verifiers.rejection import rejection
from ...verifiers.traversal import traversal
from ...verifiers.typical import Typical
from .edits import read


def chain(draft, target_probs, rng):
    """Rejection sampling of a chain, the right program."""
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[x] < p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


# ------------------------------------------------------------------------------------------------ called by edits


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


def most_probable(n, row):
    return np.where(row >= np.sort(row)[-n:][0], row, 0)


def new_number_each(weights, rng):
    """A cumulative sum with a new uniform number for each step."""
    return next((i for i, c in enumerate(np.cumsum(weights)[:-1]) if rng.random() < c), len(weights) - 1)


class Repeated:
    """A random source that always returns the same number."""

    def __init__(self, number):
        self.random = lambda: number


def by_place(p, q):
    """The residual of two lists of the tokens with positive probability, paired by their places in the lists."""
    kept, drafted = np.flatnonzero(p), np.flatnonzero(q)[: np.count_nonzero(p)]
    rest = p.copy()
    rest[kept[: len(drafted)]] -= q[drafted]
    rest = np.maximum(rest, 0)
    return rest / rest.sum() if rest.any() else p


def eldest(draft, child):
    """The first of the siblings of this node."""
    return draft.children(draft.parents[child])[0]


def is_last(draft, child):
    """Whether the node is the last of several siblings."""
    siblings = draft.children(draft.parents[child])
    return len(siblings) > 1 and child == siblings[-1]


def without_elder(draft, child):
    """The row of the eldest sibling without the tokens of this node's elder siblings."""
    siblings = draft.children(draft.parents[child])
    row = draft.probs[siblings[0]].copy()
    row[draft.tokens[siblings[: siblings.index(child)]]] = 0
    return row / row.sum() if row.any() else draft.probs[child]


# ------------------------------------------------------------------------------------------------ programs

typical = Typical()


def goes_on(counts):
    """Also tests draft tokens after a rejected one; `counts` turns the list of passes (bool) into a number to keep."""

    def verifier(draft, rows, rng):
        passed = [rng.random() * q[x] < p[x] for x, p, q in zip(draft.tokens, rows, draft.probs)]
        n = counts(passed)
        return Verdict(n, sample_token(rows[n] if n == len(passed) else residual(rows[n], draft.probs[n]), rng))

    verifier.part = "accept"
    return verifier


counts_all_that_pass = goes_on(sum)
keeps_up_to_the_last = goes_on(lambda passed: max((i + 1 for i, one in enumerate(passed) if one), default=0))


def k_seq(divisor):
    """k-SEQ (theory/candidates.py) with this divisor."""

    def verifier(draft, rows, rng):
        node, accepted = -1, []
        while below := draft.children(node):
            p, q, k = rows[node + 1], draft.probs[below[0]], len(below)
            rho = divisor(p, q, k)
            node = next((n for n in below if rng.random() * rho * q[draft.tokens[n]] < p[draft.tokens[n]]), None)
            if node is None:
                kept = np.minimum(p / rho, q)
                missed = 1 - (1 - kept.sum()) ** k
                rest = np.maximum(p - kept * missed / kept.sum(), 0) if kept.any() else p
                return Verdict(accepted, sample_token(rest if rest.any() else p, rng))
            accepted.append(node)
        return Verdict(accepted, sample_token(rows[node + 1], rng))

    verifier.trees, verifier.part = True, "all"
    return verifier


k_seq_for_all = k_seq(k_seq_divisor)
k_seq_with_rho_1 = k_seq(lambda p, q, k: 1.0)


def paths_apart(draft, rows, rng):
    """Verifies each path on its own, and keeps the longest."""

    def paths(node):
        below = draft.children(node)
        return [[child, *rest] for child in below for rest in paths(child)] if below else [[]]

    best = None
    for path in paths(-1):
        verdict = rejection(Draft(draft.tokens[path], draft.probs[path]), rows[[0, *(node + 1 for node in path)]], rng)
        if best is None or verdict.n_accepted > len(best[0]):
            best = path[: verdict.n_accepted], verdict.next_token
    return Verdict(*best)


paths_apart.trees = True


def leaves_an_accepted_node(decisions):
    """Whether the second sibling's path is taken where the first is always accepted (the probes of trees)."""
    taken = [nodes for nodes, _ in decisions[3] if nodes[:1] == (2,)]
    return {nodes for nodes, _ in decisions[2]} == {(0,)} and bool(taken) and min(map(len, taken)) > 1


PROGRAMS = {"chain": chain, "rejection": rejection, "block": block, "traversal": traversal}
SECTIONS = read(Path(__file__).with_suffix(".txt"), PROGRAMS, globals())
WHOLE, ACCEPT, REST, BONUS, NONE_OF_ALL, SEVERAL, BLOCK, TREES, OTHERWISE = SECTIONS.values()
CHAINS = [*WHOLE, *ACCEPT, *REST, *BONUS, *SEVERAL, *BLOCK, *OTHERWISE]
