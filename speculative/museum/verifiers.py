"""Verifiers with a mistake. p is the target's distribution, q the draft's."""

import numpy as np

from ..interfaces import Verdict
from ..probs import residual, sample_token

CONSTRUCTED = "constructed (no public source is known)"


def rejection_with(draft, target_probs, rng, rest=residual, bonus=lambda draft, rows: rows[-1]):
    """`rejection` with another residual or another bonus; most of the mistakes below are written with it."""
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[token] < p[token]:
            return Verdict(i, sample_token(rest(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(bonus(draft, target_probs), rng))


def residual_from_target(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: p)


def residual_not_clipped(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: np.abs(p - q) if (p != q).any() else p)


def residual_upside_down(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: residual(q, p))


def residual_by_softmax(draft, target_probs, rng):
    def softmax(row):
        return np.exp(row) / np.exp(row).sum()

    return rejection_with(draft, target_probs, rng, rest=lambda p, q: softmax(np.maximum(p - q, 0)))


def residual_with_temperature_twice(draft, target_probs, rng):
    def again(p):
        return p**2 / (p**2).sum()  # temperature 0.5 on top of the temperature that p already has

    return rejection_with(draft, target_probs, rng, rest=lambda p, q: residual(again(p), again(q)))


def residual_with_epsilon(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, rest=lambda p, q: np.maximum(p - q, 0) + 1e-8)


def residual_in_place(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[token] < p[token]:
            p -= q
            np.maximum(p, 0, out=p)
            return Verdict(i, sample_token(p, rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def bonus_from_the_row_before(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: rows[max(0, len(draft.tokens) - 1)])


def bonus_by_argmax(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: np.eye(len(rows[-1]))[rows[-1].argmax()])


def bonus_from_draft(draft, target_probs, rng):
    return rejection_with(draft, target_probs, rng, bonus=lambda draft, rows: [rows[0], *draft.probs][-1])


def accept_at_equality(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() <= p[token] / q[token]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def ratio_upside_down(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * p[token] < q[token]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def drawn_again_after_mismatch(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        if sample_token(target_probs[i], rng) != token:
            return Verdict(i, sample_token(target_probs[i], rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def one_uniform_for_all(draft, target_probs, rng):
    u = rng.random()
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not u * q[token] < p[token]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def first_row_for_all(draft, target_probs, rng):
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
    return block_with(draft, target_probs, rng, stop_at_first=True)


def block_not_held_at_one(draft, target_probs, rng):
    return block_with(draft, target_probs, rng, at_most=np.inf)


def block_with_plain_residual(draft, target_probs, rng):
    return block_with(draft, target_probs, rng, plain_residual=True)


EXHIBITS = {  # name: (verifier, what is wrong, where it was seen, how the grader's message begins)
    "residual from the target": (
        residual_from_target,
        "A rejected token is replaced by a draw from p. But min(p, q) was accepted already: draw from max(0, p - q).",
        "skip_sample_adjustment in "
        "https://github.com/romsto/Speculative-Decoding/blob/HEAD/sampling/speculative_decoding.py",
        "on a rejection you drew from the target",
    ),
    "residual not clipped": (
        residual_not_clipped,
        "The residual is |p - q|: it brings back tokens that the draft proposes too often.",
        CONSTRUCTED,
        r"you drew from \|p - q\|",
    ),
    "residual upside down": (
        residual_upside_down,
        "The residual is max(0, q - p): p and q are swapped. Leviathan et al. write p for the target, Chen et al. q.",
        CONSTRUCTED,
        "your residual is the wrong way round",
    ),
    "ratio upside down": (
        ratio_upside_down,
        "Accepts with min(1, q / p): p and q are swapped. Leviathan et al. write p for the target, Chen et al. q.",
        CONSTRUCTED,
        "you have the ratio upside down",
    ),
    "softmax of the residual": (
        residual_by_softmax,
        "max(0, p - q) goes through a softmax, which gives every token a share. Divide it by its sum.",
        "https://github.com/huggingface/transformers/pull/28508 (before it)",
        "you put a softmax over the residual",
    ),
    "temperature twice": (
        residual_with_temperature_twice,
        "The temperature is applied a second time in the residual.",
        "https://github.com/OptimalScale/LMFlow/issues/920 (a second time to all rows)",
        "what replaces a rejected token is not drawn from",
    ),
    "epsilon in the residual": (
        residual_with_epsilon,
        "1e-8 is added against a division by zero, so tokens of residual 0 are drawn. If the mass is 0, take p.",
        CONSTRUCTED,
        "your residual is off by",
    ),
    "residual in place": (
        residual_in_place,
        "p -= q writes into the target's rows, which others still read. The distribution of this round is right.",
        "https://github.com/NJUNLP/MCSD/issues/5 (a reader's question)",
        "your verifier writes to its arguments",
    ),
    "bonus from the row before": (
        bonus_from_the_row_before,
        "If all draft tokens pass, the bonus is drawn from the row of the last one. Row j predicts token j + 1.",
        CONSTRUCTED,
        "you drew the bonus from the row of the last draft token",
    ),
    "bonus by argmax": (
        bonus_by_argmax,
        "The bonus is the most probable token, at any temperature.",
        "https://github.com/shreyansh26/Speculative-Decoding/blob/HEAD/common/verification.py",
        "you took the most probable token as the bonus",
    ),
    "bonus from the draft": (
        bonus_from_draft,
        "The bonus is drawn from the draft's last row.",
        CONSTRUCTED,
        "you drew the bonus from the draft",
    ),
    "accepted at equality": (
        accept_at_equality,
        "u <= p / q: if u is 0, a token of target probability 0 passes. A float32 u is 0 once in 16 million draws.",
        "https://github.com/pytorch/pytorch/issues/16706, for which vLLM draws its uniforms in float64",
        "a token of target probability 0 passes",
    ),
    "drawn again after a mismatch": (
        drawn_again_after_mismatch,
        "Sample and match, but after a mismatch another token is drawn: draft tokens get a second chance.",
        "https://github.com/romsto/Speculative-Decoding/blob/HEAD/ngram_assisted/ngram_assisted.py",
        "after a match that failed you drew once more",
    ),
    "one uniform for all draft tokens": (
        one_uniform_for_all,
        "One uniform number decides on the whole draft: later tokens are accepted because the first was.",
        "https://github.com/feifeibear/LLMSpeculativeSampling/pull/19",
        "one uniform number decides on several draft tokens",
    ),
    "the first row for all": (
        first_row_for_all,
        "Every draft token is tested against the first row. With K = 1 that is right, so a test with K = 1 passes.",
        CONSTRUCTED,
        "right for K = 1 alone",
    ),
    "block, stopped at the first failure": (
        block_stopped_at_first_failure,
        "Block verification that ends at the first index that does not pass: wrong, and it accepts less.",
        "https://github.com/vllm-project/vllm-ascend/pull/11985 (asked for in its review)",
        "block verification keeps the longest prefix that passes",
    ),
    "block, ratio not held at 1": (
        block_not_held_at_one,
        "The running ratio p-hat of block verification is not capped at 1.",
        CONSTRUCTED,
        "block verification caps the ratio",
    ),
    "block, plain residual": (
        block_with_plain_residual,
        "The residual of block verification is max(0, p - q), without p-hat.",
        "https://github.com/vllm-project/vllm-ascend/issues/7807",
        "after block verification the residual is",
    ),
}
