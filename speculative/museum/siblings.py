"""Verifiers with a mistake among siblings, the draft tokens for one place. p is of the target, q of the draft."""

import numpy as np

from ..probs import residual, sample_token
from .verifiers import CONSTRUCTED


class Walk:
    """A verifier that walks down the tree; `choose` decides at a node, and `bonus` is the row after a leaf."""

    trees = True

    def __call__(self, draft, target_probs, rng):
        node, accepted = -1, []  # -1: the text
        while True:
            p, children = target_probs[node + 1], draft.children(node)
            if accepted and not children:
                p = self.bonus(p, target_probs)
            node, row = self.choose(p, [(c, draft.tokens[c], draft.probs[c]) for c in children], rng)
            if node is None:
                return draft.verdict(accepted, sample_token(row, rng))
            accepted.append(node)

    def choose(self, p, children, rng):
        """(accepted child or None, the row of the next token); children are (node, token x, row q)."""
        return in_turn(p, children, rng)

    def bonus(self, p, target_probs):
        return p


def in_turn(p, children, rng):
    """The right rule: after each rejection the residual takes p's place."""
    for node, x, q in children:
        if rng.random() * q[x] < p[x]:
            return node, None
        p = residual(p, q)
    return None, p


class UnchangedRow(Walk):
    def choose(self, p, children, rng):
        return in_turn(p, [(node, x, children[0][2]) for node, x, _ in children], rng)


class ResidualOfFullRow(Walk):
    def choose(self, p, children, rng):
        for node, x, q in children:
            if rng.random() * q[x] < p[x]:
                return node, None
            p = residual(p, children[0][2])
        return None, p


class StaleTarget(Walk):
    def choose(self, p, children, rng):
        for node, x, q in children:
            if rng.random() * q[x] < p[x]:
                return node, None
        return None, residual(p, children[0][2]) if children else p


class NotRenormalised(Walk):
    def choose(self, p, children, rng):
        for node, x, q in children:
            if rng.random() * q[x] < p[x]:
                return node, None
            p = np.maximum(p - q, 0) if (p > q).any() else p
        return None, p


class DuplicatesSkipped(Walk):
    def choose(self, p, children, rng):
        first = {x: node for node, x, _ in reversed(children)}
        return in_turn(p, [child for child in children if child[0] in first.values()], rng)


class OneCoin(Walk):
    def choose(self, p, children, rng):
        u = rng.random()
        for node, x, q in children:
            if u * q[x] < p[x]:
                return node, None
            p = residual(p, q)
        return None, p


class DrawsForEachSibling(Walk):
    def choose(self, p, children, rng):
        return next((node for node, x, _ in children if sample_token(p, rng) == x), None), p


class RunningSum(Walk):
    def choose(self, p, children, rng):
        u, total, rest = rng.random(), 0.0, p.copy()
        for node, x, _ in children:
            total += p[x]
            if u < total:
                return node, None
            rest[x] = 0
        return None, rest if rest.any() else p


I_I_D, DISTINCT, LIKELIEST = "drawn independently", "drawn without replacement", "the likeliest"
PAIR = (-1, -1)
EXHIBITS = {  # name: (verifier, (how siblings are drawn, parents) of the toy case, what is wrong, seen, message)
    "unchanged q for every sibling": (
        UnchangedRow(), (DISTINCT, PAIR),
        "Siblings drawn without replacement are tested with the row of the first. Setting q(x) = 0 without "
        "renormalising is the same mistake.",
        CONSTRUCTED,
        "every sibling is tested against the row of the first",
    ),
    "residual with the full q": (
        ResidualOfFullRow(), (DISTINCT, PAIR),
        "Each sibling is tested with its own row, but the residual takes away q without renormalisation.",
        CONSTRUCTED,
        "each sibling is tested with its own row, but the residual",
    ),
    "stale p for siblings": (
        StaleTarget(), (I_I_D, PAIR),
        "Every sibling meets the target's own row, and the residual is taken once at the end.",
        "verifyDynamicTreeRejectionKernel in https://github.com/NVIDIA/TensorRT-LLM/blob/HEAD/"
        "cpp/tensorrt_llm/kernels/speculativeDecoding/dynamicTreeKernels.cu",
        "every sibling is tested against the target's own row",
    ),
    "residual not renormalised between siblings": (
        NotRenormalised(), (I_I_D, PAIR),
        "max(0, p - q) is used in the next test without division by its sum.",
        CONSTRUCTED,
        "the residual is not renormalised before the next sibling",
    ),
    "duplicates skipped": (
        DuplicatesSkipped(), (I_I_D, PAIR),
        "A sibling with a token that was rejected before is left out. It is always rejected, but must be subtracted.",
        CONSTRUCTED,
        "a sibling with a token that was rejected already is skipped",
    ),
    "one coin for all siblings": (
        OneCoin(), (DISTINCT, PAIR),
        "One uniform number decides on all siblings. A rejection says that it was large, so the next test is biased.",
        CONSTRUCTED,
        "one uniform number decides on all siblings",
    ),
    "the target's draw for every sibling": (
        DrawsForEachSibling(), (LIKELIEST, PAIR),
        "The target's token is drawn again for each sibling, and once more if none matches.",
        "get_nucleus_posterior_mask in https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py",
        "after a match that failed you drew once more",
    ),
    "duplicates counted twice": (
        RunningSum(), (I_I_D, PAIR),
        "A coin is compared with the running sum of the siblings' p, and a token that appears twice counts twice.",
        CONSTRUCTED,
        "siblings with the same token are counted twice",
    ),
}  # fmt: skip
