"""The exercises of notebook 03."""

import functools
import math

import numpy as np

import gpt2np
from checks import asked, drawing, exercise, more, refuse_library
from gpt2np.reference import softmax
from speculative.testing import check_language_model

TEXT = 'The old woman said to the wolf, "Where are you going?" and the wolf'


@functools.cache
def bundled():
    return gpt2np.load("tiny-draft")


def in_common(cached, tokens):
    return next((n for n, (a, b) in enumerate(zip(cached, tokens)) if a != b), min(len(cached), len(tokens)))


@exercise
def exercise_1(fn):
    no_logits = "the cache has no logits: the last n_last tokens have to be run"
    cases = [
        ([5, 6, 7, 8], [5, 6, 9], 1, 2, "they differ at position 2, so positions 0 and 1 stay"),
        ([], [5], 1, 0, "in an empty cache there is nothing to keep"),
        ([5, 6], [5, 6, 7, 8], 1, 2, "a cache that is shorter than the sequence may stay whole"),
        ([5, 6, 7], [9, 6, 7], 1, 0, "after the first difference, equal tokens have a different past"),
        ([5, 6, 7], [6, 7], 1, 0, "the same tokens at other positions have other keys"),
        ([5, 6, 7], [5, 6, 7], 1, 2, no_logits),
        ([5, 6, 7, 8], [5, 6, 7, 8], 3, 1, no_logits),
        ([5, 6, 7, 8], [5, 6, 7, 4, 4], 2, 3, "at most len(tokens) - n_last stay; here that is 3"),
        ([5, 6, 7, 8], [5, 6], 1, 1, "the sequence may be shorter than the cache"),
        *more(lambda rng: (a := rng.integers(1, 3, 6).tolist(), b := rng.integers(1, 3, 5).tolist(), 1,
                           min(in_common(a, b), 4), "the common prefix, and no more than len(tokens) - n_last")),
    ]  # fmt: skip
    given = [(list(cached), list(tokens)) for cached, tokens, *_ in cases]
    answers = [fn(*lists, n_last) for lists, (_, _, n_last, *_) in zip(given, cases)]
    assert answers[0] is not None, "nothing came back: is a return missing?"
    taken_off = [max(0, in_common(cached, tokens) - n_last) for cached, tokens, n_last, *_ in cases]
    assert answers != taken_off, (
        "n_last is not taken off the common prefix: it limits what stays to len(tokens) - n_last, "
        "since the last n_last tokens have to be run"
    )
    for yours, lists, (cached, tokens, n_last, right, hint) in zip(answers, given, cases):
        assert yours == right, f"{hint}: {cached}, {tokens}, n_last {n_last}: expected {right}, got {yours}"
        assert lists == (cached, tokens), "your function changed its arguments"
    return "right: the common prefix, and never so much that nothing is left to run"


@exercise
def exercise_2(fn, n_seq=6, d_head=4):
    q, k, v = drawing(0).standard_normal((3, n_seq, d_head))
    root = math.sqrt(d_head)

    def rows(q, visible):  # row i sees the tokens where visible[i] is True
        weights = np.where(visible, np.exp(q @ k.T / root), 0)
        with np.errstate(invalid="ignore"):
            return weights / weights.sum(axis=-1, keepdims=True) @ v

    def shifted(shift):
        return np.tri(n_seq, k=shift, dtype=bool)[-n_new:]

    for n_new in 1, 3, n_seq:
        new, mask = q[-n_new:], np.tri(n_seq, dtype=bool)[-n_new:]
        right, yours = rows(new, mask), fn(new, k, v)
        assert yours is not None, "nothing came back: is a return missing?"
        yours = np.asarray(yours)
        assert yours.shape == right.shape, f"expected the shape {right.shape}, got {yours.shape}"
        if np.allclose(yours, right):
            continue
        scores = new @ k.T / root
        with np.errstate(all="ignore"):
            times_inf = softmax(scores * np.where(mask, 1, -np.inf)) @ v
        for hint, wrong in {
            "a new token sees later new tokens: mask them": rows(new, mask | True),
            "row 0 is at position n_seq - n_new, after the cached ones": rows(new, np.tri(n_new, n_seq) > 0),
            "the new tokens see the cached ones as well": rows(new, mask & (np.arange(n_seq) >= n_seq - n_new)),
            "the mask is transposed: a token sees those up to itself": rows(new, shifted(-1) ^ True),
            "the mask is off by one: a token must not see the next one": rows(new, shifted(1)),
            "the mask is off by one: a token also sees itself": rows(new, shifted(-1)),
            "masked scores are -inf, not 0: exp(0) = 1 still gives them weight": softmax(np.where(mask, scores, 0)) @ v,
            "mask the scores before the softmax, or the weights of a row do not sum to 1": np.where(
                mask, softmax(scores), 0
            )
            @ v,
            "the softmax is of each row of the scores; in yours all weights together sum to 1": softmax(
                np.where(mask, scores, -np.inf).ravel()
            ).reshape(scores.shape)
            @ v,
            "a score times -inf may be +inf: add -inf, or choose with np.where": times_inf,
            "the softmax goes over the keys, along each row of the scores": softmax(np.where(mask, scores, -np.inf).T).T
            @ v,
            "the softmax is missing: a row of weights sums to 1": np.where(mask, scores, 0) @ v,
            "the scores are not divided by √d_head": rows(root * new, mask),
            "divide by √d_head, not by d_head": rows(new / root, mask),
            "divide by √d_head; you multiplied by it": rows(d_head * new, mask),
            "divide by √d_head, which is √64 in GPT-2 but not here: q.shape[-1] says": rows(root * new / 8, mask),
            "divide by √d_head, the width of a query, not by the number of tokens": rows(
                new * root / math.sqrt(n_seq), mask
            ),
        }.items():
            assert not np.allclose(yours, wrong, equal_nan=True), hint
        raise AssertionError(f"not the result of a pass over the whole sequence:\n{yours}\nexpected\n{right}")
    far, seen = np.copysign(100_000, -q[0] @ k[0]) * q, np.tri(n_seq, dtype=bool)  # token 0 has a large negative score
    scores = far @ k.T / root
    alone = v[np.where(seen, scores, -np.inf).argmax(axis=-1)]  # the largest score by far has all the weight
    with np.errstate(all="ignore"):
        yours = fn(far, k, v)
    if not np.allclose(yours, alone):
        for number in -100, -1000, -10_000:
            assert not np.allclose(yours, softmax(np.where(seen, scores, number)) @ v), (
                "mask with -inf: a number such as -1000 may be the largest score of a row"
            )
        raise AssertionError("exp overflows: subtract from each row of scores the largest of those that the row sees")
    return "right: the same as a pass over the whole sequence, for 1, 3 and all tokens new"


@exercise
def exercise_3(cls):
    refuse_library(cls, "GPT2")
    model, tokenizer = bundled()
    params, hparams, text, run = model.params, model.hparams, tokenizer.encode(TEXT), []

    class Rows:  # in place of wte: counts the tokens that are looked up, that is, run
        T = params["wte"].T

        def __getitem__(self, some):
            run.append(len(some))
            return params["wte"][some]

    check_language_model(cls(params, hparams), seed=asked["seed"])  # the same logits, whatever was asked before
    counted = cls({**params, "wte": Rows()}, hparams)
    counted(text), counted(text + [1, 2, 3], 4), counted(text + [1, 5])
    least, n = [len(text), 4, 1], len(text)
    assert run != [n, n + 3, n + 2], (
        f"every call runs its whole sequence, {run} tokens: keep the common prefix in the cache"
    )
    assert run == least, f"of three calls {least} tokens have to be run; yours ran {run}"

    counted(text)
    text[0] += 1  # the list belongs to the caller
    right = gpt2np.forward(text, params, hparams.n_head, 1)
    hint = "the caller changed the list after the call, and your tokens with it: keep a copy"
    assert np.allclose(counted(text), right, atol=1e-4), hint
    text = np.array(text)
    counted(text)
    text[0] -= 1  # and so does an array
    right = gpt2np.forward(text, params, hparams.n_head, 1)
    assert np.allclose(counted(text), right, atol=1e-4), (
        hint + ": np.asarray of an array is that array, list(tokens) a copy"
    )
    return "right: after any earlier calls, and no token is run without need"
