"""The exercises of notebook 05."""

import numpy as np

from checks import exercise
from speculative import exact_distribution, sample_token

p = np.array([0.4, 0.3, 0.2, 0.1])  # king, fox, wolf, bear
q = np.array([0.1, 0.2, 0.4, 0.3])


def accepted(p, q, rng):
    """Whether one draft token is accepted."""
    x = sample_token(q, rng)
    return bool(rng.random() * q[x] < p[x])


@exercise
def exercise_1(fn):
    rng = np.random.default_rng(1)
    pairs = [(p, q), rng.dirichlet(np.ones(5), size=2), (np.array([0.5, 0.5, 0]), np.array([1.0, 0, 0]))]
    for P, Q in pairs:
        with np.errstate(all="ignore"):
            got, ratio = fn(P, Q), np.nan_to_num(np.minimum(1, P / Q))
        assert got is not None and np.ndim(got) == 0, "expected one number: is a return, or a sum, missing?"
        right = exact_distribution(lambda rng, P=P, Q=Q: accepted(P, Q, rng))[True]
        if not np.isclose(got, right):
            twice = np.isclose(got, 1 - np.abs(P - Q).sum())
            assert np.isfinite(got), "q(x) = 0 makes p(x) / q(x) infinite or NaN: do it without dividing"
            assert not np.isclose(got, P @ Q), "that is how often independent draws from p and q agree"
            assert not np.isclose(got, ratio.mean()), "words are not guessed equally often: weigh with q"
            assert not np.isclose(got, P @ ratio), "guesses are drawn from q: weigh with q, not with p"
            assert not twice, "|p - q| counts each rejected guess twice, as surplus and as missing"
            assert not np.isclose(got, right / len(P)), "the kept parts of all words add up: a sum, not a mean"
            assert not np.isclose(got, 1 - right), "that is the chance to be rejected"
            story = f"for p = {P.round(2)}, q = {Q.round(2)} it is {right:.6f}, not {got:.6f}"
            random = f"{story}: an estimate from random draws? A sum over the words is exact"
            assert abs(got - right) > 0.02, random
            raise AssertionError(story)
    return "right: the green part of the picture"
