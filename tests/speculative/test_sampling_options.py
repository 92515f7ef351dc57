"""Temperature, truncation and penalty: each by hand, and each exact with every verifier; where a text stops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import (
    AutoregressiveSampler,
    Gumbel,
    Lenient,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    StopText,
    block,
    exact_distribution,
    exact_match,
    rejection,
)
from speculative.testing import TableModel

TARGET, OTHER = TableModel.random(4, seed=1, n_ctx=12), TableModel.random(4, seed=2, n_ctx=12)
OPTIONS = {
    "top_k": Sampling(top_k=2),
    "top_p": Sampling(top_p=0.6),
    "min_p": Sampling(min_p=0.4),
    "repetition_penalty": Sampling(repetition_penalty=1.7),
    "all of them": Sampling(0.8, top_k=3, top_p=0.9, min_p=0.1, repetition_penalty=0.6),
}
LOGITS = np.log([[0.4, 0.3, 0.2, 0.1]])


def probs_of(**options):
    return Sampling(**options)(LOGITS, [0])[0]


# ------------------------------------------------------------------------------------------------ by hand


def test_top_k_keeps_the_k_likeliest():
    np.testing.assert_allclose(probs_of(top_k=1), [1, 0, 0, 0])
    np.testing.assert_allclose(probs_of(top_k=3), [4 / 9, 3 / 9, 2 / 9, 0])
    np.testing.assert_allclose(probs_of(top_k=9), [0.4, 0.3, 0.2, 0.1])


def test_top_p_keeps_the_token_that_crosses_it():
    np.testing.assert_allclose(probs_of(top_p=0.01), [1, 0, 0, 0])
    np.testing.assert_allclose(probs_of(top_p=0.39), [1, 0, 0, 0])
    np.testing.assert_allclose(probs_of(top_p=0.41), [4 / 7, 3 / 7, 0, 0])
    np.testing.assert_allclose(probs_of(top_p=0.85), [4 / 9, 3 / 9, 2 / 9, 0])
    np.testing.assert_array_equal(
        Sampling(top_p=0.5)(np.log([[0.25, 0.5, 0.25]])), [[0, 1, 0]]
    )  # to reach it is enough


def test_top_p_of_1_keeps_what_is_far_too_rare_for_the_sum():
    logits = np.array([[0.0, -50.0, -100.0]])
    assert (Sampling(top_p=1.0, min_p=1e-300)(logits) > 0).all()


def test_min_p_is_relative_to_the_likeliest():
    np.testing.assert_allclose(probs_of(min_p=0.5), [4 / 9, 3 / 9, 2 / 9, 0])
    np.testing.assert_allclose(probs_of(min_p=0.51), [4 / 7, 3 / 7, 0, 0])
    np.testing.assert_allclose(probs_of(min_p=1), [1, 0, 0, 0])


def test_of_equal_tokens_the_lower_ids_stay():
    equal = np.zeros((1, 4))
    np.testing.assert_array_equal(Sampling(top_k=2)(equal), [[0.5, 0.5, 0, 0]])
    np.testing.assert_array_equal(Sampling(top_p=0.6)(equal), [[1 / 3, 1 / 3, 1 / 3, 0]])
    np.testing.assert_array_equal(Sampling(min_p=1)(equal), [[0.25] * 4])


def test_the_order_is_temperature_then_top_k_then_top_p_then_min_p():
    """Each option applies to what the one before has left; here any other order gives another row."""
    squared = np.array([16, 9, 4, 1]) / 30  # temperature 1/2
    np.testing.assert_allclose(probs_of(temperature=0.5), squared)
    np.testing.assert_allclose(probs_of(temperature=0.5, top_p=0.6), [0.64, 0.36, 0, 0])  # 16/30 < 0.6 <= 25/30
    np.testing.assert_allclose(probs_of(top_k=2, top_p=0.5), [1, 0, 0, 0])  # 4/7 reaches 0.5, 0.4 would not
    np.testing.assert_allclose(probs_of(temperature=0.5, min_p=0.3), [0.64, 0.36, 0, 0])  # 4/16 < 0.3 < 9/16
    np.testing.assert_array_equal(probs_of(temperature=0, top_k=3, top_p=0.9, min_p=0.1), [1, 0, 0, 0])


def test_the_penalty_looks_at_what_is_before_each_row():
    logits = np.array([[2.0, -2.0, 1.0], [2.0, -2.0, 1.0]])
    rows = Sampling(repetition_penalty=2)(logits, [1, 0])  # row 0 follows token 1, row 1 follows tokens 1 and 0
    wanted = np.exp([[2.0, -4.0, 1.0], [1.0, -4.0, 1.0]])
    np.testing.assert_allclose(rows, wanted / wanted.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(Sampling(0, repetition_penalty=3)(logits, [1, 0]), [[1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="pass them, sampling"):
        Sampling(repetition_penalty=2)(logits)


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
    ("options", "message"),
    [
        ({"top_k": -1}, "expected a top_k of 1 or more, or 0 for all tokens, got -1"),
        ({"top_k": 2.5}, "expected a top_k of 1 or more, or 0 for all tokens, got 2.5"),
        ({"top_p": 0}, "expected a top_p above 0 and at most 1, got 0"),
        ({"top_p": 1.1}, "expected a top_p above 0 and at most 1, got 1.1"),
        ({"min_p": math.nan}, "expected a min_p from 0 to 1, got nan"),
        ({"repetition_penalty": 0}, "expected a repetition_penalty above 0, got 0"),
        ({"repetition_penalty": 1e-308}, "expected a repetition_penalty from 1e-100 to 1e100, got 1e-308"),
        ({"repetition_penalty": 1e308}, "expected a repetition_penalty from 1e-100 to 1e100, got 1e\\+308"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)


# ------------------------------------------------------------------------------------------------ exact


@pytest.mark.parametrize("draft_options", ["the target's", "its own"])
@pytest.mark.parametrize("verifier", [rejection, block, exact_match, Lenient(1)])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_joint_distribution_is_that_of_the_target(name, verifier, draft_options):
    """With the same option on p and q, and with a draft that does not use it."""
    sampling, target, other = OPTIONS[name], TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    drafter = ModelDrafter(other, sampling=sampling if draft_options == "the target's" else Sampling())
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=2, sampling=sampling)
    distribution = exact_distribution(lambda rng: sampler.generate([0, 1], 3, rng).tokens)
    wanted = {}
    for tokens in itertools.product(range(3), repeat=3):
        # one row at a time, each with the tokens before it and no others
        rows = [sampling(target([0, 1, *tokens[:i]]), [0, 1, *tokens[:i]])[0] for i in range(3)]
        wanted[tokens] = math.prod(row[token] for row, token in zip(rows, tokens))
    for tokens, probability in wanted.items():
        assert abs(distribution.get(tokens, 0) - probability) < 1e-12


@pytest.mark.parametrize("name", OPTIONS)
def test_with_common_random_numbers_one_seed_is_one_text(name):
    sampling = OPTIONS[name]
    for seed, K in itertools.product(range(10), (1, 3)):
        alone = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 10, Gumbel(seed)).tokens
        drafter = ModelDrafter(OTHER, sampling=sampling)
        sampler = SpeculativeSampler(TARGET, drafter, verifier=exact_match, K=K, sampling=sampling)
        np.testing.assert_array_equal(sampler.generate([0, 1], 10, Gumbel(seed)).tokens, alone)


# ------------------------------------------------------------------------------------------------ stop texts

LETTERS = ["a", "b", "ab", "\N{SNOWMAN}"]


def decode(tokens):
    return "".join(LETTERS[token] for token in tokens)


@pytest.mark.parametrize("text", ["b", "aba", "bb", "\N{SNOWMAN}a"])
def test_a_stop_text_ends_the_text_wherever_it_falls(text):
    """The text is the one without it, up to the first token that completes it, inside a block or not."""
    stop, places = StopText(text, decode), set()
    samplers = [SpeculativeSampler(TARGET, ModelDrafter(OTHER), K=K) for K in (1, 3, 5)]
    for seed, sampler in itertools.product(range(60), [*samplers, AutoregressiveSampler(TARGET)]):
        whole = sampler.generate([1, 1], 10, seed).tokens.tolist()
        wanted = next((whole[:n] for n in range(1, 11) if text in decode(whole[:n])), whole)
        generation = sampler.generate([1, 1], 10, seed, stop=stop)
        assert generation.tokens.tolist() == wanted
        assert decode(wanted).startswith(stop.cut(decode(wanted)))
        if len(wanted) < 10:
            last = generation.rounds[-1]
            places.add((len(last.tokens) < 1 + len(last.drafted), last.origins[-1]))
            assert stop.cut(decode(wanted)).endswith(text) and text not in decode(wanted[:-1])
    assert {origin for _, origin in places} >= {"accepted", "correction", "bonus", "plain"}


def test_a_stopped_text_has_the_distribution_of_the_target():
    options = {"stop": StopText("ba", decode), "stop_tokens": [3]}
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(TARGET).generate([0], 3, rng, **options).tokens)
    assert {len(tokens) for tokens in wanted} == {1, 2, 3}
    for verifier in (rejection, block, exact_match):
        sampler = SpeculativeSampler(TARGET, ModelDrafter(OTHER), verifier=verifier, K=2)
        distribution = exact_distribution(lambda rng, sampler=sampler: sampler.generate([0], 3, rng, **options).tokens)
        assert distribution.keys() == wanted.keys() and all(abs(distribution[t] - wanted[t]) < 1e-12 for t in wanted)


def test_a_stop_text_in_the_prompt_does_not_count():
    generation = AutoregressiveSampler(TableModel([[1, 0, 0, 0]] * 4)).generate([1], 5, 0, stop=StopText("ba", decode))
    assert generation.tokens.tolist() == [0] * 5


def test_an_empty_stop_text_and_half_a_character_are_refused():
    with pytest.raises(ValueError, match="expected a stop text of at least one character"):
        StopText("", decode)
    with pytest.raises(ValueError, match=r"a stop text without U\+FFFD, which stands for an incomplete"):
        StopText("a\ufffd", decode)
    with pytest.raises(ValueError, match=r"without lone surrogates, which no text has, got 'a\\udcff'"):
        StopText("a\udcff", decode)
