"""Verifiers that are wrong. p is the target's distribution, q the draft's."""

import numpy as np

from ..interfaces import Verdict
from ..probs import residual, sample_token


def rejection_with(draft, target_probs, rng, rest=residual, bonus=lambda draft, rows: rows[-1]):
    """`rejection`, with another residual or another bonus: the form in which most of the mistakes below are written."""
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


def residual_with_temperature_twice(draft, target_probs, rng):
    def again(p):
        return p**2 / (p**2).sum()  # softmax(logits / 0.5), of what already was softmax(logits / T)

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
        "A rejected token is replaced by a draw from p. What passes has its share already; max(0, p - q) is missing.",
        "romsto/Speculative-Decoding, the switch skip_sample_adjustment",
        "on a rejection you drew from the target",
    ),
    "residual not clipped": (
        residual_not_clipped,
        "The residual is |p - q|: it brings back tokens of which the draft has too many.",
        "the plain form; the reference is arXiv:2211.17192, section 2.3",
        r"you drew from \|p - q\|",
    ),
    "residual upside down": (
        residual_upside_down,
        "The residual is max(0, q - p): p and q are exchanged, as the letters are between two papers.",
        "Leviathan et al. write p for the target, Chen et al. q",
        "your residual is the wrong way round",
    ),
    "ratio upside down": (
        ratio_upside_down,
        "Accepts with min(1, q / p): p and q are exchanged.",
        "Leviathan et al. write p for the target, Chen et al. q",
        "you have the ratio upside down",
    ),
    "temperature twice": (
        residual_with_temperature_twice,
        "The temperature is applied once more in the residual.",
        "LMFlow; lattice#388",
        "what replaces a rejected token is not drawn from",
    ),
    "epsilon in the residual": (
        residual_with_epsilon,
        "1e-8 is added against a division by zero, and tokens of residual 0 are drawn. Where the mass is 0, take p.",
        "the 1e-10 added to temperatures and sums in jaymody/speculative-sampling and others",
        "your residual is off by",
    ),
    "residual in place": (
        residual_in_place,
        "p -= q writes into the target's rows, which others still read. The law of this round is right.",
        "MCSD#5, a reader confused by an in-place residual",
        "your verifier writes to its arguments",
    ),
    "bonus from the row before": (
        bonus_from_the_row_before,
        "When all guesses pass, the bonus is drawn from the row of the last guess. Row j predicts token j + 1.",
        "gpt-fast#107, feifeibear/LLMSpeculativeSampling#29",
        "you drew the bonus from the row of the last guess",
    ),
    "bonus by argmax": (
        bonus_by_argmax,
        "The bonus is the likeliest token, at any temperature.",
        "shreyansh26's re-implementation of 2026; vLLM#4212",
        "you took the likeliest token as the bonus",
    ),
    "bonus from the draft": (
        bonus_from_draft,
        "The bonus is drawn from the draft's last row.",
        "the plain form of a row taken from the wrong model",
        "you drew the bonus from the draft",
    ),
    "accepted at equality": (
        accept_at_equality,
        "u <= p / q: where u is 0, a token of target probability 0 passes. No law shows it; a float32 u does, in time.",
        "most implementations; vLLM moved its uniforms to float64 (pytorch#16706)",
        "a token of target probability 0 passes",
    ),
    "drawn again after a mismatch": (
        drawn_again_after_mismatch,
        "Sample and match, but after a mismatch a fresh token is drawn: the tokens that matched get a second chance.",
        "romsto's n-gram decoding; the nucleus modes of Medusa and REST",
        "after a match that failed you drew once more",
    ),
    "one uniform for all guesses": (
        one_uniform_for_all,
        "One uniform number decides on the whole block: later guesses are accepted because the first was.",
        "feifeibear/LLMSpeculativeSampling, PR #8 and #19",
        "one uniform number decides on several guesses",
    ),
    "the first row for all": (
        first_row_for_all,
        "Every guess is tested against the first row. With K = 1 nothing is wrong, and a test with K = 1 says so.",
        "the plain form of rows that are one off, as in HF PR#28166",
        "right for K = 1 alone",
    ),
    "block, stopped at the first failure": (
        block_stopped_at_first_failure,
        "Block verification that ends at the first index that does not pass: wrong, and fewer tokens too.",
        "asked for in the review of vllm-ascend#11985",
        "block verification keeps the longest prefix that passes",
    ),
    "block, ratio not held at 1": (
        block_not_held_at_one,
        "The running ratio p-hat of block verification is not held at 1.",
        "vllm-ascend#7807 and #7808",
        "block verification holds the ratio",
    ),
    "block, plain residual": (
        block_with_plain_residual,
        "The residual of block verification is max(0, p - q), without p-hat.",
        "vllm-ascend#7807 and #7808",
        "after block verification the residual is",
    ),
}
