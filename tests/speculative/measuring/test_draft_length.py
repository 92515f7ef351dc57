"""Draft lengths: what they choose, and that the text keeps its distribution whatever they choose."""

import math
import random

import pytest
from exactness import error_of

from speculative import CostModel, Heuristic, ModelDrafter, Sampling, SpeculativeSampler
from speculative.measuring.draft_length import since_the_last_change
from speculative.testing import TableModel
from speculative.theory import best_K, expected_time, speedup

CHEAP = {"c": 0.1, "v": (1, 1.05, 1.1, 1.15, 1.2)}


def test_the_heuristic_schedule_by_hand():
    """Two more after a whole acceptance, one less otherwise, from 1 to `most`; rounds without a draft say nothing."""
    history, chosen = [], []
    for drafted, accepted in [(3, 3), (5, 5), (6, 2), (5, 4), (4, 0), (3, 0), (2, 0), (1, 0), (1, 0), (0, 0), (1, 1)]:
        chosen.append(Heuristic(first=3, most=6)(history))
        history.append((drafted, accepted))
    assert [*chosen, Heuristic(3, 6)(history)] == [3, 5, 6, 5, 4, 3, 2, 1, 1, 1, 1, 3]
    assert Heuristic(first=20, most=16)([]) == Heuristic()([(4, 4)] * 20) == 16
    for options in ({"first": 0}, {"most": 0}):
        with pytest.raises(ValueError, match="expected first and most of 1 or more"):
            Heuristic(**options)


def test_the_cost_model_starts_from_what_it_expects():
    """If it expects nothing, it tests one token to see."""
    for alpha in (0.05, 0.3, 0.6, 0.9):
        assert CostModel(**CHEAP, alpha=alpha)([]) == (best_K(alpha, 0.1, CHEAP["v"]) or 1)
    assert CostModel(**CHEAP, alpha=0.05)([(0, 0)]) == 1  # the drafter had nothing to propose
    assert CostModel(c=0.1, v=(1,))([]) == 0


def test_the_cost_model_follows_the_running_estimate():
    """alpha = (A + 2 * 0.8) / (A + J + 2) over the last `window` rounds that drafted, and the K best for it."""
    choose = CostModel(**CHEAP, window=5)
    for recent in ([(4, 4)] * 5, [(4, 0)] * 5, [(4, 1), (2, 2), (1, 0), (3, 3), (4, 2)]):
        accepted, rejected = sum(a for _, a in recent), sum(a < d for d, a in recent)
        alpha = (accepted + 1.6) / (accepted + rejected + 2)
        wanted = max(range(5), key=lambda K: speedup(alpha, K, 0.1, CHEAP["v"]))
        for before, after in (([], 0), ([(4, 0)] * 3, 3), ([(4, 4)] * 3, 3)):
            assert choose([*before, *recent, *[(0, 0)] * after]) == wanted
    three_of_four = CostModel(c=0.3, v=(1.0,) * 9)([(4, 3)] * 64)  # one rejection each
    assert three_of_four == best_K((192 + 1.6) / (256 + 2), 0.3, (1.0,) * 9) == 2
    assert CostModel(**CHEAP, window=0)([(4, 0)] * 16) == 4


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

ALPHAS, COSTS = (0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 0.95), (0.05, 0.1, 0.2, 0.3, 0.45, 0.6)


def simulated_time(choose, alpha, c, v, n_tokens, seed):
    """The time of a text in steps, where each draft token is accepted with probability `alpha(place)`."""
    draws, history, n, time = random.Random(seed), [], 0, 0.0
    while n < n_tokens:
        k, accepted = min(choose(history), n_tokens - n - 1), 0
        while accepted < k and draws.random() < alpha(n + accepted):
            accepted += 1
        history.append((k, accepted))
        n, time = n + accepted + 1, time + k * c + v[k]
    return time


def regret(alpha, c, v, n_tokens, n_texts):
    """(regret in %, best K): the time of CostModel over that of the best fixed K from 0 to 8, less one."""
    times = [expected_time([alpha] * n_tokens, K, c, v) for K in range(9)]
    own = [simulated_time(CostModel(c, v), lambda place: alpha, c, v, n_tokens, seed) for seed in range(n_texts)]
    return 100 * (sum(own) / n_texts / min(times) - 1), times.index(min(times))


def test_where_drafting_does_not_pay_the_cost_model_loses_little():
    """One column of the table of the slow test below."""
    for alpha in (0, 0.15):
        loss, K = regret(alpha, 0.3, (1.0,) * 9, 500, 2)
        assert K == 0 and loss <= 3


@pytest.mark.slow
@pytest.mark.parametrize("n_tokens", [2000, 120])
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_the_regret_of_the_cost_model(slope, n_tokens):
    """At most 3 % where drafting does not pay, 4 % where it does; pytest -s prints the table. The draws are seeded."""
    v, found = tuple(1 + slope * k for k in range(9)), {}
    print(f"\nregret, %, and the best fixed K; v(m) = 1 + {slope} (m - 1), {n_tokens} tokens")
    print("alpha" + "".join(f"{f'c = {c}':>12}" for c in COSTS))
    for alpha in ALPHAS:
        found |= {(alpha, c): regret(alpha, c, v, n_tokens, 4 if n_tokens > 500 else 100) for c in COSTS}
        print(f"{alpha:5}" + "".join(f"{found[alpha, c][0]:8.1f} [{found[alpha, c][1]}]" for c in COSTS))
    assert all(loss <= (4 if K else 3) for loss, K in found.values())


@pytest.mark.slow
def test_the_cost_model_in_a_text_that_changes():
    """alpha is 0.05 and 0.8 by turns, for 300 tokens each; compared with the best K of each part. -s prints the row."""
    v, losses = (1.0,) * 9, []
    for c in COSTS:
        best = sum(min(expected_time([alpha] * 300, K, c, v) for K in range(9)) for alpha in (0.05, 0.8)) * 4
        changing = lambda place: (0.05, 0.8)[place // 300 % 2]  # noqa: E731
        own = [simulated_time(CostModel(c, v), changing, c, v, 2400, seed) for seed in range(4)]
        losses.append(100 * (sum(own) / 4 / best - 1))
    print("\nregret, %, in a text that changes: " + ", ".join(f"{x:.1f} (c = {c})" for x, c in zip(losses, COSTS)))
    assert max(losses) <= 8


# ------------------------------------------------------------------------------------------------ in the loop


@pytest.mark.parametrize("length", [Heuristic(2, 3), CostModel(0.1, (1, 1.1, 1.2, 1.3), window=2)], ids=["h", "c"])
def test_the_text_has_the_distribution_of_the_target(length):
    """K depends on the outcomes of the rounds before, 0 included."""
    target, other = (TableModel.random(2, seed=seed) for seed in (1, 2))
    for sampling in (Sampling(), Sampling(0.6, repetition_penalty=1.5)):
        sampler = SpeculativeSampler(target, ModelDrafter(other), K=length, sampling=sampling)
        assert error_of(sampler, 5) < 1e-12


def test_a_length_of_0_is_a_plain_step():
    target, asked, histories = TableModel.random(3), iter([0, 2, 0, 0, 1]), []

    def length(history):
        histories.append(list(history))
        return next(asked)

    generation = SpeculativeSampler(target, ModelDrafter(target), K=length).generate([0], 8, 0)
    assert [len(r.drafted) for r in generation.rounds] == [0, 2, 0, 0, 1]
    assert [r.origins[-1] for r in generation.rounds] == ["plain", "bonus", "plain", "plain", "bonus"]
    assert histories[-1] == [(0, 0), (2, 2), (0, 0), (0, 0)]
