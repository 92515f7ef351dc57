import itertools
import math

import numpy as np
import pytest
from helpers import random_gpt2

from gpt2np import HParams
from speculative import AutoregressiveSampler, Draft, ModelDrafter, Sampling, SpeculativeSampler, Verdict
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GREEDY = Sampling(temperature=0)


def speculative_sampler(target=TARGET, draft=DRAFT, K=3, sampling=Sampling(), draft_sampling=None):
    drafter = ModelDrafter(draft, sampling=draft_sampling or sampling)
    return SpeculativeSampler(target, drafter, K=K, sampling=sampling)


def test_the_generated_tokens_have_the_distribution_of_the_target():
    """With real random numbers; test_verifiers.py has the exact distribution, by enumeration.

    Of n samples over m outcomes, P(sum |frequency - probability| >= e) <= 2^m exp(-n e^2 / 2), which is below 1e-13 for
    n = 6000, m = 27 and e = 0.128 (Weissman et al. 2003, theorem 2.1). The seed is fixed; a bias of the size of e is
    what this can see.
    """
    n, n_tokens, epsilon, K, sampling, draft_sampling = 6_000, 3, 0.128, 3, Sampling(0.7), Sampling(1.5)
    assert 2**27 * math.exp(-n * epsilon**2 / 2) < 1e-13
    distribution = TARGET.distribution([0, 1], n_tokens, sampling)
    assert abs(sum(distribution.values()) - 1) < 1e-12
    sampler, rng = speculative_sampler(K=K, sampling=sampling, draft_sampling=draft_sampling), np.random.default_rng(K)
    counts = dict.fromkeys(distribution, 0)
    for _ in range(n):
        counts[tuple(sampler.generate([0, 1], n_tokens, rng).tokens.tolist())] += 1
    assert sum(abs(counts[tokens] / n - distribution[tokens]) for tokens in distribution) < epsilon


@pytest.fixture(scope="module")
def greedy_texts(tiny_pair):
    """Three prompts and the target's own 40 tokens after each."""
    target, _, tokenizer = tiny_pair
    texts = ("Once upon a time", '"Who are you?" said the', "<|endoftext|>")
    alone = AutoregressiveSampler(target, sampling=GREEDY)
    return [alone.generate(tokenizer.encode(text, special=True), 40) for text in texts]


@pytest.mark.parametrize("make", [AutoregressiveSampler, speculative_sampler])
def test_the_number_of_tokens_may_be_of_a_small_type(make):
    prompt, model = [0] * 9, TableModel.random(3, n_ctx=300)
    assert len(make(model).generate(prompt, np.uint8(250), 0).tokens) == 250


@pytest.mark.parametrize("K", range(1, 9))
def test_greedy_tokens_equal_those_of_the_target_alone(tiny_pair, greedy_texts, K):
    sampler = speculative_sampler(*tiny_pair[:2], K, GREEDY)
    for alone in greedy_texts:
        np.testing.assert_array_equal(sampler.generate(alone.prompt, 40).tokens, alone.tokens)


@pytest.mark.parametrize("K", range(1, 9))
def test_greedy_tokens_equal_whatever_the_draft(K):
    shape = HParams(n_vocab=17, n_ctx=64, n_embd=15, n_head=3, n_layer=2)
    target, other = random_gpt2(shape, seed=1), random_gpt2(shape, seed=2)
    expected = AutoregressiveSampler(target, sampling=GREEDY).generate([1, 2, 3], 50).tokens
    for draft in (other, target):  # one model may be both
        sampler = speculative_sampler(target, draft, K, GREEDY)
        np.testing.assert_array_equal(sampler.generate([1, 2, 3], 50).tokens, expected)


@pytest.mark.parametrize("sampling", [Sampling(), GREEDY])
def test_exactly_n_tokens(sampling):
    for n_tokens, K in itertools.product(range(12), (1, 2, 3, 7)):
        generation = speculative_sampler(K=K, sampling=sampling).generate([1], n_tokens, 0)
        assert generation.tokens.shape == (n_tokens,) and generation.tokens.dtype == np.int64
        assert len(AutoregressiveSampler(TARGET, sampling=sampling).generate([1], n_tokens, 0).tokens) == n_tokens


@pytest.mark.parametrize("kind", [bytes, bytearray, tuple, np.array])
def test_a_prompt_is_any_sequence_of_numbers(kind):
    sampler = AutoregressiveSampler(TARGET, sampling=GREEDY)
    generation = sampler.generate(kind([1, 2, 1]), 3)
    assert generation.prompt.tolist() == [1, 2, 1] and generation.prompt.dtype == np.int64
    assert generation.tokens.tolist() == sampler.generate([1, 2, 1], 3).tokens.tolist()


def test_never_past_n_ctx():
    """Up to the last position of the context and no further, for both models."""
    longest = []

    class Watched(TableModel):
        def __call__(self, tokens, n_last=1):
            longest.append(len(tokens))
            return super().__call__(tokens, n_last)

    target, draft = Watched(TARGET.probs, n_ctx=20), Watched(DRAFT.probs, n_ctx=20)
    for n_prompt, K in itertools.product((1, 5, 19), (1, 4, 30)):
        sampler = speculative_sampler(target, draft, K)
        assert len(sampler.generate([0] * n_prompt, 20 - n_prompt, 0).tokens) == 20 - n_prompt
        with pytest.raises(ValueError, match=f"n_ctx is 20: generate at most {20 - n_prompt} or shorten"):
            sampler.generate([0] * n_prompt, 21 - n_prompt, 0)
    assert max(longest) < 20
    with pytest.raises(ValueError, match="prompt has 21 tokens and n_tokens is 1, but n_ctx is 20: shorten the prompt"):
        speculative_sampler(target, draft).rounds([0] * 21, 1)


def test_a_draft_model_with_a_shorter_context_drafts_while_it_can():
    sampler = speculative_sampler(draft=TableModel(DRAFT.probs, n_ctx=10), K=3)
    generation = sampler.generate([0] * 5, 20, 0)
    n_before, drafted = 5, []
    for r in generation.rounds:
        drafted.append((n_before, len(r.drafted)))
        n_before += len(r.tokens)
    assert len(generation.tokens) == 20
    assert all(n == min(3, 25 - at - 1, max(0, 10 - at + 1)) for at, n in drafted)
    assert {n for _, n in drafted} >= {0, 3}


def test_the_target_as_its_own_draft_is_always_accepted():
    generation = speculative_sampler(TARGET, TARGET, K=4).generate([0], 50, 3)
    assert generation.stats.accepted == generation.stats.drafted == 40
    assert generation.stats.target_calls == 10 and generation.stats.tokens_per_target_call == 5
    assert generation.rounds[0].origins == ["accepted"] * 4 + ["bonus"]


def test_a_draft_that_is_never_right_costs_nothing_but_time():
    wrong = TableModel([[0, 1], [0, 1]])
    generation = speculative_sampler(TableModel([[1, 0], [1, 0]]), wrong, K=4).generate([0], 20, 0)
    assert generation.tokens.tolist() == [0] * 20 and generation.stats.accepted == 0
    assert [r.origins for r in generation.rounds] == [["correction"]] * 19 + [["plain"]]


def test_one_seed_one_text():
    for sampler in (speculative_sampler(), AutoregressiveSampler(TARGET)):
        texts = [sampler.generate([0], 30, seed).tokens.tolist() for seed in (5, 5, 6, np.random.default_rng(5))]
        assert texts[0] == texts[1] == texts[3] != texts[2]


def test_one_generator_continues_from_call_to_call():
    sampler, rng = speculative_sampler(), np.random.default_rng(0)
    assert sampler.generate([0], 30, rng).tokens.tolist() != sampler.generate([0], 30, rng).tokens.tolist()


def test_rounds_can_be_stepped_through():
    for sampler in (speculative_sampler(), AutoregressiveSampler(TARGET)):
        rounds = sampler.rounds([0, 1], 20, 4)
        steps = [next(rounds), *rounds]
        whole = sampler.generate([0, 1], 20, 4, keep_probs=True)
        np.testing.assert_array_equal(np.concatenate([r.tokens for r in steps]), whole.tokens)
        for step, r in zip(steps, whole.rounds):
            np.testing.assert_array_equal(step.target_probs, r.target_probs)
            np.testing.assert_array_equal(step.draft_probs, r.draft_probs)


def test_the_rows_of_a_round_are_the_models_own():
    generation = speculative_sampler().generate([0, 1], 20, 4, keep_probs=True)
    tokens = generation.prompt.tolist()
    for r in generation.rounds:
        drafted = r.drafted.tolist()
        for i, row in enumerate(r.target_probs):
            np.testing.assert_array_equal(row, Sampling()(TARGET(tokens + drafted[:i]))[0])
        for i, row in enumerate(r.draft_probs):
            np.testing.assert_array_equal(row, Sampling()(DRAFT(tokens + drafted[:i]))[0])
        assert r.tokens[:-1].tolist() == drafted[: r.n_accepted]
        tokens += r.tokens.tolist()
    assert generation.rounds[0].seconds.keys() == {"draft", "target", "verify"}
    assert speculative_sampler().generate([0, 1], 20, 4).rounds[0].target_probs is None


def test_their_plain_text_form_is_short():
    generation = speculative_sampler().generate([0], 30, rng=0, keep_probs=True)
    assert len(repr(generation.rounds[0])) < 160 and len(repr(generation)) < 400
    assert str(generation.tokens[0]) in repr(generation)


def test_stats_are_counted_from_the_rounds():
    verdicts = iter([Verdict(2, 0), Verdict(0, 1), Verdict(3, 2), Verdict(0, 0), Verdict(0, 0)])

    class Drafter:
        def propose(self, tokens, K, rng):
            return Draft(np.zeros(K, np.int64), np.full((K, 3), 1 / 3))

    generation = SpeculativeSampler(TARGET, Drafter(), verifier=lambda *_: next(verdicts), K=3).generate([0], 10, 0)
    stats = generation.stats
    assert generation.tokens.tolist() == [0, 0, 0, 1, 0, 0, 0, 2, 0, 0]
    assert (stats.n_tokens, stats.target_calls, stats.drafted, stats.accepted) == (10, 5, 10, 5)
    assert stats.drafted_by_position == [4, 3, 3] and stats.accepted_by_position == [2, 2, 1]
    assert stats.acceptance_by_position == [0.5, 2 / 3, 1 / 3]
    assert stats.tokens_per_target_call == 2 and stats.acceptance == 0.5
    assert [r.origins[-1] for r in generation.rounds] == ["correction", "correction", "bonus", "correction", "plain"]


def test_stats_where_nothing_was_drafted():
    stats = AutoregressiveSampler(TARGET).generate([0], 3, 0).stats
    assert (stats.drafted, stats.acceptance, stats.acceptance_by_position) == (0, 0.0, [])
    assert stats.tokens_per_target_call == 1
    assert speculative_sampler().generate([0], 0).stats.tokens_per_target_call == 0


def test_arguments_are_not_written_to():
    prompt = np.array([0, 1, 2])
    prompt.setflags(write=False)
    tokens = [0, 1, 2]
    for sampler in (speculative_sampler(), AutoregressiveSampler(TARGET)):
        np.testing.assert_array_equal(sampler.generate(prompt, 9, 1).tokens, sampler.generate(tokens, 9, 1).tokens)
    assert tokens == [0, 1, 2]


def test_the_drafter_does_not_write_to_the_text():
    tokens = [0, 1]
    draft = ModelDrafter(DRAFT).propose(tokens, 3, np.random.default_rng(0))
    assert tokens == [0, 1] and draft.tokens.shape == (3,) and draft.probs.shape == (3, 3)
    nothing = ModelDrafter(DRAFT).propose(tokens, 0, np.random.default_rng(0))
    assert nothing.tokens.shape == (0,) and nothing.probs.shape == (0, 3)


@pytest.mark.parametrize(
    ("prompt", "n_tokens", "message"),
    [
        ([], 3, "the prompt has no tokens"),
        ([3], 3, "expected prompt tokens from 0 to 2, got 3 to 3"),
        ([-1, 0], 3, "expected prompt tokens from 0 to 2, got -1 to 0"),
        ([0], -1, "expected n_tokens of 0 or more, got -1"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_before_anything_runs(prompt, n_tokens, message):
    for sampler in (speculative_sampler(), AutoregressiveSampler(TARGET)):
        with pytest.raises(ValueError, match=message):
            sampler.rounds(prompt, n_tokens)


def test_a_wrong_drafter_is_refused():
    class Greedy:
        def propose(self, tokens, K, rng):
            return Draft(np.zeros(K + 1, np.int64), np.full((K + 1, 3), 1 / 3))

    with pytest.raises(ValueError, match="asked for at most 3 tokens and proposed 4"):
        SpeculativeSampler(TARGET, Greedy(), K=3).generate([0], 5)
    with pytest.raises(ValueError, match=r"shape \(3, 3\).*got \(3, 5\): draft and target must share one vocabulary"):
        speculative_sampler(draft=TableModel.random(5)).generate([0], 5)
    with pytest.raises(ValueError, match="K of 1 or more, got 0"):
        speculative_sampler(K=0)


def test_a_stop_token_ends_the_text_wherever_it_falls():
    """The text is the one without stop tokens, up to the first of them; after it no token of a block is emitted."""
    places = set()
    for seed, K in itertools.product(range(40), (1, 3, 5)):
        for sampler in (speculative_sampler(K=K), AutoregressiveSampler(TARGET)):
            whole = sampler.generate([0], 12, seed)
            stopped = sampler.generate([0], 12, seed, stop_tokens=[1])
            tokens = whole.tokens.tolist()
            n = tokens.index(1) + 1 if 1 in tokens else 12
            assert stopped.tokens.tolist() == tokens[:n]
            last, origins = stopped.rounds[-1], [origin for r in stopped.rounds for origin in r.origins]
            assert len(origins) == n and stopped.stats.accepted == origins.count("accepted")
            places.add((last.n_accepted, len(last.drafted), last.origins[-1]))
    assert (1, 3, "accepted") in places and (0, 3, "correction") in places and (3, 3, "bonus") in places


def test_no_token_stops_where_none_is_named():
    assert len(speculative_sampler().generate([0], 12, 0, stop_tokens=set()).tokens) == 12
