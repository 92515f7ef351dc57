"""Verifiers with a mistake, first of chains and then of trees. p is the target's distribution, q the draft's."""

from functools import partial, update_wrapper

import numpy as np

from ..interfaces import Draft, Verdict
from ..logits.probs import residual, sample_token
from ..theory.candidates import k_seq_divisor
from ..verifiers.rejection import rejection
from ..verifiers.typical import entropy
from .engines import MASKED


def passes(u, p, q):
    """The right test of a draft token with the probabilities p and q; u is uniform."""
    return u * q < p


def rejection_with(draft, target_probs, rng, rest=residual, bonus=lambda draft, rows: rows[-1], passes=passes):
    """`rejection` with another residual, bonus or test; most of the mistakes below are written with it."""
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not passes(rng.random(), p[token], q[token]):
            return Verdict(i, sample_token(rest(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(bonus(draft, target_probs), rng))


def residual_from_target(draft, target_probs, rng):
    """A rejected token is replaced by a draw from p. But min(p, q) was accepted already: draw from max(0, p - q).

    Seen: skip_sample_adjustment in
    https://github.com/romsto/Speculative-Decoding/blob/HEAD/sampling/speculative_decoding.py
    """
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: p)


def residual_not_clipped(draft, target_probs, rng):
    """The residual is |p - q|: it brings back tokens that the draft proposes too often."""
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: np.abs(p - q) if (p != q).any() else p)


def residual_upside_down(draft, target_probs, rng):
    """The residual is max(0, q - p): p and q are swapped. Leviathan et al. write p for the target, Chen et al. q."""
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: residual(q, p))


def ratio_upside_down(draft, target_probs, rng):
    """Accepts with min(1, q / p): p and q are swapped. Leviathan et al. write p for the target, Chen et al. q."""
    return rejection_with(draft, target_probs, rng, passes=lambda u, p, q: passes(u, q, p))


def residual_by_softmax(draft, target_probs, rng):
    """max(0, p - q) goes through a softmax, which gives every token a share. Divide it by its sum.

    Seen: https://github.com/huggingface/transformers/pull/28508 (before it)
    """

    def softmax(row):
        return np.exp(row) / np.exp(row).sum()

    return rejection_with(draft, target_probs, rng, rest=lambda p, q: softmax(np.maximum(p - q, 0)))


def residual_with_temperature_twice(draft, target_probs, rng):
    """The temperature is applied a second time in the residual.

    Seen: https://github.com/OptimalScale/LMFlow/issues/920 (a second time to all rows)
    """

    def again(p):
        return p**2 / (p**2).sum()  # temperature 0.5 on top of the temperature that p already has

    return rejection_with(draft, target_probs, rng, rest=lambda p, q: residual(again(p), again(q)))


def residual_with_epsilon(draft, target_probs, rng):
    """1e-8 is added against a division by zero, so tokens of residual 0 are drawn. If the mass is 0, take p."""
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: np.maximum(p - q, 0) + 1e-8)


def residual_in_place(draft, target_probs, rng):
    """p -= q writes into the target's rows, which others still read. The distribution of this round is right.

    Seen: https://github.com/NJUNLP/MCSD/issues/5 (a reader's question)
    """

    def subtracted(p, q):
        p -= q
        return np.maximum(p, 0, out=p)

    return rejection_with(draft, target_probs, rng, rest=subtracted)


def bonus_from_the_row_before(draft, target_probs, rng):
    """If all draft tokens pass, the bonus is drawn from the row of the last one. Row j predicts token j + 1."""
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: rows[max(0, len(draft.tokens) - 1)])


def bonus_by_argmax(draft, target_probs, rng):
    """The bonus is the most probable token, at any temperature.

    Seen: https://github.com/shreyansh26/Speculative-Decoding/blob/HEAD/common/verification.py
    """
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: np.eye(len(rows[-1]))[rows[-1].argmax()])


def bonus_from_draft(draft, target_probs, rng):
    """The bonus is drawn from the draft's last row."""
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: [rows[0], *draft.probs][-1])


def accept_at_equality(draft, target_probs, rng):
    """u <= p / q: if u is 0, a token of target probability 0 passes. A float32 u is 0 once in 16 million draws.

    Seen: https://github.com/pytorch/pytorch/issues/16706, for which vLLM draws its uniforms in float64
    """
    return rejection_with(draft, target_probs, rng, passes=lambda u, p, q: u <= p / q)


def drawn_again_after_mismatch(draft, target_probs, rng):
    """Sample and match, but after a mismatch another token is drawn: draft tokens get a second chance.

    Seen: https://github.com/romsto/Speculative-Decoding/blob/HEAD/ngram_assisted/ngram_assisted.py
    """
    for i, token in enumerate(draft.tokens):
        if sample_token(target_probs[i], rng) != token:
            return Verdict(i, sample_token(target_probs[i], rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def one_uniform_for_all(draft, target_probs, rng):
    """One uniform number decides on the whole draft: later tokens are accepted because the first was.

    Seen: https://github.com/feifeibear/LLMSpeculativeSampling/pull/19
    """
    u = rng.random()
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not u * q[token] < p[token]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def first_row_for_all(draft, target_probs, rng):
    """Every draft token is tested against the first row. With K = 1 that is right, so a test with K = 1 passes."""
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[0], draft.probs[0]
        if not rng.random() * q[token] < p[token]:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def block_with(draft, target_probs, rng, stop_at_first=False, at_most=1.0, plain_residual=False):
    """`verifiers.block`, with one of its three conditions left out."""
    joint, joint_kept, n_accepted, k = 1.0, 1.0, 0, len(draft.tokens)
    for i, token in enumerate(draft.tokens):
        joint = min(joint * target_probs[i, token] / draft.probs[i, token], at_most)
        passes = min(joint, 1.0)
        if i + 1 < k and joint < 1:
            excess = np.maximum(joint * target_probs[i + 1] - draft.probs[i + 1], 0).sum()
            passes = excess / (excess + 1 - joint)
        if rng.random() < passes:
            n_accepted, joint_kept = i + 1, joint
        elif stop_at_first:
            break
    if n_accepted == k:
        return Verdict(k, sample_token(target_probs[k], rng))
    scale = 1.0 if plain_residual else joint_kept
    return Verdict(n_accepted, sample_token(residual(scale * target_probs[n_accepted], draft.probs[n_accepted]), rng))


def block_stopped_at_first_failure(draft, target_probs, rng):
    """Block verification that ends at the first index that does not pass: wrong, and it accepts less.

    Seen: https://github.com/vllm-project/vllm-ascend/pull/11985 (asked for in its review)
    """
    return block_with(draft, target_probs, rng, stop_at_first=True)


def block_not_held_at_one(draft, target_probs, rng):
    """The running ratio p-hat of block verification is not capped at 1."""
    return block_with(draft, target_probs, rng, at_most=np.inf)


def block_with_plain_residual(draft, target_probs, rng):
    """The residual of block verification is max(0, p - q), without p-hat.

    Seen: https://github.com/vllm-project/vllm-ascend/issues/7807
    """
    return block_with(draft, target_probs, rng, plain_residual=True)


EXHIBITS = {  # name: (verifier, how the grader's message begins)
    "residual from the target": (residual_from_target, "on a rejection you drew from the target"),
    "residual not clipped": (residual_not_clipped, r"you drew from \|p - q\|"),
    "residual upside down": (residual_upside_down, "your residual is the wrong way round"),
    "ratio upside down": (ratio_upside_down, "you have the ratio upside down"),
    "softmax of the residual": (residual_by_softmax, "you put a softmax over the residual"),
    "temperature twice": (residual_with_temperature_twice, "what replaces a rejected token is not drawn from"),
    "epsilon in the residual": (residual_with_epsilon, "your residual is off by"),
    "residual in place": (residual_in_place, "your verifier writes to its arguments"),
    "bonus from the row before": (
        bonus_from_the_row_before, "you drew the bonus from the row of the last draft token",
    ),
    "bonus by argmax": (bonus_by_argmax, "you took the most probable token as the bonus"),
    "bonus from the draft": (bonus_from_draft, "you drew the bonus from the draft"),
    "accepted at equality": (accept_at_equality, "a token of target probability 0 passes"),
    "drawn again after a mismatch": (drawn_again_after_mismatch, "after a match that failed you drew once more"),
    "one uniform for all draft tokens": (one_uniform_for_all, "one uniform number decides on several draft tokens"),
    "the first row for all": (first_row_for_all, "right for K = 1 alone"),
    "block, stopped at the first failure": (
        block_stopped_at_first_failure, "block verification keeps the longest prefix that passes",
    ),
    "block, ratio not held at 1": (block_not_held_at_one, "block verification caps the ratio"),
    "block, plain residual": (block_with_plain_residual, "after block verification the residual is"),
}  # fmt: skip


def cut_at_forbidden(draft, target_probs, rng):
    """The draft is cut at its first token that a mask forbids, and the rest is verified. But that token was drawn,
    and rejected: the next one comes from the residual. Right for drafts that are masked, or greedy.

    Seen: https://github.com/vllm-project/vllm/pull/14702 (for greedy drafts)
    """
    forbidden = (i for i, x in enumerate(draft.tokens) if target_probs[i, x] == 0)
    n = next(forbidden, len(draft.tokens))
    return rejection_with(Draft(draft.tokens[:n], draft.probs[:n]), target_probs[: n + 1], rng)


cut_at_forbidden.toy = MASKED


ENGINE_EXHIBITS = {
    "cut at the first forbidden token": (
        cut_at_forbidden, "right, but not where the target has a token of probability 0",
    ),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ trees


def in_turn(p, children, rng, rest=residual, passes=passes):
    """What happens at a node: (accepted child or None, the row of the next token); children are (node, token x, row q).

    The right rule: after each rejection the residual takes p's place.
    """
    for node, x, q in children:
        if passes(rng.random(), p[x], q[x]):
            return node, None
        p = rest(p, q)
    return None, p


class Walk:
    """A verifier that walks down the tree: `choose` decides at a node, and `bonus` is the row after a leaf."""

    trees = True

    def __init__(self, choose, bonus=None):
        self.choose, self.bonus = choose, bonus
        update_wrapper(self, bonus or choose)

    def __call__(self, draft, target_probs, rng):
        node, accepted = -1, []  # -1: the text
        while True:
            p, children = target_probs[node + 1], draft.children(node)
            if accepted and not children and self.bonus:
                p = self.bonus(p, target_probs)
            node, row = self.choose(p, [(c, draft.tokens[c], draft.probs[c]) for c in children], rng)
            if node is None:
                return Verdict(accepted, sample_token(row, rng))
            accepted.append(node)


@Walk
def unchanged_row(p, children, rng):
    """Siblings drawn without replacement are tested with the row of the first. Setting q(x) = 0 without renormalising
    is the same mistake.
    """
    return in_turn(p, [(node, x, children[0][2]) for node, x, _ in children], rng)


@Walk
def residual_of_full_row(p, children, rng):
    """Each sibling is tested with its own row, but the residual takes away q without renormalisation."""
    return in_turn(p, children, rng, rest=lambda p, q: residual(p, children[0][2]))


@Walk
def stale_target(p, children, rng):
    """Every sibling meets the target's own row, and the residual is taken once at the end.

    Seen: verifyDynamicTreeRejectionKernel in
    https://github.com/NVIDIA/TensorRT-LLM/blob/HEAD/cpp/tensorrt_llm/kernels/speculativeDecoding/dynamicTreeKernels.cu
    """
    node, _ = in_turn(p, children, rng, rest=lambda p, q: p)
    return node, residual(p, children[0][2]) if children else p


@Walk
def not_renormalised(p, children, rng):
    """max(0, p - q) is used in the next test without division by its sum."""
    return in_turn(p, children, rng, rest=lambda p, q: np.maximum(p - q, 0) if (p > q).any() else p)


@Walk
def duplicates_skipped(p, children, rng):
    """A sibling with a token that was rejected before is left out. It is always rejected, but must be subtracted."""
    first = {x: node for node, x, _ in reversed(children)}
    return in_turn(p, [child for child in children if child[0] in first.values()], rng)


@Walk
def one_coin(p, children, rng):
    """One uniform number decides on all siblings. A rejection says that it was large, so the next test is biased."""
    u = rng.random()
    for node, x, q in children:
        if u * q[x] < p[x]:
            return node, None
        p = residual(p, q)
    return None, p


@Walk
def draws_for_each_sibling(p, children, rng):
    """The target's token is drawn again for each sibling, and once more if none matches.

    Seen: get_nucleus_posterior_mask in https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py
    """
    return next((node for node, x, _ in children if sample_token(p, rng) == x), None), p


@Walk
def running_sum(p, children, rng):
    """A coin is compared with the running sum of the siblings' p, and a token that appears twice counts twice."""
    u, total, rest = rng.random(), 0.0, p.copy()
    for node, x, _ in children:
        total += p[x]
        if u < total:
            return node, None
        rest[x] = 0
    return None, rest if rest.any() else p


def k_seq_with(p, children, rng, divisor=k_seq_divisor):
    """k-SEQ; `divisor` is its rho."""
    if not children:
        return None, p
    q, k = children[0][2], len(children)
    rho = divisor(p, q, k)
    for node, x, _ in children:
        if rng.random() * rho * q[x] < p[x]:
            return node, None
    kept = np.minimum(p / rho, q)
    missed = 1 - (1 - kept.sum()) ** k
    rest = np.maximum(p - kept * missed / kept.sum(), 0) if kept.any() else p
    return None, rest if rest.any() else p


@Walk
def k_seq_with_one(p, children, rng):
    """k-SEQ without its divisor rho: what remains to be drawn becomes negative."""
    return k_seq_with(p, children, rng, divisor=lambda p, q, k: 1.0)


@Walk
def k_seq(p, children, rng):
    """k-SEQ is exact for siblings drawn independently from one row, and for no others."""
    return k_seq_with(p, children, rng)


@partial(Walk, in_turn)
def bonus_at_temperature_one(p, target_probs):
    """After an accepted leaf the bonus is drawn from the softmax of the raw logits, without temperature and top-p.

    Seen: sample_p in https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/utils.py
    """
    return np.sqrt(p) / np.sqrt(p).sum()  # undoes the temperature 0.5 of p


@partial(Walk, in_turn)
def bonus_of_last_node(p, target_probs):
    """The bonus comes from the last row of the call, which is that of the last node, not of the accepted leaf."""
    return target_probs[-1]


@Walk
def accepts_at_equality(p, children, rng):
    """p >= u q with u in half precision, which is 0 once in some thousand draws: tokens of probability 0 pass.

    Seen: accept_step in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecInferTree.py
    """
    return in_turn(p, children, rng, passes=lambda u, p, q: u * q <= p)


@Walk
def residual_by_list_index(p, children, rng):
    """p and q are lists of the tokens that top-k left; the residual is taken by place in the lists, not by token.

    Seen: https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp
    """

    def by_place(p, q):
        kept, drafted = np.flatnonzero(p), np.flatnonzero(q)[: np.count_nonzero(p)]
        rest = p.copy()
        rest[kept[: len(drafted)]] -= q[drafted]  # the i-th of one list and the i-th of the other
        rest = np.maximum(rest, 0)
        return rest / rest.sum() if rest.any() else p

    return in_turn(p, children, rng, rest=by_place)


def of_trees(verifier):
    verifier.trees = True
    return verifier


@of_trees
def paths_apart(draft, target_probs, rng):
    """Every path is verified on its own, and the longest accepted one is kept: a choice after the draws."""

    def paths(node):
        below = draft.children(node)
        return [[child, *rest] for child in below for rest in paths(child)] if below else [[]]

    best = None
    for path in paths(-1):
        chain = Draft(draft.tokens[path], draft.probs[path])
        verdict = rejection(chain, target_probs[[0, *(node + 1 for node in path)]], rng)
        if best is None or verdict.n_accepted > len(best[0]):
            best = path[: verdict.n_accepted], verdict.next_token
    return Verdict(*best)


@of_trees
def typical_tree(draft, target_probs, rng):
    """LOSSY on purpose: draft tokens above a threshold of p pass, and nothing is drawn.

    Seen: https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py
    """
    node, accepted = -1, []
    while True:
        p = target_probs[node + 1]
        threshold = min(0.09, 0.3 * np.exp(-entropy(p)))
        node = next((child for child in draft.children(node) if p[draft.tokens[child]] > threshold), None)
        if node is None:
            return Verdict(accepted, int(p.argmax()))
        accepted.append(node)


@of_trees
def traversal_with_stale_share(draft, target_probs, rng):
    """In traversal verification a node's share is updated after its last child only, not after each."""

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
    return Verdict(accepted, sample_token(p / p.sum(), rng))


I_I_D, DISTINCT, RANKED = "drawn independently", "drawn without replacement", "the most likely"
TREE_EXHIBITS = {  # name: (verifier, how the grader's message begins, how siblings are drawn in its toy case, parents)
    "unchanged q for every sibling": (unchanged_row, "every sibling is tested against the row of the first", DISTINCT),
    "residual with the full q": (
        residual_of_full_row, "each sibling is tested with its own row, but the residual", DISTINCT,
    ),
    "stale p for siblings": (stale_target, "every sibling is tested against the target's own row", I_I_D),
    "residual not renormalised between siblings": (
        not_renormalised, "the residual is not renormalised before the next sibling", I_I_D,
    ),
    "duplicates skipped": (duplicates_skipped, "a sibling with a token that was rejected already is skipped", I_I_D),
    "one coin for all siblings": (one_coin, "one uniform number decides on all siblings", DISTINCT),
    "the target's draw for every sibling": (
        draws_for_each_sibling, "after a match that failed you drew once more", RANKED,
    ),
    "duplicates counted twice": (running_sum, "siblings with the same token are counted twice", I_I_D),
    "k-SEQ with rho = 1": (k_seq_with_one, "k-SEQ with rho = 1", I_I_D),
    "k-SEQ on draws without replacement": (
        k_seq, "right for siblings drawn independently from one row", DISTINCT,
    ),
    "best of several chains": (paths_apart, "each path is verified on its own and the longest is kept", I_I_D),
    "typical acceptance in a tree": (
        typical_tree, "your verifier draws nothing from rng, and accepts every draft token above a threshold", RANKED
    ),
    "bonus at temperature 1": (
        bonus_at_temperature_one, "the bonus is drawn at another temperature than its row", RANKED,
    ),
    "bonus from the last node": (
        bonus_of_last_node, "the bonus is drawn from the row of the last node", RANKED,
    ),
    "accepted at equality in a tree": (accepts_at_equality, "a token of target probability 0 passes", I_I_D),
    "residual by place in a list": (
        residual_by_list_index, "your residual subtracts the probabilities of different tokens", RANKED,
    ),
    "traversal with a stale share": (
        traversal_with_stale_share, "in traversal verification each rejected child changes", I_I_D, (-1, 0, 0),
    ),
}  # fmt: skip
