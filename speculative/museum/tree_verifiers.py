"""Verifiers of trees with a mistake: choices after the draws, thresholds, the bonus, several places."""

import numpy as np

from ..interfaces import Draft
from ..probs import residual, sample_token
from ..theory.candidates import k_seq_divisor
from ..verifiers.rejection import rejection
from ..verifiers.typical import entropy
from .siblings import DISTINCT, I_I_D, LIKELIEST, PAIR, Walk
from .verifiers import CONSTRUCTED


class KSeq(Walk):
    """k-SEQ, with the right rho; the siblings must be drawn independently from one row."""

    def choose(self, p, children, rng):
        if not children:
            return None, p
        q, k = children[0][2], len(children)
        rho = self.divisor(p, q, k)
        for node, x, _ in children:
            if rng.random() * rho * q[x] < p[x]:
                return node, None
        kept = np.minimum(p / rho, q)
        missed = 1 - (1 - kept.sum()) ** k
        rest = np.maximum(p - kept * missed / kept.sum(), 0) if kept.any() else p
        return None, rest if rest.any() else p

    def divisor(self, p, q, k):
        return k_seq_divisor(p, q, k)


class KSeqWithOne(KSeq):
    def divisor(self, p, q, k):
        return 1.0


def paths_apart(draft, target_probs, rng):
    def paths(node):
        below = draft.children(node)
        return [[child, *rest] for child in below for rest in paths(child)] if below else [[]]

    best = None
    for path in paths(-1):
        chain = Draft(draft.tokens[path], draft.probs[path])
        verdict = rejection(chain, target_probs[[0, *(node + 1 for node in path)]], rng)
        if best is None or verdict.n_accepted > len(best[0]):
            best = path[: verdict.n_accepted], verdict.next_token
    return draft.verdict(*best)


paths_apart.trees = True


def typical_tree(draft, target_probs, rng):
    node, accepted = -1, []
    while True:
        p = target_probs[node + 1]
        threshold = min(0.09, 0.3 * np.exp(-entropy(p)))
        node = next((child for child in draft.children(node) if p[draft.tokens[child]] > threshold), None)
        if node is None:
            return draft.verdict(accepted, int(p.argmax()))
        accepted.append(node)


typical_tree.trees = True


class BonusAtTemperatureOne(Walk):
    def bonus(self, p, target_probs):
        return np.sqrt(p) / np.sqrt(p).sum()  # undoes the temperature 0.5 of p


class BonusOfLastNode(Walk):
    def bonus(self, p, target_probs):
        return target_probs[-1]


class AcceptsAtEquality(Walk):
    def choose(self, p, children, rng):
        for node, x, q in children:
            if rng.random() * q[x] <= p[x]:
                return node, None
            p = residual(p, q)
        return None, p


class ResidualByListIndex(Walk):
    def choose(self, p, children, rng):
        for node, x, q in children:
            if rng.random() * q[x] < p[x]:
                return node, None
            kept, drafted = np.flatnonzero(p), np.flatnonzero(q)[: np.count_nonzero(p)]
            rest = p.copy()
            rest[kept[: len(drafted)]] -= q[drafted]  # the i-th of one list and the i-th of the other
            rest = np.maximum(rest, 0)
            p = rest / rest.sum() if rest.any() else p
        return None, p


def traversal_with_stale_share(draft, target_probs, rng):
    def visit(node, share, above):
        p, mass = target_probs[node + 1], None
        for child in draft.children(node):
            x, q = draft.tokens[child], draft.probs[child]
            if found := visit(child, min(share * p[x] / q[x], 1.0), (*above, child)):
                return found
            mass, p = np.maximum(share * p - q, 0).sum(), residual(share * p, q)
        if mass is not None and share < 1:
            share = mass / (mass + 1 - share)
        return (above, p) if node < 0 or rng.random() < share else None

    accepted, p = visit(-1, 1.0, ())
    return draft.verdict(accepted, sample_token(p / p.sum(), rng))


traversal_with_stale_share.trees = True


EXHIBITS = {  # name: (verifier, (how siblings are drawn, parents) of the toy case, what is wrong, seen, message)
    "k-SEQ with rho = 1": (
        KSeqWithOne(), (I_I_D, PAIR),
        "k-SEQ without its divisor rho: what remains to be drawn becomes negative.",
        CONSTRUCTED,
        "k-SEQ with rho = 1",
    ),
    "k-SEQ on draws without replacement": (
        KSeq(), (DISTINCT, PAIR),
        "k-SEQ is exact for siblings drawn independently from one row, and for no others.",
        CONSTRUCTED,
        "right for siblings drawn independently from one row",
    ),
    "best of several chains": (
        paths_apart, (I_I_D, PAIR),
        "Every path is verified on its own, and the longest accepted one is kept: a choice after the draws.",
        CONSTRUCTED,
        "each path is verified on its own and the longest is kept",
    ),
    "typical acceptance in a tree": (
        typical_tree, (LIKELIEST, PAIR),
        "LOSSY on purpose: draft tokens above a threshold of p pass, and nothing is drawn.",
        "https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py",
        "your verifier draws nothing from rng, and accepts every draft token above a threshold",
    ),
    "bonus at temperature 1": (
        BonusAtTemperatureOne(), (LIKELIEST, PAIR),
        "After an accepted leaf the bonus is drawn from the softmax of the raw logits, without temperature and top-p.",
        "sample_p in https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/utils.py",
        "the bonus is drawn at another temperature than its row",
    ),
    "bonus from the last node": (
        BonusOfLastNode(), (LIKELIEST, PAIR),
        "The bonus comes from the last row of the call, which is that of the last node, not of the accepted leaf.",
        CONSTRUCTED,
        "the bonus is drawn from the row of the last node",
    ),
    "accepted at equality in a tree": (
        AcceptsAtEquality(), (I_I_D, PAIR),
        "p >= u q with u in half precision, which is 0 once in some thousand draws: tokens of probability 0 pass.",
        "accept_step in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecInferTree.py",
        "a token of target probability 0 passes",
    ),
    "residual by place in a list": (
        ResidualByListIndex(), (LIKELIEST, PAIR),
        "p and q are lists of the tokens that top-k left; the residual is taken by place in the lists, not by token.",
        "https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp",
        "your residual subtracts the probabilities of different tokens",
    ),
    "traversal with a stale share": (
        traversal_with_stale_share, (I_I_D, (-1, 0, 0)),
        "In traversal verification a node's share is updated after its last child only, not after each.",
        CONSTRUCTED,
        "in traversal verification each rejected child changes",
    ),
}  # fmt: skip
