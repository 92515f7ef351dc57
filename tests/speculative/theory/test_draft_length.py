"""Draft lengths: what they choose, and that the text keeps its distribution whatever they choose."""

import itertools
import math
import random

import pytest
from exactness import error_of

from speculative import CostModel, ModelDrafter, Sampling, SpeculativeSampler, heuristic
from speculative.testing import TableModel
from speculative.theory import best_K, expected_time, speedup
from speculative.theory.draft_length import since_the_last_change

CHEAP = {"c": 0.1, "v": (1, 1.05, 1.1, 1.15, 1.2)}


def test_the_heuristic_schedule_by_hand():
    """Two more after a whole acceptance, one less otherwise, from 1 to 16; rounds without a draft say nothing."""
    rounds = [(4, 4), (6, 2), (5, 4), (4, 0), (3, 0), (2, 0), (1, 0), (1, 0), (0, 0), (1, 1)]
    chosen = [heuristic(rounds[:n]) for n in range(len(rounds) + 1)]
    assert chosen == [4, 6, 5, 4, 3, 2, 1, 1, 1, 1, 3]
    assert heuristic([(4, 4)] * 20) == 16


def test_the_cost_model_starts_from_what_it_expects():
    """If it expects nothing, it tests one token to see."""
    for c in (0.05, 0.3, 0.6, 0.9):
        choose = CostModel(c, CHEAP["v"])
        assert choose([]) == (best_K(0.8, c, CHEAP["v"]) or 1)
    assert best_K(0.8, c, CHEAP["v"]) == 0 and choose([(0, 0)]) == 1  # the drafter had nothing to propose
    assert CostModel(c=0.1, v=(1,))([]) == 0


def test_the_cost_model_follows_the_running_estimate():
    """alpha = (A + 2 * 0.8) / (A + J + 2) over the last 64 rounds that drafted, and the K best for it."""
    choose = CostModel(**CHEAP)
    for recent in ([(4, 4)] * 64, [(4, 0)] * 64, [(4, 1), (2, 2), (1, 0), (3, 3)] * 16):
        accepted, rejected = sum(a for _, a in recent), sum(a < d for d, a in recent)
        alpha = (accepted + 1.6) / (accepted + rejected + 2)
        wanted = max(range(5), key=lambda K: speedup(alpha, K, 0.1, CHEAP["v"]))
        for before, after in (([], 0), ([(4, 0)] * 3, 3), ([(4, 4)] * 3, 3)):
            assert choose([*before, *recent, *[(0, 0)] * after]) == wanted
    three_of_four = CostModel(c=0.3, v=(1.0,) * 9)([(4, 3)] * 64)  # one rejection each
    assert three_of_four == best_K((192 + 1.6) / (256 + 2), 0.3, (1.0,) * 9) == 2


@pytest.mark.parametrize(("c", "v"), [(0.1, (1.0,) * 9), (0.6, (1.0,) * 9), (0.1, (1.0, 1.5, 2.0))])
def test_where_no_token_is_accepted_the_cost_model_tests_one_from_time_to_time(c, v):
    """Rounds without a draft must not make it forget that drafting did not pay."""
    choose, history = CostModel(c=c, v=v), []
    for _ in range(400):
        history.append((choose(history), 0))
    test = c + v[1] - 1  # what it costs: the draft and the longer pass
    pause = max(16, math.ceil(64 * test))
    (first,) = (i for i in range(100, 100 + pause + 1) if history[i][0])
    assert [K for K, _ in history[first:]] == [int(i % (pause + 1) == 0) for i in range(400 - first)]
    assert test / pause <= 1 / 64
    assert choose([*history, (1, 1)]) == 1  # an accepted token is followed up at once


def test_a_change_of_the_text_is_noticed():
    """64 rounds from here to there; the newest 8 decide, not the 56 before them."""
    choose = CostModel(**CHEAP)
    for before, after in ([(4, 0)] * 60, (1, 1)), ([(4, 4)] * 60, (4, 0)):
        history = [*before, *[after] * 8]
        assert since_the_last_change(history) == history[-8:]
        assert choose(history) == choose(history[-8:]) != choose(before)
    rounds = [(4, 0)] * 8 + [(1, 1)] * 8
    assert since_the_last_change(rounds) == rounds[-8:]
    mixed = [(3, 3), (2, 0), (4, 2)] * 20
    by_chance = [(1, 1), (1, 0)] * 28 + [(1, 0)] * 8  # 28 of 56, then 0 of 8: 2.7 standard errors
    assert since_the_last_change(mixed) == mixed and since_the_last_change(by_chance) == by_chance


# ------------------------------------------------------------------------------------------------ a simulated clock


def regret(parts, c, v, n_texts):
    """(the time of CostModel over that of the best K of each part (alpha, n), less one; whether drafting pays)."""
    alphas, own = [alpha for alpha, n in parts for _ in range(n)], 0
    for seed in range(n_texts):
        draws, history, n = random.Random(seed), [], 0
        while n < len(alphas):
            k, accepted = min(CostModel(c, v)(history), len(alphas) - n - 1), 0
            while accepted < k and draws.random() < alphas[n + accepted]:
                accepted += 1
            history.append((k, accepted))
            n, own = n + accepted + 1, own + (k * c + v[k]) / n_texts
    best = sum(min(expected_time([alpha] * n, K, c, v) for K in range(9)) for alpha, n in parts)
    return own / best - 1, best < len(alphas)


ALPHAS, COSTS = (0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 0.95), (0.05, 0.1, 0.2, 0.3, 0.45, 0.6)
FLAT, RISING = (1.0,) * 9, tuple(1 + 0.1 * k for k in range(9))
TEXTS = [([(alpha, n)], times) for alpha in ALPHAS for n, times in ((2000, 4), (120, 100))]
TEXTS.append(([(0.05, 300), (0.8, 300)] * 4, 4))
EVERY = pytest.param(list(itertools.product(TEXTS, COSTS, (FLAT, RISING))), marks=pytest.mark.slow)
SOME = [(([(alpha, 500)], 2), 0.3, FLAT) for alpha in (0, 0.15)] + [((TEXTS[-1][0], 1), 0.1, FLAT)]


@pytest.mark.parametrize("cases", [SOME, EVERY], ids=["some", "every"])
def test_the_regret_of_the_cost_model(cases):
    """At most 3 % where drafting does not pay, 4 % where it does, 8 % in a text that changes. The draws are seeded."""
    for (parts, n_texts), c, v in cases:
        loss, pays = regret(parts, c, v, n_texts)
        assert loss <= (0.08 if len(parts) > 1 else 0.04 if pays else 0.03), (parts, c, v)


# ------------------------------------------------------------------------------------------------ in the loop


@pytest.mark.parametrize("length", [heuristic, CostModel(0.6, (1, 1.1, 1.2))], ids=["h", "c"])
def test_the_text_has_the_distribution_of_the_target(length):
    """K depends on the outcomes of the rounds before, and may be 0: for CostModel after a rejection."""
    assert length([]) > 0 and length([(1, 0)]) == 3 * (length is heuristic)
    sampling = Sampling(0.6, repetition_penalty=1.5)
    target, other = (TableModel.random(2, seed=seed) for seed in (1, 2))
    sampler = SpeculativeSampler(target, ModelDrafter(other), K=length, sampling=sampling)
    assert error_of(sampler, 4) < 1e-12
