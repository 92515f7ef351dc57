"""Verifiers as students write them: RIGHT in many styles, and NOTES, which are exact and told something."""

from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np

from speculative import Verdict, block, exact_match, rejection, residual, sample_token

RIGHT, NOTES = {}, {}  # name -> verifier, (verifier, words of the note)


def right(fn):
    RIGHT[fn.__name__] = fn
    return fn


def note(*words):
    def register(fn):
        NOTES[fn.__name__] = fn, words
        return fn

    return register


RIGHT |= {"the library's": rejection, "block": block, "exact_match": exact_match, "partial": partial(rejection)}


@right
def plain(draft, target_probs, rng):
    n = 0
    for x, p, q in zip(draft.tokens, target_probs, draft.probs):
        if rng.random() > min(1.0, p[x] / q[x]) or p[x] == 0:
            r = np.maximum(p - q, 0)
            r /= r.sum()
            return Verdict(n, int(rng.choice(len(r), p=r)))
        n += 1
    return Verdict(n, int(rng.choice(target_probs.shape[1], p=target_probs[n])))


@right
def vectorised_cumprod(draft, target_probs, rng):
    k = len(draft.tokens)
    ratio = target_probs[np.arange(k), draft.tokens] / draft.probs[np.arange(k), draft.tokens]
    n = int(np.cumprod(rng.random(k) < ratio).sum())
    final = target_probs[n].copy()
    if n < k:
        final = np.clip(final - draft.probs[n], 0, None)
    return Verdict(n, int(rng.choice(len(final), p=final / final.sum())))


@right
def with_fractions(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens.tolist()):
        p, q = [Fraction(float(v)) for v in target_probs[i]], [Fraction(float(v)) for v in draft.probs[i]]
        if not rng.random() < p[x] / q[x]:
            rest = [max(Fraction(0), a - b) for a, b in zip(p, q)]
            return Verdict(i, rng.choice(len(p), p=[float(r / sum(rest)) for r in rest]))
    return Verdict(len(draft.tokens), rng.choice(target_probs.shape[1], p=target_probs[-1]))


@right
def in_logs(draft, target_probs, rng):
    log_p, log_q = np.log(target_probs), np.log(draft.probs)
    for i, x in enumerate(draft.tokens):
        if np.log(rng.random()) >= log_p[i, x] - log_q[i, x]:
            r = np.where(log_p[i] > log_q[i], np.exp(log_p[i]) - np.exp(log_q[i]), 0)
            return Verdict(i, int(np.searchsorted(np.cumsum(r) / r.sum(), rng.random(), side="right")))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


@right
def recursive(draft, target_probs, rng):
    if len(draft.tokens) == 0:
        return Verdict(0, sample_token(target_probs[0], rng))
    x = draft.tokens[0]
    if rng.uniform(0, draft.probs[0, x]) >= target_probs[0, x]:
        return Verdict(0, sample_token(residual(target_probs[0], draft.probs[0]), rng))
    rest = recursive(SimpleNamespace(tokens=draft.tokens[1:], probs=draft.probs[1:]), target_probs[1:], rng)
    return Verdict(rest.n_accepted + 1, rest.next_token)


@right
def with_item_and_prints(draft, target_probs, rng):
    us = rng.random(len(draft.tokens))
    for i, x in enumerate(draft.tokens):
        u = us[i].item()
        f"u = {u:.3f}"
        if u >= target_probs[i, x].item() / draft.probs[i, x].item():
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


@right
def in_python_lists(draft, target_probs, rng):
    p, q, tokens = target_probs.tolist(), draft.probs.tolist(), draft.tokens.tolist()

    def draw(weights):
        u = rng.random() * sum(weights)
        for token, weight in enumerate(weights):
            u = u - weight
            if u < 0:
                return token
        return max(t for t, w in enumerate(weights) if w > 0)

    while tokens:
        x = tokens.pop(0)
        n = len(draft.tokens) - len(tokens) - 1
        if not rng.random() < p[n][x] / q[n][x]:
            return Verdict(n, draw([max(0, a - b) for a, b in zip(p[n], q[n])]))
    return Verdict(len(draft.tokens), draw(p[-1]))


@right
def seeds_numpy_for_nothing(draft, target_probs, rng):
    np.random.seed(0)
    return rejection(draft, target_probs, rng)


@right
def by_multinomial(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if not rng.binomial(1, min(1, target_probs[i, x] / draft.probs[i, x])):
            return Verdict(i, int(rng.multinomial(1, residual(target_probs[i], draft.probs[i])).argmax()))
    return Verdict(len(draft.tokens), int(rng.multinomial(1, target_probs[-1]).argmax()))


@right
def divides_zero_by_zero(draft, target_probs, rng):
    excess = np.maximum(target_probs[: len(draft.tokens)] - draft.probs, 0)
    rests = excess / excess.sum(axis=1, keepdims=True)  # NaN where p = q, and never used then
    ratios = target_probs[: len(draft.tokens)] / draft.probs
    for i, x in enumerate(draft.tokens):
        if not rng.random() < np.minimum(1, ratios[i])[x]:
            return Verdict(i, int(rng.choice(len(rests[i]), p=rests[i])))
    return Verdict(len(draft.tokens), int(rng.choice(len(target_probs[-1]), p=target_probs[-1])))


@right
def replacement_drawn_first(draft, target_probs, rng):
    k = len(draft.tokens)
    spare = [sample_token(residual(target_probs[i], draft.probs[i]), rng) for i in range(k)]
    spare.append(sample_token(target_probs[k], rng))
    n = next((i for i, x in enumerate(draft.tokens) if rng.random() * draft.probs[i, x] >= target_probs[i, x]), k)
    return Verdict(n, spare[n])


@right
def ends_below_one(draft, target_probs, rng):
    """cumsum may end at 1 - 1e-16, and np.searchsorted then gives a token too many, with that probability."""
    n = 0
    for i, x in enumerate(draft.tokens):
        if not rng.random() < target_probs[i][x] / draft.probs[i][x]:
            break
        n += 1
    p = target_probs[n]
    if n < len(draft.tokens):
        p = np.maximum(0, p - draft.probs[n])
        p = p / p.sum()
    return Verdict(n, int(np.searchsorted(p.cumsum(), rng.random(), side="right")))


@right
def racing(draft, target_probs, rng):
    """Sample and match, each token by a race."""
    own = [int(np.argmin(rng.exponential(size=len(p)) / p)) for p in target_probs]
    n = next((i for i, x in enumerate(draft.tokens) if own[i] != x), len(draft.tokens))
    return Verdict(n, own[n])


@right
def with_cumsum_and_argmax(draft, target_probs, rng):
    """Returns an object of its own; `rng.uniform`, `np.where`."""

    def draw(weights):
        return int(np.argmax(np.cumsum(weights) / np.sum(weights) > rng.random()))

    i = 0
    while i < len(draft.tokens):
        p, q, x = target_probs[i], draft.probs[i], draft.tokens[i]
        if rng.uniform() * q[x] < p[x]:
            i += 1
        else:
            return SimpleNamespace(n_accepted=i, next_token=draw(np.where(p > q, p - q, 0)))
    return SimpleNamespace(n_accepted=i, next_token=draw(target_probs[i]))


@right
def with_numpy_integers(draft, target_probs, rng):
    verdict = rejection(draft, target_probs, np.random.default_rng(rng))  # a Generator is passed through
    return Verdict(np.int64(verdict.n_accepted), np.int32(verdict.next_token))


@right
def matching_by_choice(draft, target_probs, rng):
    for i, p in enumerate(target_probs):
        token = rng.choice(len(p), p=p)
        if i == len(draft.tokens) or token != draft.tokens[i]:
            return Verdict(i, token)
    return None


@right
def block_from_the_last(draft, target_probs, rng):
    """Block verification with all uniform numbers drawn first, and the search from the end."""
    k, joint = len(draft.tokens), [1.0]
    for i, x in enumerate(draft.tokens):
        joint.append(min(1.0, joint[-1] * target_probs[i, x] / draft.probs[i, x]))
    eta = rng.random(k)
    for i in range(k, 0, -1):
        rest = np.clip(joint[i] * target_probs[i] - draft.probs[i], 0, None).sum() if i < k else 0
        passes = joint[i] if i == k else 1.0 if rest + 1 - joint[i] == 0 else rest / (rest + 1 - joint[i])
        if eta[i - 1] < passes:
            break
    else:
        i = 0
    if i == k:
        return Verdict(k, sample_token(target_probs[k], rng))
    return Verdict(i, sample_token(residual(joint[i] * target_probs[i], draft.probs[i]), rng))


class AsClass:
    def __init__(self):
        self.accepted = []

    def __call__(self, draft, target_probs, rng):
        verdict = rejection(draft, target_probs, rng)
        self.accepted.append(verdict.n_accepted)  # statistics, which change nothing
        return verdict

    def method(self, draft, target_probs, rng):
        return self(draft, target_probs, rng)


RIGHT |= {"a class": AsClass(), "a method": AsClass().method}

# ------------------------------------------------------------------------------------------- exact, and told something


@note("never accepts a draft token")
def never_accepts(draft, target_probs, rng):
    return Verdict(0, sample_token(target_probs[0], rng))


@note("wastes the bonus")
def last_guess_as_bonus(draft, target_probs, rng):
    verdict, k = rejection(draft, target_probs, rng), len(draft.tokens)
    return Verdict(k - 1, int(draft.tokens[-1])) if k and verdict.n_accepted == k else verdict


@note("exactly 0", 'side="right"')
def first_token_at_zero(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if not rng.random() < target_probs[i][x] / draft.probs[i][x]:
            rest = residual(target_probs[i], draft.probs[i])
            return Verdict(i, int(np.searchsorted(rest.cumsum(), rng.random())))
    return Verdict(len(draft.tokens), int(np.searchsorted(target_probs[-1].cumsum(), rng.random())))
