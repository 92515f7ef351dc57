"""From logits to probabilities to a token: temperature, truncation, penalty and draws, each by hand."""

import math

import numpy as np
import pytest
from helpers import ALMOST_ONE, Uniform
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import Gumbel, Sampling, acceptance_probability, exact_distribution, residual, sample_token
from speculative.logits.probs import sample_distinct
from speculative.rng import Recorder

LOGITS = np.log([[0.4, 0.3, 0.2, 0.1]])
weights = st.lists(st.integers(0, 20), min_size=2, max_size=8).filter(any)


def probs_of(**options):
    return Sampling(**options)(LOGITS, [0])[0]


def normalised(integers):
    return np.array(integers, float) / sum(integers)


# ------------------------------------------------------------------------------------------------ temperature


def test_temperature_divides_the_logits():
    logits = np.array([[0.0, 1.0, 3.0], [5.0, 5.0, -2.0]], np.float32)
    for temperature in (0.5, 1, 2.0):
        expected = np.exp(logits.astype(float) / temperature)
        probs = Sampling(temperature=temperature)(logits)
        np.testing.assert_allclose(probs, expected / expected.sum(-1, keepdims=True), rtol=1e-14)
        assert probs.dtype == np.float64


def test_temperature_zero_is_the_first_largest():
    logits = np.array([[0, 3, 3], [2, 1, 0]], np.float32)
    np.testing.assert_array_equal(Sampling(temperature=0)(logits), [[0, 1, 0], [1, 0, 0]])


def test_extreme_logits_and_temperatures_stay_exact():
    logits = np.array([[1e30, -1e30, -np.inf]], np.float32)
    np.testing.assert_array_equal(Sampling()(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=5e-324)(logits), [[1, 0, 0]])
    np.testing.assert_array_equal(Sampling(temperature=1e-300)(np.array([[1, 0, 1]])), [[0.5, 0, 0.5]])


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_numbers_are_refused(temperature, bad):
    with pytest.raises(ValueError, match="expected finite logits, got NaN or infinity: are the model's weights compl"):
        Sampling(temperature=temperature)(np.array([[0, 1], [bad, 2]]))


# ------------------------------------------------------------------------------------------------ truncation


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"top_k": 1}, [1]),
        ({"top_k": 3}, [4, 3, 2]),
        ({"top_k": 9}, [4, 3, 2, 1]),
        ({"top_p": 0.01}, [1]),
        ({"top_p": 0.39}, [1]),
        ({"top_p": 0.41}, [4, 3]),  # the token that crosses it stays
        ({"top_p": 0.85}, [4, 3, 2]),
        ({"min_p": 0.5}, [4, 3, 2]),  # relative to the most probable
        ({"min_p": 0.51}, [4, 3]),
        ({"min_p": 1}, [1]),
        # in this order: temperature, top-k, top-p, min-p; any other gives another row
        ({"temperature": 0.5}, [16, 9, 4, 1]),
        ({"temperature": 0.5, "top_p": 0.6}, [16, 9]),  # 16/30 < 0.6 <= 25/30
        ({"top_k": 2, "top_p": 0.5}, [1]),  # 4/7 reaches 0.5, 0.4 would not
        ({"temperature": 0.5, "min_p": 0.3}, [16, 9]),  # 4/16 < 0.3 < 9/16
        ({"temperature": 0, "top_k": 3, "top_p": 0.9, "min_p": 0.1}, [1]),
    ],
    ids=str,
)
def test_what_is_kept_by_hand(options, wanted):
    np.testing.assert_allclose(probs_of(**options), normalised([*wanted, 0, 0, 0][:4]))


def test_of_equal_tokens_the_lower_ids_stay():
    """Also in a row so long that an unstable sort would mix them."""
    equal, ties = np.zeros((1, 4)), np.tile([0.0, 1.0], 500)[None]
    np.testing.assert_array_equal(Sampling(top_k=2)(equal), [[0.5, 0.5, 0, 0]])
    np.testing.assert_array_equal(Sampling(top_p=0.6)(equal), [[1 / 3, 1 / 3, 1 / 3, 0]])
    np.testing.assert_array_equal(Sampling(min_p=1)(equal), [[0.25] * 4])
    assert np.flatnonzero(Sampling(top_k=3)(ties)[0]).tolist() == [1, 3, 5]
    assert np.flatnonzero(Sampling(top_k=502)(ties)[0]).tolist() == sorted([0, 2, *range(1, 1000, 2)])


def test_to_reach_top_p_is_enough_and_1_keeps_what_is_far_too_rare_for_the_sum():
    np.testing.assert_array_equal(Sampling(top_p=0.5)(np.log([[0.25, 0.5, 0.25]])), [[0, 1, 0]])
    assert (Sampling(top_p=1.0, min_p=1e-300)(np.array([[0.0, -50.0, -100.0]])) > 0).all()


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=9),
    st.integers(0, 10), st.floats(0.01, 1), st.floats(0, 1), st.floats(0.1, 4),
)  # fmt: skip
@settings(deadline=None, derandomize=True)
def test_what_is_kept_is_a_distribution_in_the_same_order(logits, top_k, top_p, min_p, temperature):
    whole = Sampling(temperature)(np.array([logits]))[0]
    kept = Sampling(temperature, top_k, top_p, min_p)(np.array([logits]))[0]
    assert abs(kept.sum() - 1) < 1e-12 and kept[np.argmax(whole)] > 0  # probabilities tie where logits nearly do
    stays = kept > 0
    np.testing.assert_allclose(kept[stays], whole[stays] / whole[stays].sum(), rtol=1e-9)
    assert not top_k or stays.sum() <= top_k
    assert (whole[~stays][:, None] <= whole[stays] + 1e-15).all()


@pytest.mark.parametrize(
    ("option", "wrong", "expected"),
    [
        ("temperature", [-1, math.inf, math.nan, "0.7", None], "a temperature of 0 or more"),
        ("top_k", [-1, 2.5, 2.0, None], "a top_k of 1 or more, or 0 for all tokens"),
        ("top_p", [0, 1.1, "1"], "a top_p above 0 and at most 1"),
        ("min_p", [-0.1, 1.1, math.nan, None], "a min_p from 0 to 1"),
        ("repetition_penalty", [0, -1, [1]], "a repetition_penalty above 0"),
        ("repetition_penalty", [1e-308, 1e308], "a repetition_penalty from 1e-100 to 1e100"),
    ],
)
def test_options_out_of_range_are_refused(option, wrong, expected):
    for value in wrong:
        with pytest.raises(ValueError) as error:
            Sampling(**{option: value})
        assert str(error.value) == f"expected {expected}, got {value!r}"


# ------------------------------------------------------------------------------------------------ penalty


def test_the_penalty_looks_at_what_is_before_each_row():
    logits = np.array([[2.0, -2.0, 1.0], [2.0, -2.0, 1.0]])
    logits.setflags(write=False)
    rows = Sampling(repetition_penalty=2)(logits, [1, 0])  # row 0 follows token 1, row 1 follows tokens 1 and 0
    wanted = np.exp([[2.0, -4.0, 1.0], [1.0, -4.0, 1.0]])
    np.testing.assert_allclose(rows, wanted / wanted.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(Sampling(0, repetition_penalty=3)(logits, [1, 0]), [[1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match=r"looks at the tokens before each row: pass them, sampling\(logits, tokens\)"):
        Sampling(repetition_penalty=2)(logits)
    for widest in (1e-100, 1e100):
        assert np.isfinite(Sampling(repetition_penalty=widest)(logits, [1, 0])).all()


def test_in_a_tree_the_penalty_looks_at_the_path():
    logits = np.log([[0.5, 0.3, 0.2]] * 4)
    sampling = Sampling(repetition_penalty=1.5)
    rows = sampling(logits, [2, 0, 1, 1], parents=[-1, -1, 0])
    for row, text in zip(rows, ([2], [2, 0], [2, 1], [2, 0, 1])):
        np.testing.assert_array_equal(row, sampling(logits[:1], text)[0])


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


def test_each_sibling_is_drawn_from_its_row_given_the_elder_ones():
    distribution = exact_distribution(lambda rng: sample_distinct(PROBS, 2, rng)[0])
    for (first, second), share in distribution.items():
        assert abs(share - PROBS[first] * PROBS[second] / (1 - PROBS[first])) < 1e-15
    assert len(distribution) == 6
    tokens, rows = sample_distinct(PROBS, 4, np.random.default_rng(0))
    assert sorted(tokens) == [0, 2, 3] and tokens.dtype == np.int64  # the support is used up
    for i, row in enumerate(rows):
        np.testing.assert_allclose(row, left_of(tokens[:i]), rtol=0, atol=1e-15)


def left_of(tokens):
    left = np.where(np.isin(np.arange(4), tokens), 0, PROBS)
    return left / left.sum()


def test_one_sibling_is_the_draw_of_a_chain():
    for seed in range(20):
        one, alone = (np.random.default_rng(seed) for _ in range(2))
        tokens, rows = sample_distinct(PROBS, 1, one)
        assert tokens.tolist() == [sample_token(PROBS, alone)] and one.random() == alone.random()
        np.testing.assert_array_equal(rows, [PROBS])
    tokens, rows = sample_distinct(PROBS, 0, np.random.default_rng(0))
    assert tokens.shape == (0,) and rows.shape == (0, 4)


@pytest.mark.parametrize("wrapped", [lambda rng: rng, Recorder])
def test_common_random_numbers_rank_the_siblings(wrapped):
    """The first is the token that is drawn, the next the one that would be if the first were impossible."""
    for seed in range(50):
        rng = wrapped(Gumbel(seed, 7))
        tokens, rows = sample_distinct(PROBS, 4, rng)
        assert rng.position == 8 and sorted(tokens) == [0, 2, 3]
        for i, (token, row) in enumerate(zip(tokens, rows)):
            np.testing.assert_allclose(row, left_of(tokens[:i]), rtol=0, atol=1e-15)
            assert token == Gumbel(seed, 7).draw(left_of(tokens[:i]))
