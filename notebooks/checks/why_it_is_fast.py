"""The exercises of notebook 06."""

import numpy as np

from checks import drawing, exercise, more, refuse_library
from speculative import theory


@exercise
def exercise_1(fn):
    refuse_library(fn, "expected_tokens", "speedup")
    cases = [(0.6, 3), (0.8, 4), (0.0, 5), (0.5, 0), (1.0, 4)]
    for a, k in [*cases, *more(lambda rng: (round(rng.uniform(0.2, 0.9), 2), int(rng.integers(1, 9))))]:
        with np.errstate(all="ignore"):
            try:
                got = fn(a, k)
            except ZeroDivisionError:
                got = np.nan
        assert got is not None, "nothing came back: is a return missing?"
        assert np.ndim(got) == 0, "expected one number: is a sum missing?"
        chances = [a**n * (1 - a) for n in range(k)] + [a**k]  # that n draft tokens are accepted
        right = sum((n + 1) * chance for n, chance in enumerate(chances))
        if not np.isclose(got, right):
            story = f"alpha = {a}, K = {k}: expected {right:.4f}, got {got:.4f}"
            assert np.isfinite(got), f"alpha = 1 must work as well: {story}"
            assert not np.isclose(got, right - 1), f"the target's own token is missing: {story}"
            assert not np.isclose(got, right - a**k), f"one power of alpha is missing: {story}"
            untested = np.isclose(got, [1 + k * a, k * a]).any()
            assert not untested, f"draft tokens after a rejection are never tested: {story}"
            all_or_none = np.isclose(got, [a**k, k * a**k, (k + 1) * a**k]).any()
            assert not all_or_none, f"alpha^K is the probability that all are accepted; fewer count as well: {story}"
            each_once = f"draft token i is accepted with alpha^i: each power counts once: {story}"
            assert not np.isclose(got, 1 + k * a**k), each_once
            assert a == 1 or not np.isclose(got, 1 / (1 - a)), f"that is a sum without end; K draft tokens: {story}"
            assert not np.isclose(got, k + 1), f"that is the most that a call yields, not the mean: {story}"
            assert not np.isclose(got, right + a ** (k + 1)), f"one power of alpha too many: {story}"
            assert abs(got - right) > 0.05, f"an estimate from random draws? The sum is exact: {story}"
            raise AssertionError(story)
    return "right: 1 + alpha + ... + alpha^K"


@exercise
def exercise_2(fn):
    refuse_library(fn, "best_K", "speedup")
    cases = [
        (0.8, 0.1, (1, 1.1, 1.1, 1.1, 2, 2), "a round of K draft tokens is a pass for K + 1 tokens: v[K]"),
        (0.9, 0.1, (1, 1.05, 1.1, 1.15, 1.2, 1.25), "the largest K for which v has an entry counts as well"),
        (0.7, 0.3, (1, 1, 1, 1, 1, 1), "each draft token costs c"),
        (0.3, 0.5, (1, 1, 1, 1), "a draft with alpha < c does not pay: K = 0"),
        (0.8, 0.05, (1, 2, 2.05, 2.1, 2.1), "look at all K: a later one may help where K = 1 does not"),
        (0.45, 0.5, (1, 1, 1), "a round of K draft tokens costs K * c"),
        (0.6, 0.5, (1, 1, 1), "a round of K draft tokens costs K * c"),
        *more(
            lambda rng: (
                *rng.uniform((0.3, 0), (0.9, 0.3)).round(2).tolist(),
                (1, *(1 + np.sort(rng.random(5))).round(2).tolist()),
                "look at all K",
            )
        ),
    ]
    answers = [fn(a, cost, prices) for a, cost, prices, _ in cases]
    assert answers[0] is not None, "nothing came back: is a return missing?"
    whole = all(np.ndim(K) == 0 and K == int(K) for K in answers)
    assert whole, f"return K, the number of draft tokens, and not the speedup: for {cases[0][:3]} you get {answers[0]}"
    right = [theory.best_K(a, cost, v) for a, cost, v, _ in cases]
    plus_one = [K + 1 for K in right]
    assert answers != plus_one, "that is m = K + 1, the number of tokens in the pass: return K, the draft tokens"
    wrong = {
        "the target's own token is missing: 1 + alpha + ... + alpha^K": lambda a, K: sum(a**i for i in range(K)) or 1,
        "draft tokens after a rejection are never tested: 1 + alpha + ... + alpha^K": lambda a, K: 1 + K * a,
        "draft token i is accepted with alpha^i: 1 + alpha + ... + alpha^K": lambda a, K: 1 + K * a**K,
    }
    smallest = [min(range(len(v)), key=lambda K: theory.speedup(a, K, c, v)) for a, c, v, _ in cases]
    assert answers != smallest, "the largest tokens / cost, not the smallest"
    for hint, E in wrong.items():
        by_E = [max(range(len(v)), key=lambda K: E(a, K) / (v[K] + K * cost)) for a, cost, v, _ in cases]
        assert answers != by_E, f"wrong is not the cost, but the number of tokens: {hint}"
    by_gain = [max(range(len(v)), key=lambda K: theory.expected_tokens(a, K) - v[K] - K * c) for a, c, v, _ in cases]
    assert answers != by_gain, "the speedup is a ratio: divide the tokens by the cost, and do not subtract it"
    for (a, cost, prices, hint), got, best in zip(cases, answers, right):
        assert got == best, f"{hint} (alpha = {a}, c = {cost}, v = {prices}: expected {best}, got {got})"
    return "right: the K with the best speedup, 0 included"


@exercise
def exercise_3(fn):
    rng = drawing(0)
    accepted = np.cumprod(rng.random((20_000, 4)) < 0.8, axis=1).sum(axis=1).tolist()
    many = [(4, n) for n in accepted]
    cases = (
        ([(4, 4), (4, 2), (4, 0), (3, 1)], 0.7),
        ([(4, 4), (4, 2), (4, 0)], 0.75),
        ([(3, 3), (2, 2)], 1.0),
        ([(0, 0), (1, 0)], 0.0),
    )
    for rounds, right in cases:
        got, n_accepted = fn(list(rounds)), sum(n for _, n in rounds)
        assert got is not None, "nothing came back: is a return missing?"
        assert np.ndim(got) == 0, "expected one number for all rounds"
        story = f"{rounds}: expected {right:.3f}, got {got:.3f}"
        if not np.isclose(got, right):
            of_drafted = np.isclose(got, n_accepted / sum(k for k, _ in rounds))
            assert not of_drafted, f"draft tokens after a rejection were never tested: {story}"
            assert not np.isclose(got, n_accepted / len(rounds)), f"this is accepted per round: {story}"
            in_each = np.isclose(got, n_accepted / (n_accepted + len(rounds)))
            assert not in_each, f"a round that accepts all of its draft tokens has no rejection: {story}"
            shares = np.isclose(got, np.mean([n / (n + (n < k)) if k else 0 for k, n in rounds]))
            assert not shares, f"not the mean of the rounds' shares: a round with more tests counts for more: {story}"
            raise AssertionError(f"count one test for each draft token up to the first rejection: {story}")
    for rounds in [], [(0, 0)]:
        try:
            got = fn(rounds)
        except ZeroDivisionError:
            got = "a ZeroDivisionError"
        assert got != got, f"if nothing was tested the answer is nan: {rounds}: expected nan, got {got}"
    naive = sum(accepted) / (4 * len(accepted))
    assert abs(fn(many) - 0.8) < 0.01, f"expected about 0.8 for many rounds, got {fn(many):.3f}"
    return f"right: accepted / (accepted + rejected). 20,000 rounds with alpha = 0.8: accepted / drafted is {naive:.3f}"
