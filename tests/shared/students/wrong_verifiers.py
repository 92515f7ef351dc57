"""Wrong verifiers: the rule of rejection with an edit each, and words of the first line of the hint."""

import math
import random
import sys
import time

import numpy as np

import speculative
from speculative import Draft, Verdict, rejection, residual, sample_token

from .edits import edited

RULE = """
def verifier(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[x] < p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))
"""
U, ACCEPT, REST, DRAW = (
    "rng.random()",
    "rng.random() * q[x] < p[x]",
    "residual(p, q)",
    "sample_token(residual(p, q), rng)",
)
BONUS, TEST, LOOP, LINE = (
    "sample_token(target_probs[-1], rng)",
    "if not ",
    "for i, x in",
    "p, q = target_probs[i], draft.probs[i]",
)
OTHER, ENDLESS = "another source of randomness than rng", ("cannot be enumerated", "an endless loop")
FORM, WRITES = "return Verdict(n_accepted, next_token), two whole numbers", ("writes to its arguments: work on a copy",)
MOST, FAILS = "np.where({0} >= np.sort({0})[-{1}:][0], {0}, 0)", "your verifier fails"
GENERATOR = np.random.default_rng()
NAMES = {"np": np, "math": math, "random": random, "sys": sys, "time": time, "Draft": Draft, "Verdict": Verdict,
         "residual": residual, "rejection": rejection, "sample_token": sample_token, "GENERATOR": GENERATOR,
         "speculative": speculative}  # fmt: skip


def endless(draw, passes):
    """A loop in place of the draw that replaces a rejected token."""
    return (
        f"return Verdict(i, {DRAW})",
        f"while True:\n                y = {draw}\n"
        f"                if {passes}:\n                    return Verdict(i, y)",
    )


def instead(code):
    """This code, and nothing of the rule."""
    return LOOP, f"{code}\n    {LOOP}"


def of_the_rule(value):
    """This value in place of the verdict v of the rule."""
    return instead(f"v = rejection(draft, target_probs, rng); return {value}")


EDITS = {  # where the random numbers come from
    "np.random for all": ((OTHER, "np.random"), U, "np.random.rand()", DRAW, f"np.random.choice(len(p), p={REST})",
                          BONUS, "np.random.choice(len(target_probs[-1]), p=target_probs[-1])"),
    "np.random for the bonus": ((OTHER, "np.random"), BONUS, BONUS.replace("rng", "np.random.mtrand._rand")),
    "random to accept": ((OTHER, "module random"), U, "random.random()"),
    "a generator of the module": ((OTHER, "a generator of"), U, "GENERATOR.random()", DRAW, DRAW.replace("rng",
        "GENERATOR")),
    "default_rng() inside": ((OTHER, "default_rng"),
        *of_the_rule("rejection(draft, target_probs, np.random.default_rng())")),
    "default_rng(0) for the bonus": ((OTHER, "default_rng"), BONUS, BONUS.replace("rng", "np.random.default_rng(0)")),
    "RandomState(0) inside": (("draws nothing from rng", "another source of randomness"),
                              *instead("rng = np.random.RandomState(0)")),
    "seeds np.random": ((OTHER, "np.random"), U, "(np.random.seed(1) or np.random.rand())"),
    "seeds another generator": (("not a seed for another generator",),
                                *instead("rng = np.random.default_rng(int(rng.integers(2**31)))")),
    "time": (("another source of randomness",), U, "(time.time_ns() % 1000 / 1000)"),
    "whole numbers": (("draws one of 100 whole numbers", "rounds p / q"), ACCEPT,
        "rng.integers(100) < int(100 * p[x] / q[x])"),
    "many whole numbers": (("one of 10000 whole numbers", "rounds p / q"), ACCEPT,
        "int(rng.random() * 10_000) < 10_000 * p[x] / q[x]"),
    "float(u)": (("cannot be enumerated", "a uniform number is used as a value", "leave out float(u)"), U,
        "float(rng.random())"),
    "math.log": (("cannot be enumerated", "math.log(u)"), ACCEPT, "math.log(rng.random()) < np.log(p[x] / q[x])"),
    "deterministic": (("draws nothing from rng", "must be drawn with rng"),
        *instead("return Verdict(0, int(target_probs[0].argmax()))")),
    # without an end
    "draws again until accepted": (ENDLESS, *endless("sample_token(q, rng)", "rng.random() * q[y] < p[y]")),
    "residual by rejection": (ENDLESS, *endless("sample_token(p, rng)",
        "p[y] > q[y] and rng.random() * p[y] < p[y] - q[y]")),
    "a coin until heads": (ENDLESS, *endless("0", "rng.random() > 0.5")),
    "a loop that never draws again": (ENDLESS[1:], *instead(
        "u, i = rng.random(), 0\n    while i < len(draft.tokens):\n"
        "        i += u * draft.probs[i, draft.tokens[i]] < target_probs[i, draft.tokens[i]]")),
    # ratio and acceptance
    "ratio upside down": (("upside down",), ACCEPT, "rng.random() * p[x] < q[x]"),
    "accepts all": (("accept every draft token",), ACCEPT, "True"),
    "p >= q alone": (("p(x) >= q(x)",), ACCEPT, "p[x] >= q[x]"),
    "argmax alone": (("most probable token", "temperature 0"), ACCEPT, "x == p.argmax()"),
    "u > ratio": (("other way round",), ACCEPT, "rng.random() > p[x] / q[x]"),
    "p alone": (("p(x)", "divide"), ACCEPT, "rng.random() < p[x]"),
    "min(p, q)": (("min(p(x), q(x))",), ACCEPT, "rng.random() < min(p[x], q[x])"),
    "overlap for all": (("same probability", "min(1, p(x) / q(x))"), ACCEPT, "rng.random() < np.minimum(p, q).sum()"),
    "log ratio against u": (("log",), ACCEPT, "rng.random() < np.log(p[x] / q[x])"),
    "square root": (("do not add up to the target",), ACCEPT, "rng.random() < np.sqrt(p[x] / q[x])"),
    "u <= ratio": (("u < p / q, not u <= p / q",), ACCEPT, "rng.random() <= p[x] / q[x]"),
    "row after": (("row i of the target",), ACCEPT, "rng.random() * q[x] < target_probs[i + 1][x]"),
    "first row": (("right for K = 1 alone", "row i"), ACCEPT, "rng.random() * draft.probs[0][x] < target_probs[0][x]"),
    "draft row before": (("the draft's row before their own",), ACCEPT,
        "rng.random() * draft.probs[max(i - 1, 0), x] < p[x]"),
    "epsilon 1e-12": (("epsilon",), ACCEPT, "rng.random() < p[x] / (q[x] + 1e-12)"),
    "epsilon 1e-6": (("epsilon",), ACCEPT, "rng.random() < p[x] / (q[x] + 1e-6)"),
    "epsilon in both": (("epsilon",), ACCEPT, "rng.random() < (p[x] + 1e-8) / (q[x] + 1e-8)"),
    "p > q accepts, p = q rejects": (("right, but not where p(x) = q(x) for the draft token x",), ACCEPT,
                                     f"(p[x] > q[x] or p[x] != q[x] and {ACCEPT})"),
    "exp(p - q)": (("probabilities already",), ACCEPT, "rng.random() < np.exp(p[x] - q[x])"),
    "tested twice": (("square of the ratio",), ACCEPT, f"({ACCEPT} and {ACCEPT})"),
    "ratio held above 0.01": (("is accepted with 0.01",), ACCEPT, "rng.random() < max(0.01, p[x] / q[x])"),
    "untested from 1": (("accepted without a test",), TEST, "if i < 1 and not "),
    "untested from 3": (("accepted without a test",), TEST, "if i < 3 and not "),
    "exchanged throughout": (("p and q",), LINE, "q, p = target_probs[i], draft.probs[i]"),
    "one uniform": (("one uniform number decides on several draft tokens",), U, "u", LOOP,
        f"u = rng.random()\n    {LOOP}"),
    "uniform used again": (("also draws", "a new one"), ACCEPT, "(u := rng.random()) * q[x] < p[x]", DRAW,
                           f"int(np.searchsorted(np.cumsum({REST}), u, side='right'))"),
    "uniform used again for the bonus": (("also draws", "a new one"), LOOP, f"u = rng.random()\n    {LOOP}",
                                         ACCEPT, "(u := rng.random()) * q[x] < p[x]", BONUS,
                                         "int(np.argmax(np.cumsum(target_probs[-1]) > u))"),
    "matching drawn again": (("drew once more",), ACCEPT, "sample_token(p, rng) == x", REST, "p"),
    "greedy": (("most probable token", "temperature 0"), ACCEPT, "x == p.argmax()", DRAW, "int(p.argmax())", BONUS,
        "int(target_probs[-1].argmax())"),
    # what replaces a rejected token
    "from the target": (("on a rejection you drew from the target",), REST, "p"),
    "from the draft": (("on a rejection you drew from the draft",), REST, "q"),
    "|p - q|": (("|p - q|",), REST, "abs(p - q) if (p != q).any() else p"),
    "q - p": (("wrong way round",), REST, "residual(q, p)"),
    "without x": (("without the rejected token",), REST, "p * (np.arange(len(p)) != x)"),
    "least of both": (("min(p, q)",), REST, "np.minimum(p, q)"),
    "argmax of p": (("most probable token",), DRAW, "int(p.argmax())"),
    "argmax of the residual": (("most probable token",), DRAW, "int((p - q).argmax())"),
    "the draft token itself": (("rejected token is returned anyway",), DRAW, "int(x)"),
    "all alike": (("all tokens with equal",), DRAW, "int(rng.integers(len(p)))"),
    "not normalised, clipped": (("not normalised",), DRAW,
        "min(int(np.searchsorted(np.cumsum(np.maximum(p - q, 0)), rng.random(), side='right')), len(p) - 1)"),
    "not normalised, argmax": (("not normalised",), DRAW,
        "int(np.argmax(np.cumsum(np.maximum(p - q, 0)) > rng.random()))"),
    "not normalised, choice": (("your verifier fails for K = 1", "add up to 1"), DRAW,
        "rng.choice(len(p), p=np.maximum(p - q, 0))"),
    "not normalised, out of range": (("next_token must be a token from 0",), DRAW,
        "np.searchsorted(np.cumsum(np.maximum(p - q, 0)), rng.random())"),
    "not clipped, choice": (("your verifier fails for K = 1",), DRAW, "rng.choice(len(p), p=p - q)"),
    "softmax of the residual": (("softmax",), REST, "np.exp(np.maximum(p - q, 0))"),
    "epsilon in the residual": (("your residual is off by", "epsilon"), REST, "np.maximum(p - q, 0) + 1e-10"),
    "float32 residual": (("float32",), REST, "residual(p.astype(np.float32), q.astype(np.float32))"),
    "float32": (("float32",),
        *of_the_rule("rejection(Draft(draft.tokens, np.float32(draft.probs)), np.float32(target_probs), rng)")),
    "float16": (("float",),
        *of_the_rule("rejection(Draft(draft.tokens, np.float16(draft.probs)), np.float16(target_probs), rng)")),
    "all rows of the draft": (("adds up all rows of the draft",), REST,
        "np.maximum(target_probs[:-1] - draft.probs, 0).sum(axis=0)"),
    "residual of the row after": (("i + 1",), REST, "residual(target_probs[i + 1], q)"),
    "residual of the first row": (("first row",), REST, "residual(target_probs[0], draft.probs[0])"),
    "last drafted row": (("last drafted row",), REST, "residual(target_probs[-2], draft.probs[-1])"),
    "last row": (("on a rejection you drew from the target's last row",), REST, "target_probs[-1]"),
    "temperature twice": (("not drawn from max(0, p - q)",), REST,
        "residual(p**2 / (p**2).sum(), q**2 / (q**2).sum())"),
    **{f"residual cut to {n}": (("most probable tokens of the residual",), REST, MOST.format(f"({REST})",
    n)) for n in (2, 3, 5)},
    # the bonus
    **{f"bonus cut to {n}": (("most probable tokens of the target's last row",), BONUS,
                             f"sample_token({MOST.format('target_probs[-1]', n)}, rng)") for n in (3, 5)},
    "bonus argmax": (("most probable token as the bonus",), BONUS, "int(target_probs[-1].argmax())"),
    "bonus from the draft": (("drew the bonus from the draft",), BONUS,
        "sample_token([target_probs[0], *draft.probs][-1], rng)"),
    "bonus one row early": (("row of the last draft token",), BONUS,
        "sample_token(target_probs[max(0, len(draft.tokens) - 1)], rng)"),
    "bonus is the last draft token": (("last draft token once more", "target's last row"), BONUS,
                                      f"int(draft.tokens[-1]) if len(draft.tokens) else {BONUS}"),
    "bonus from a residual": (("bonus from a residual",), BONUS,
        "sample_token(residual(target_probs[-1], [target_probs[0] * 0, *draft.probs][-1]), rng)"),
    "bonus from row 1": (("right for K = 1", "target_probs[k]"), BONUS,
        "sample_token(target_probs[min(1, len(draft.tokens))], rng)"),
    "bonus 0": (("bonus",), BONUS, "0"),
    "a new number each time": (("a new uniform number for each step",), BONUS,
                               "next((t for t, c in enumerate(target_probs[-1].cumsum()) if rng.random() < c), 0)"),
    "bonus from all alike": (("tokens with equal",), BONUS, "int(rng.integers(target_probs.shape[1]))"),
    # what is counted
    "counts all that pass": (("first rejection ends the round",), *instead(
        "ok = [rng.random() * draft.probs[i, x] < target_probs[i, x] for i, x in enumerate(draft.tokens)]\n"
        "    n = sum(ok)\n"
        "    rows = [*map(residual, target_probs, draft.probs), target_probs[-1]]\n"
        "    return Verdict(n, sample_token(rows[n], rng))")),
    "counts the rejected": (("you count the rejected token", "i + 1"), "Verdict(i,", "Verdict(i + 1,"),
    "counts too few": (("one too small",), "Verdict(len(draft.tokens),", "Verdict(max(0, len(draft.tokens) - 1),"),
    "all or none": (("all draft tokens or none",), "Verdict(i,", "Verdict(0,", REST,
        "residual(target_probs[0], draft.probs[0])"),
    "with the product": (("product of the ratios",), LOOP, f"joint = 1.0\n    {LOOP}", ACCEPT,
        "rng.random() < (joint := joint * p[x] / q[x])"),
    "counts the bonus": (("n_accepted must lie between 0", "bonus is not counted"),
        *of_the_rule("Verdict(v.n_accepted + 1, v.next_token)")),
    "fails without a draft": (("K = 0",), *instead("if not len(draft.tokens): return Verdict(0, 0)")),
    "softmax of probabilities": (("probabilities already",), *instead(
        "e, f = np.exp(draft.probs), np.exp(target_probs)\n"
        "    draft = Draft(draft.tokens, e / e.sum(axis=1, keepdims=True))\n"
        "    target_probs = f / f.sum(axis=1, keepdims=True)")),
    # what is returned
    "None": ((FORM, "you returned None"), *instead("return None")),
    "a tuple": ((FORM, "you returned ("), *of_the_rule("(v.n_accepted, v.next_token)")),
    "an array": ((FORM, "you returned array("), *of_the_rule("np.array([v.n_accepted, v.next_token])")),
    "floats": ((FORM, ".3,"), *of_the_rule("Verdict(float(v.n_accepted), v.next_token + 0.3)")),
    "n_accepted + 0.9": ((FORM, ".9,"), *of_the_rule("Verdict(v.n_accepted + 0.9, v.next_token)")),
    "a list of tokens": ((FORM,), *of_the_rule("[v.next_token]")),
    "a generator function": ((FORM, "generator"), *of_the_rule("(yield v)")),
    "one token for each row": ((FORM,), *of_the_rule("Verdict(v.n_accepted, np.array([v.next_token] * 2))")),
    "-1": (("n_accepted must lie between 0 and",), *of_the_rule("Verdict(-1, v.next_token)")),
    # what is raised, or written
    "asserts": (("your verifier fails for K = 0", "assert len(draft.tokens) > 0"),
        *instead("assert len(draft.tokens) > 0")),
    "broadcasts": (("your verifier fails for K = 1", "draft.tokens = [0]", "could not be broadcast", "(1, 2)"),
                   *instead("return np.ones((3, 2)) + np.ones((2, 2))")),
    "old names": (("your verifier fails for K = 1", "has no attribute 'rand'"), U, "rng.rand()"),
    "without a draft": (("your verifier fails for K = 0", "IndexError"), *instead("draft.tokens[0]")),
    "not written": (("not written yet",), *instead("raise NotImplementedError('write it above')")),
    "two arguments": ((FAILS, "TypeError", "positional argument"), "probs, rng)", "probs)"),
    "ends Python": ((FAILS, "SystemExit"), *instead("sys.exit(1)")),
    "recurses for ever": ((FAILS, "RecursionError"), *instead("return verifier(draft, target_probs, rng)")),
    "writes to the draft": (WRITES, *of_the_rule("draft.tokens.fill(0) or v")),
    "normalises in place": (WRITES, *instead("target_probs *= 2")),
    "residual in place": (WRITES, f"return Verdict(i, {DRAW})",
        "p -= q\n            return Verdict(i, sample_token(np.maximum(p, 0, out=p), rng))"),
}  # fmt: skip


class Verifier:
    """Its class is handed in."""

    def __call__(self, draft, target_probs, rng):
        return rejection(draft, target_probs, rng)


class Remembers:
    """Accepts every second time."""

    n = 0

    def __call__(self, draft, target_probs, rng):
        self.n += 1
        if self.n % 2:
            return rejection(draft, target_probs, rng)
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def rule(*changes, kept=()):
    return edited(RULE, "verifier", *changes, kept=NAMES | dict(kept))


WRONG = {name: (rule(*changes), words) for name, (words, *changes) in EDITS.items()} | {
    "not a function": (Verdict(0, 0), ("is called as verifier(draft, target_probs, rng)", "cannot be called")),
    "the class": (Verifier, ("pass a verifier, not its class",)),
    "remembers": (Remembers(), ("between calls",)),
}
