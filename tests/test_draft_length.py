"""Draft lengths: what they choose, and that the text keeps its distribution whatever they choose."""

import pytest

from speculative import CostModel, Heuristic, ModelDrafter, SpeculativeSampler
from speculative.testing import TableModel, check_sampler
from speculative.theory import best_K, speedup

CHEAP = {"c": 0.1, "v": (1, 1.05, 1.1, 1.15, 1.2)}


def test_the_heuristic_schedule_by_hand():
    """Two more after a whole acceptance, one less otherwise, from 1 to `most`; rounds without a draft say nothing."""
    history, chosen = [], []
    for drafted, accepted in [(3, 3), (5, 5), (6, 2), (5, 4), (4, 0), (3, 0), (2, 0), (1, 0), (1, 0), (0, 0), (1, 1)]:
        chosen.append(Heuristic(first=3, most=6)(history))
        history.append((drafted, accepted))
    assert [*chosen, Heuristic(3, 6)(history)] == [3, 5, 6, 5, 4, 3, 2, 1, 1, 1, 1, 3]


def test_the_cost_model_starts_from_what_it_expects():
    for alpha in (0.05, 0.3, 0.6, 0.9):
        assert CostModel(**CHEAP, alpha=alpha)([]) == best_K(alpha, 0.1, CHEAP["v"])


def test_the_cost_model_follows_the_running_estimate():
    """alpha = (A + 4 * 0.7) / (A + J + 4) over the last `window` rounds, and the K with the best speedup for it."""
    choose = CostModel(**CHEAP, window=5)
    for recent in ([(4, 4)] * 5, [(4, 0)] * 5, [(4, 1), (2, 2), (1, 0), (3, 3), (4, 2)]):
        accepted, rejected = sum(a for _, a in recent), sum(a < d for d, a in recent)
        alpha = (accepted + 2.8) / (accepted + rejected + 4)
        wanted = max(range(5), key=lambda K: speedup(alpha, K, 0.1, CHEAP["v"]))
        for before in ([], [(4, 0)] * 3, [(4, 4)] * 3):
            assert choose([*before, *recent]) == wanted


def test_the_cost_model_does_not_speculate_where_it_does_not_pay_but_looks_again():
    dear = CostModel(c=1.2, v=(1, 2, 3), alpha=0.5, window=8)
    history = []
    for _ in range(36):
        history.append((dear(history), 0))
    drafted = [drafted for drafted, _ in history]
    assert drafted == ([0] * 8 + [1]) * 4


@pytest.mark.parametrize("length", [Heuristic(2, 3), CostModel(0.1, (1, 1.1, 1.2, 1.3), window=2)], ids=["h", "c"])
def test_the_text_has_the_distribution_of_the_target(length):
    """K depends on the outcomes of the rounds before, 0 included."""
    check_sampler(lambda target, drafter, K, sampling: SpeculativeSampler(target, drafter, K=length, sampling=sampling))


def test_the_distribution_of_the_text_with_a_confidence_stop():
    def make(target, drafter, K, sampling):
        model = getattr(drafter, "drafter", drafter).model
        return SpeculativeSampler(target, ModelDrafter(model, threshold=0.4), K=K, sampling=sampling)

    check_sampler(make)


def test_a_length_of_0_is_a_plain_step():
    target, asked, histories = TableModel.random(3), iter([0, 2, 0, 0, 1]), []

    def length(history):
        histories.append(list(history))
        return next(asked)

    generation = SpeculativeSampler(target, ModelDrafter(target), K=length).generate([0], 8, 0)
    assert [len(r.drafted) for r in generation.rounds] == [0, 2, 0, 0, 1]
    assert [r.origins[-1] for r in generation.rounds] == ["plain", "bonus", "plain", "plain", "bonus"]
    assert histories[-1] == [(0, 0), (2, 2), (0, 0), (0, 0)]
