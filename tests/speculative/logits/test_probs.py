"""From logits to probabilities to a token: temperature, truncation, penalty and draws, each by hand."""

import itertools
import math

import numpy as np
import pytest
from helpers import Uniform
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Gumbel, Sampling, acceptance_probability, residual, sample_token
from speculative.logits.probs import sample_distinct
from speculative.rng import Recorder
from speculative.tree import path

ALMOST_ONE = 1 - 2**-53  # the largest number that Generator.random returns

weights = st.lists(st.integers(0, 20), min_size=2, max_size=8).filter(any)


def normalised(integers):
    return np.array(integers, float) / sum(integers)


# ------------------------------------------------------------------------------------------------ sampling


def by_definition(logits, before, temperature, top_k, top_p, min_p, penalty):
    """The probabilities of one row: penalty, temperature, top-k, top-p, min-p; of equal tokens the lower first."""
    z = [(x / penalty if x > 0 else x * penalty) if token in before else x for token, x in enumerate(logits)]
    order = sorted(range(len(z)), key=lambda token: (-z[token], token))
    if temperature == 0:
        return [float(token == order[0]) for token in range(len(z))]
    weights = [math.exp((x - max(z)) / temperature) for x in z]
    kept = order[: top_k or len(z)]
    reached = np.cumsum([weights[token] for token in kept]) / math.fsum(weights[token] for token in kept)
    if top_p < 1:  # the token that crosses it stays
        kept = kept[: int((reached < top_p).sum()) + 1]
    kept = [token for token in kept if weights[token] >= min_p]  # relative to the most probable, which has weight 1
    total = math.fsum(weights[token] for token in kept)
    return [weights[token] / total * (token in kept) for token in range(len(z))]


SETTINGS = st.tuples(
    st.sampled_from([0, 0.5, 1, 2.0, 3.7]), st.integers(0, 6), st.sampled_from([1, 0.01, 0.41, 0.61, 0.85]),
    st.sampled_from([0, 0.1, 0.3, 0.51, 1]), st.sampled_from([1, 1.5, 0.7, 3.0]),
)  # fmt: skip


@given(SETTINGS, st.integers(0, 2**32), st.integers(0, 4), st.booleans())
@settings(deadline=None, derandomize=True, max_examples=300)
def test_every_row_is_that_of_the_definition_after_the_text_on_its_path(options, seed, n_drafted, is_tree):
    """Logits with ties, negative ones among them; a draft of some tokens, a chain or a tree."""
    rng = np.random.default_rng(seed)
    logits = rng.integers(-3, 4, (n_drafted + 1, 5)).astype(np.float32)
    tokens = rng.integers(0, 5, 2 + n_drafted).tolist()
    parents = [int(rng.integers(-1, i)) if is_tree else i - 1 for i in range(n_drafted)]
    logits.setflags(write=False)
    rows = Sampling(*options)(logits, tokens, parents) if is_tree else Sampling(*options)(logits, tokens)
    assert rows.dtype == np.float64
    for row, node in zip(range(n_drafted + 1), range(-1, n_drafted)):
        before = [*tokens[:2], *(tokens[2 + i] for i in path(parents, node))]
        wanted = by_definition(logits[row].astype(float).tolist(), before, *options)
        np.testing.assert_allclose(rows[row], wanted, rtol=1e-12, atol=0)


def test_at_a_threshold_and_between_equal_tokens():
    """To reach top_p is enough, so is min_p; also in a row so long that an unstable sort would mix the tokens."""
    ties = np.tile([0.0, 1.0], 500)[None]
    np.testing.assert_array_equal(Sampling(top_p=0.5)(np.log([[0.25, 0.5, 0.25]])), [[0, 1, 0]])
    assert (Sampling(top_p=1.0, min_p=1e-300)(np.array([[0.0, -50.0, -100.0]])) > 0).all()  # too rare for the sum
    np.testing.assert_array_equal(Sampling(min_p=0.5)(np.log([[0.5, 0.25, 0.25]])), [[0.5, 0.25, 0.25]])
    np.testing.assert_array_equal(Sampling(min_p=1)(np.zeros((1, 4))), [[0.25] * 4])
    assert np.flatnonzero(Sampling(top_k=3)(ties)[0]).tolist() == [1, 3, 5]
    assert np.flatnonzero(Sampling(top_k=502)(ties)[0]).tolist() == sorted([0, 2, *range(1, 1000, 2)])


def test_extremes_stay_exact():
    """Logits, temperatures and penalties."""
    logits = np.array([[1e30, -1e30, -np.inf]], np.float32)
    np.testing.assert_array_equal(Sampling()(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=5e-324)(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=1e-300)(np.array([[1, 0, 1]])), [[0.5, 0, 0.5]])
    for widest in (1e-100, 1e100):
        assert np.isfinite(Sampling(repetition_penalty=widest)(np.array([[2.0, -2.0, 1.0]] * 2), [1, 0])).all()


OUT_OF_RANGE = [
    ("temperature", [-1, math.inf, math.nan, "0.7", None], "a temperature of 0 or more"),
    ("top_k", [-1, 2.5, 2.0, None], "a top_k of 1 or more, or 0 for all tokens"),
    ("top_p", [0, 1.1, "1"], "a top_p above 0 and at most 1"),
    ("min_p", [-0.1, 1.1, math.nan, None], "a min_p from 0 to 1"),
    ("repetition_penalty", [0, -1, [1]], "a repetition_penalty above 0"),
    ("repetition_penalty", [1e-308, 1e308], "a repetition_penalty from 1e-100 to 1e100"),
]


def test_what_is_refused():
    """Options out of range; logits that are not numbers; a penalty without the tokens that it looks at."""
    for option, value, expected in [(name, value, text) for name, values, text in OUT_OF_RANGE for value in values]:
        with pytest.raises(ValueError) as error:
            Sampling(**{option: value})
        assert str(error.value) == f"expected {expected}, got {value!r}"
    for temperature, bad in itertools.product((0, 1), (np.nan, np.inf)):
        with pytest.raises(
            ValueError, match="expected finite logits, got NaN or infinity: are the model's weights com"
        ):
            Sampling(temperature=temperature)(np.array([[0, 1], [bad, 2]]))
    with pytest.raises(ValueError, match=r"looks at the tokens before each row: pass them, sampling\(logits, tokens\)"):
        Sampling(repetition_penalty=2)(np.zeros((1, 3)))


# ------------------------------------------------------------------------------------------------ draws


@given(weights)
@settings(deadline=None, derandomize=True)
def test_sample_token_inverts_the_cumulative_distribution(integers):
    """Each token has its share of equally spaced uniforms; none of probability 0 is drawn, not even at the ends."""
    n = sum(integers)
    probs = normalised(integers)
    drawn = [sample_token(probs, Uniform((i + 0.5) / n)) for i in range(n)]
    np.testing.assert_array_equal(np.bincount(drawn, minlength=len(integers)), integers)
    for u in (0.0, ALMOST_ONE, 1.0):  # 1.0 as a float32 generator may return it
        assert integers[sample_token(probs, Uniform(u))] > 0


def test_the_uniform_is_scaled_to_the_sum_of_the_probabilities():
    halved = np.array([0.125, 0.25, 0.125])
    assert [sample_token(halved, Uniform(u)) for u in (0.24, 0.26, 0.74, 0.76)] == [0, 1, 1, 2]
    probs = np.random.default_rng(0).dirichlet(np.ones(50257)) * (1 - 1e-6)
    assert [sample_token(probs, Uniform(u)) for u in (0.0, ALMOST_ONE)] == [0, 50256]


@given(weights, weights)
@settings(deadline=None, derandomize=True)
def test_residual_and_acceptance_make_up_the_target(a, b):
    """min(p, q) + (p - q)+ = p, through the two functions: what one step of the rule emits has distribution p."""
    n = max(len(a), len(b))
    p, q = (normalised(integers + [0] * (n - len(integers))) for integers in (a, b))
    accepted = [q[x] * acceptance_probability(p, q, x) if q[x] > 0 else 0.0 for x in range(n)]
    np.testing.assert_allclose(accepted + (1 - sum(accepted)) * residual(p, q), p, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(residual(p, p.copy()), p)


# ------------------------------------------------------------------------------------------------ siblings

PROBS = np.array([0.5, 0.0, 0.125, 0.375])


@pytest.mark.parametrize("wrapped", [lambda rng: rng, Recorder])
def test_common_random_numbers_rank_the_siblings(wrapped):
    """The first is the token that is drawn, the next the one that would be if the first were impossible."""
    for seed in range(50):
        rng = wrapped(Gumbel(seed, 7))
        tokens, rows = sample_distinct(PROBS, 4, rng)
        assert rng.position == 8 and sorted(tokens) == [0, 2, 3] and tokens.dtype == np.int64
        for i, row in enumerate(rows):
            left = np.where(np.isin(np.arange(4), tokens[:i]), 0, PROBS)
            np.testing.assert_allclose(row, left / left.sum(), rtol=0, atol=1e-15)
        assert tokens.tolist() == [Gumbel(seed, 7).draw(row) for row in rows]
