"""More wrong verifiers: the replacement, the bonus, blocks, what is returned, and what is raised."""

import time

import numpy as np

from speculative import Draft, Verdict, rejection, residual, sample_token

from .verifiers import draws, template

RIGHT, NOTES, WRONG = {}, {}, {}


def wrong(*words):
    def register(fn):
        WRONG[fn.__name__] = fn, words
        return fn

    return register


def unnormalised(p, q, x, rng, *_):
    return min(int(np.searchsorted(np.cumsum(np.maximum(p - q, 0)), rng.random(), side="right")), len(p) - 1)


def excess(p, q, *_):
    return np.maximum(p - q, 0)


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


ALL_ROWS = "adds up all rows of the draft"
WRONG |= {  # what replaces a rejected token
    "from the target": (template(replace=draws(lambda p, q, x: p)), ("on a rejection you drew from the target",)),
    "from the draft": (template(replace=draws(lambda p, q, x: q)), ("on a rejection you drew from the draft",)),
    "|p - q|": (template(replace=draws(lambda p, q, x: abs(p - q) if (p != q).any() else p)), ("|p - q|",)),
    "q - p": (template(replace=draws(lambda p, q, x: residual(q, p))), ("wrong way round",)),
    "without x": (
        template(replace=draws(lambda p, q, x: p * (np.arange(len(p)) != x))),
        ("without the rejected token",),
    ),
    "min(p, q)": (template(replace=draws(lambda p, q, x: np.minimum(p, q))), ("min(p, q)",)),
    "argmax of p": (template(replace=lambda p, *_: int(p.argmax())), ("most probable token",)),
    "argmax of the residual": (template(replace=lambda p, q, *_: int((p - q).argmax())), ("most probable token",)),
    "the draft token itself": (
        template(replace=lambda p, q, x, *_: int(x)),
        ("rejected token is returned anyway",),
    ),
    "all alike": (template(replace=lambda p, q, x, rng, *_: int(rng.integers(len(p)))), ("all tokens with equal",)),
    "not normalised, clipped": (template(replace=unnormalised), ("not normalised",)),
    "not normalised, argmax": (
        template(replace=lambda p, q, x, rng, *_: int(np.argmax(np.cumsum(excess(p, q)) > rng.random()))),
        ("not normalised",),
    ),
    "not normalised, choice": (
        template(replace=lambda p, q, x, rng, *_: rng.choice(len(p), p=excess(p, q))),
        ("your verifier fails for K = 1", "add up to 1"),
    ),
    "not normalised, out of range": (
        template(replace=lambda p, q, x, rng, *_: np.searchsorted(np.cumsum(excess(p, q)), rng.random())),
        ("next_token must be a token from 0",),
    ),
    "not clipped, choice": (
        template(replace=lambda p, q, x, rng, *_: rng.choice(len(p), p=p - q)),
        ("your verifier fails for K = 1",),
    ),
    "softmax of the residual": (template(replace=draws(lambda p, q, x: softmax(excess(p, q)))), ("softmax",)),
    "epsilon": (template(replace=draws(lambda p, q, x: excess(p, q) + 1e-10)), ("your residual is off by", "epsilon")),
    "float32 residual": (
        template(replace=draws(lambda p, q, x: residual(p.astype(np.float32), q.astype(np.float32)))),
        ("float32",),
    ),
    "float32": (
        lambda d, rows, rng: rejection(Draft(d.tokens, np.float32(d.probs)), np.float32(rows), rng),
        ("float32",),
    ),
    "float16": (
        lambda d, rows, rng: rejection(Draft(d.tokens, np.float16(d.probs)), np.float16(rows), rng),
        ("float",),
    ),
    "all rows of the draft": (
        template(replace=lambda p, q, x, rng, i, d, rows: sample_token(excess(rows[:-1], d.probs).sum(axis=0), rng)),
        (ALL_ROWS,),
    ),
    "row after": (
        template(replace=lambda p, q, x, rng, i, d, rows: sample_token(residual(rows[i + 1], q), rng)),
        ("i + 1",),
    ),
    "first row": (
        template(replace=lambda p, q, x, rng, i, d, rows: sample_token(residual(rows[0], d.probs[0]), rng)),
        ("first row",),
    ),
    "last drafted row": (
        template(replace=lambda p, q, x, rng, i, d, rows: sample_token(residual(rows[-2], d.probs[-1]), rng)),
        ("last drafted row",),
    ),
    "last row": (
        template(replace=lambda p, q, x, rng, i, d, rows: sample_token(rows[-1], rng)),
        ("on a rejection you drew from the target's last row",),
    ),
    "temperature twice": (
        template(replace=draws(lambda p, q, x: residual(p**2 / (p**2).sum(), q**2 / (q**2).sum()))),
        ("not drawn from max(0, p - q)",),
    ),
}

LAST = "target's last row"
WRONG |= {  # the bonus
    "bonus argmax": (
        template(bonus=lambda d, rows, rng: int(rows[-1].argmax())),
        ("most probable token as the bonus",),
    ),
    "bonus from the draft": (
        template(bonus=lambda d, rows, rng: sample_token([rows[0], *d.probs][-1], rng)),
        ("drew the bonus from the draft",),
    ),
    "bonus one row early": (
        template(bonus=lambda d, rows, rng: sample_token(rows[max(0, len(d.tokens) - 1)], rng)),
        ("row of the last draft token",),
    ),
    "bonus is the last draft token": (
        template(bonus=lambda d, rows, rng: int(d.tokens[-1]) if len(d.tokens) else sample_token(rows[0], rng)),
        ("last draft token once more", LAST),
    ),
    "bonus from a residual": (
        template(bonus=lambda d, rows, rng: sample_token(residual(rows[-1], [rows[0] * 0, *d.probs][-1]), rng)),
        ("bonus from a residual",),
    ),
    "bonus from row 1": (
        template(bonus=lambda d, rows, rng: sample_token(rows[min(1, len(d.tokens))], rng)),
        ("right for K = 1", "target_probs[k]"),
    ),
    "bonus 0": (template(bonus=lambda d, rows, rng: 0), ("bonus",)),
}


@wrong("first rejection ends the round")
def counts_all_that_pass(draft, target_probs, rng):
    passes = [rng.random() * draft.probs[i, x] < target_probs[i, x] for i, x in enumerate(draft.tokens)]
    n = sum(passes)
    last = target_probs[n] if n == len(passes) else residual(target_probs[n], draft.probs[n])
    return Verdict(n, sample_token(last, rng))


@wrong("you count the rejected token", "i + 1")
def counts_the_rejected(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i, x] < target_probs[i, x]:
            return Verdict(i + 1, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


@wrong("one too small")
def counts_too_few(draft, target_probs, rng):
    verdict, k = rejection(draft, target_probs, rng), len(draft.tokens)
    return Verdict(max(0, k - 1), verdict.next_token) if verdict.n_accepted == k else verdict


@wrong("all draft tokens or none")
def all_or_none(draft, target_probs, rng):
    k = len(draft.tokens)
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i, x] < target_probs[i, x]:
            return Verdict(0, sample_token(residual(target_probs[0], draft.probs[0]), rng))
    return Verdict(k, sample_token(target_probs[-1], rng))


@wrong("product of the ratios")
def with_the_product(draft, target_probs, rng):
    joint = 1.0
    for i, x in enumerate(draft.tokens):
        joint *= target_probs[i, x] / draft.probs[i, x]
        if not rng.random() < joint:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


@wrong("K = 0")
def fails_without_a_draft(draft, target_probs, rng):
    if len(draft.tokens) == 0:
        return Verdict(0, 0)
    return rejection(draft, target_probs, rng)


# ------------------------------------------------------------------------------------------- what is returned


def as_generator(draft, target_probs, rng):
    yield rejection(draft, target_probs, rng)


def returns(value):
    return lambda draft, target_probs, rng: value(rejection(draft, target_probs, rng))


FORM = "return Verdict(n_accepted, next_token), two whole numbers"
WRONG |= {
    "None": (lambda *_: None, (FORM, "you returned None")),
    "a tuple": (returns(lambda v: (v.n_accepted, v.next_token)), (FORM, "you returned (")),
    "an array": (returns(lambda v: np.array([v.n_accepted, v.next_token])), (FORM, "you returned array(")),
    "floats": (returns(lambda v: Verdict(float(v.n_accepted), v.next_token + 0.3)), (FORM, ".3,")),
    "n_accepted + 0.9": (returns(lambda v: Verdict(v.n_accepted + 0.9, v.next_token)), (FORM, ".9,")),
    "a token of a float": (returns(lambda v: Verdict(v.n_accepted, float(v.next_token))), (FORM,)),
    "a list of tokens": (returns(lambda v: [v.next_token]), (FORM,)),
    "a generator function": (as_generator, (FORM, "generator")),
    "one token for each row": (
        returns(lambda v: Verdict(v.n_accepted, np.array([v.next_token, v.next_token]))),
        (FORM,),
    ),
    "exchanged": (returns(lambda v: Verdict(v.next_token + 3, v.n_accepted)), ("n_accepted must lie between 0 and",)),
    "-1": (returns(lambda v: Verdict(-1, v.next_token)), ("n_accepted must lie between 0 and",)),
    "not a function": (Verdict(0, 0), ("is called as verifier(draft, target_probs, rng)", "cannot be called")),
}


class Verifier:
    def __call__(self, draft, target_probs, rng):
        return rejection(draft, target_probs, rng)


WRONG["the class"] = Verifier, ("pass a verifier, not its class",)

# ------------------------------------------------------------------------------------------- what is raised or written


@wrong("your verifier fails for K = 0", "assert len(draft.tokens) > 0")
def asserts(draft, target_probs, rng):
    assert len(draft.tokens) > 0
    return rejection(draft, target_probs, rng)


@wrong("your verifier fails for K = 1", "draft.tokens = [0]", "could not be broadcast", "(1, 2)")
def broadcasts(draft, target_probs, rng):
    return np.ones((3, 2)) + np.ones((2, 2))


@wrong("your verifier fails for K = 1", "has no attribute 'rand'")
def old_names(draft, target_probs, rng):
    return Verdict(0, int(rng.rand() < 0.5))


@wrong("your verifier fails for K = 0", "IndexError")
def without_a_draft(draft, target_probs, rng):
    draft.tokens[0]
    return rejection(draft, target_probs, rng)


@wrong("not written yet")
def not_written(draft, target_probs, rng):
    raise NotImplementedError("write it above")


@wrong("your verifier fails", "TypeError", "positional argument")
def two_arguments(draft, target_probs):
    return Verdict(0, 0)


WRITES = "writes to its arguments: work on a copy"


@wrong(WRITES)
def writes_to_the_draft(draft, target_probs, rng):
    verdict = rejection(draft, target_probs, rng)
    draft.tokens[:] = 0
    target_probs[0] = 0
    return verdict


@wrong(WRITES)
def normalises_in_place(draft, target_probs, rng):
    target_probs *= 2
    return Verdict(0, sample_token(target_probs[0], rng))


@wrong(WRITES)
def residual_in_place(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[x] < p[x]:
            p -= q
            return Verdict(i, sample_token(np.maximum(p, 0, out=p), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


class Remembers:
    """Accepts every second time."""

    n = 0

    def __call__(self, draft, target_probs, rng):
        self.n += 1
        if self.n % 2:
            return rejection(draft, target_probs, rng)
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


WRONG["remembers"] = Remembers(), ("between calls",)
WRONG["float(u)"] = (
    template(lambda p, q, x, rng, *_: float(rng.random()) * q[x] < p[x]),
    ("cannot be enumerated", "a uniform number is used as a value", "leave out float(u)"),
)
WRONG["math.log"] = (
    template(lambda p, q, x, rng, *_: __import__("math").log(rng.random()) < np.log(p[x] / q[x])),
    ("cannot be enumerated", "math.log(u)"),
)
WRONG["time"] = (
    template(lambda p, q, x, *_: time.time_ns() % 1000 / 1000 * q[x] < p[x]),
    ("another source of randomness",),
)
WRONG |= {  # two draws where one would do, and others that look right
    "softmax of probabilities": (
        lambda d, rows, rng: rejection(
            Draft(d.tokens, np.exp(d.probs) / np.exp(d.probs).sum(axis=1, keepdims=True)),
            np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True),
            rng,
        ),
        ("probabilities already",),
    ),
    "exp(p - q)": (template(lambda p, q, x, rng, *_: rng.random() < np.exp(p[x] - q[x])), ("probabilities already",)),
    "tested twice": (
        template(lambda p, q, x, rng, *_: rng.random() < p[x] / q[x] and rng.random() < p[x] / q[x]),
        ("square of the ratio",),
    ),
    "a new number each time": (
        template(bonus=lambda d, rows, rng: next((t for t, c in enumerate(rows[-1].cumsum()) if rng.random() < c), 0)),
        ("a new uniform number for each step",),
    ),
    "bonus from all alike": (
        template(bonus=lambda d, rows, rng: int(rng.integers(rows.shape[1]))),
        ("tokens with equal",),
    ),
    "ratio held above 0.01": (
        template(lambda p, q, x, rng, *_: rng.random() < max(0.01, p[x] / q[x])),
        ("is accepted with 0.01",),
    ),
    "seeds another generator": (
        lambda d, rows, rng: rejection(d, rows, np.random.default_rng(int(rng.integers(2**31)))),
        ("not a seed for another generator",),
    ),
    "counts the bonus": (
        returns(lambda v: Verdict(v.n_accepted + 1, v.next_token)),
        ("n_accepted must lie between 0", "bonus is not counted"),
    ),
    "ends Python": (lambda *_: __import__("sys").exit(1), ("your verifier fails", "SystemExit")),
    "recurses for ever": (lambda *a: WRONG["recurses for ever"][0](*a), ("your verifier fails", "RecursionError")),
}


def most(n, row):
    return np.where(row >= np.sort(row)[-n:][0], row, 0)


def cut_residual(n):
    return template(lambda p, q, x, rng, *_: rng.random() < p[x] / q[x], lambda p, q, x, rng, *_: sample_token(
        most(n, residual(p, q)), rng))  # fmt: skip


def cut_bonus(n):
    return template(bonus=lambda d, rows, rng: sample_token(most(n, rows[-1]), rng))


def untested_from(n):
    def verifier(draft, target_probs, rng):
        for i, x in enumerate(draft.tokens):
            if i < n and not rng.random() * draft.probs[i, x] < target_probs[i, x]:
                return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))

    return verifier


WRONG |= {f"residual cut to {n}": (cut_residual(n), ("most probable tokens of the residual",)) for n in (2, 3, 5)}
WRONG |= {f"bonus cut to {n}": (cut_bonus(n), ("most probable tokens of the target's last row",)) for n in (3, 5)}
WRONG |= {f"untested from {n}": (untested_from(n), ("accepted without a test",)) for n in (1, 3)}


def draft_row_before(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[max(i - 1, 0), x] < target_probs[i, x]:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


WRONG["draft row before"] = draft_row_before, ("the draft's row before their own",)
