"""The exercises of notebook 04."""

import numpy as np

from checks import drawing, exercise, refuse_library
from speculative import Sampling


@exercise
def exercise_1(fn):
    refuse_library(fn, "Sampling", "softmax")

    def same(logits, temperature, hint):
        with np.errstate(all="ignore"):
            got = fn(logits.copy(), temperature)
        assert got is not None, "nothing came back: is a return missing?"
        got, right = np.asarray(got), Sampling(temperature=temperature)(logits[None])[0]
        story = f"logits {logits}, temperature {temperature}: expected {right.round(4)}, got {got}"
        unnormalised = got.shape == right.shape and (got > 0).all() and not np.isclose(got.sum(), 1, atol=1e-6)
        is_power = unnormalised and np.allclose(got / got.sum(), right, atol=1e-6)
        assert temperature == 1 or not is_power, f"divide by the sum, after the temperature as well ({story})"
        is_close = got.shape == right.shape and np.allclose(got, right, atol=1e-6)
        assert is_close, f"{hint} ({story})"
        assert got.dtype == np.float64, (
            f"expected float64 also for float32 logits, got {got.dtype}: sums in float32 end below 1"
        )
        error = abs(got - right).max()
        assert error < 1e-9, (
            f"off by {error:.0e}: make the logits float64 before anything else, and add no epsilon ({story})"
        )

    two = np.log(np.array([1, 3], np.float32))
    same(two, 1.0, "exp of each logit over the sum of all")
    same(two, 0.5, "divide the logits by the temperature: below 1 it sharpens")
    same(two, 2.0, "divide the logits by the temperature: above 1 it flattens")
    for sign, T in (1, 1.0), (-1, 1.0), (1, 0.5), (-1, 0.5):
        far = sign * np.array([1000, 1001], np.float32)
        same(far, T, "exp(1000) overflows, exp(-1000) is 0: subtract the largest logit, then divide by the temperature")
    same(np.array([0.3, -1.7, 2.2, 0.9], np.float32), 1.3, "exp of each logit over the sum of all")
    same(two, 0.0, "temperature 0 is a separate case: 1 for the largest logit")
    same(np.array([2, 2], np.float32), 0.0, "at temperature 0 all probability is on one token, of equal ones the first")
    return "right: at every temperature"


@exercise
def exercise_2(fn):
    refuse_library(fn, "Sampling")
    some = np.array([0.1, 0.4, 0.2, 0.3])
    cases = [
        (0.6, "the token that crosses top_p stays", "0.4 and 0.3 reach 0.6: the others go"),
        (0.3, "at least one stays", "0.4 alone reaches 0.3: the others go"),
        (1.0, "1: all", ""),
    ]
    given = some.copy()
    assert fn(given, 0.6) is not None, "nothing came back: is a return missing?"
    assert (given == some).all(), "your function writes to the probabilities that it was given: work on a copy"
    for top_p, too_few, too_many in cases:
        with np.errstate(all="ignore"):
            got = np.asarray(fn(some.copy(), top_p))
        right = Sampling(top_p=top_p)(np.log(some)[None])[0]
        story = f"top_p = {top_p}: expected {right.round(3)}, got {got.round(3)}"
        assert got.shape == right.shape, f"the vocabulary keeps its size: {story}"
        assert not np.allclose(got, np.sort(right)[::-1]), f"each token keeps its position: {story}"
        in_order = np.where(np.cumsum(some) - some < top_p, some, 0)
        assert np.allclose(got, right) or not np.allclose(got, in_order / in_order.sum()), (
            f"sort first: the most probable tokens are kept, not those with the lowest ids: {story}"
        )
        above = np.where(some >= top_p, some, 0)  # min-p without its factor
        assert (
            top_p == 1 or np.allclose(got, right) or not np.allclose(np.nan_to_num(got), above / max(above.sum(), 1e-9))
        ), f"top_p is a bound on the sum of what is kept, not on each probability: {story}"
        least = np.array([0.1, 0, 0.2, 0.3] if top_p == 0.6 else [0.1, 0, 0.2, 0])
        assert top_p == 1 or not np.allclose(got, least / least.sum()), (
            f"sort from the largest down: you keep the least probable tokens: {story}"
        )
        n, n_right = np.count_nonzero(got), np.count_nonzero(right)
        assert n == n_right, f"{too_few if n < n_right else too_many}: {story}"
        assert ((got > 0) == (right > 0)).all(), (
            f"other tokens than the most probable are kept: entry i of the sorted order is token order[i]: {story}"
        )
        assert np.isclose(got.sum(), 1), f"divide the rest by its sum: {story}"
        assert np.allclose(got, right), story
    half = np.array([0.25, 0.5, 0.25])
    got = np.asarray(fn(half.copy(), 0.5))
    hint = "the most probable are kept until their sum reaches top_p, and here the first one reaches it"
    assert np.allclose(got, [0, 1, 0]), f"{hint}: probs = {half}, top_p = 0.5: expected [0, 1, 0], got {got}"
    got = np.asarray(fn(half.copy(), 0.6))
    hint = "the sum reaches 0.6 with the second token: of two equal tokens one stays"
    right = [[1 / 3, 2 / 3, 0], [0, 2 / 3, 1 / 3]]
    assert any(np.allclose(got, one) for one in right), f"{hint}: probs = {half}, expected {right[0]}, got {got}"
    rng = drawing(0)
    many, top_p = rng.dirichlet(np.ones(50)), rng.uniform(0.5, 0.9)
    right = Sampling(top_p=top_p)(np.log(many)[None])[0]
    assert np.allclose(fn(many.copy(), top_p), right), "right for 4 tokens, wrong for 50"
    return "right: the most probable tokens, each at its own index"


@exercise
def exercise_3(fn):
    refuse_library(fn, "sample_token")
    some = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    drawn = [fn(some.copy(), (i + 0.5) / 1000) for i in range(1000)]
    assert drawn[0] is not None, "nothing came back: is a return missing?"
    whole = all(np.ndim(token) == 0 and np.asarray(token).dtype.kind in "iu" for token in drawn)
    assert whole, f"expected one token id, a whole number; got {drawn[0]!r}"
    again = [fn(some.copy(), (i + 0.5) / 1000) for i in range(1000)]
    assert drawn == again, "the same u draws different tokens: u is the random number, draw no other"
    shares = np.bincount(drawn, minlength=6) / 1000
    assert np.allclose(shares, some, atol=0.002), f"of 1,000 u, expected the shares {some}, got {shares}"
    assert fn(some.copy(), 0.0) in (0, 1), "the intervals are in the order of the token ids: do not sort"
    assert fn(some.copy(), 0.0) == 1, "u = 0 drew a token of probability 0: look for C > u, not C >= u"
    assert fn(some.copy(), 0.25) == 3, "u = 0.25 is the upper end of token 1, which is not in its interval"
    short = some * (1 - 1e-6)  # like a sum in float32
    for u in (1 - 1e-7, 1 - 2**-53):
        token = fn(short.copy(), u)
        assert token is not None and token < 6, (
            f"u = {u} is beyond the last sum, {short.sum()}: there is no token {token}"
        )
        assert short[token] > 0, f"u = {u} drew token {token} of probability 0: the last possible is 4"
    return "right: at both ends as well"
