"""The table of draft lengths, and the fit of one alpha and one c."""

import math

import numpy as np
import pytest

from speculative import ModelDrafter, Sampling
from speculative.cli.experiments import fit, gamma_table
from speculative.cli.experiments.gamma import implied_alpha, theory
from speculative.testing import TableModel

TARGET = TableModel.random(5, seed=1, n_ctx=99)


@pytest.mark.parametrize(
    ("alpha", "c", "n_tokens"), [(0.0, 0.5, 40), (0.3, 0.05, math.inf), (0.8, 0.3, 40), (1.0, 0.0, math.inf)]
)
def test_the_fit_finds_the_alpha_and_the_c_that_the_rows_were_made_with(alpha, c, n_tokens):
    lengths = [1, 2, 5, 10]
    calls, times = ([theory(alpha, K, n_tokens, cost) for K in lengths] for cost in (0, c))
    drafted = [made / theory(alpha, K, n_tokens, 1) - 1 for K, made in zip(lengths, calls)]  # a call takes 1 + 1 k
    np.testing.assert_allclose(fit(lengths, calls, times, n_tokens, drafted), (alpha, c), atol=1e-6)
    np.testing.assert_allclose([implied_alpha(K, E, n_tokens) for K, E in zip(lengths, calls)], alpha, atol=1e-6)


def ticking(model, now, seconds):
    """The model; each of its calls advances the clock `now` by so many seconds."""

    def slow(tokens, n_last=1):
        now[0] += seconds
        return model(tokens, n_last)

    slow.n_vocab, slow.n_ctx = model.n_vocab, model.n_ctx
    return slow


def test_a_perfect_draft_at_a_quarter_of_the_cost(monkeypatch):
    now = [0.0]
    for module in ("interfaces", "measuring.runs"):
        monkeypatch.setattr(f"speculative.{module}.perf_counter", lambda: now[0])
    drafter = ModelDrafter(ticking(TARGET, now, 0.5))
    table = gamma_table(ticking(TARGET, now, 2.0), drafter, [[0], [1]], 60, sampling=Sampling(), lengths=(1, 2, 5))
    np.testing.assert_allclose([table["alpha"], table["c"], table["c_draft"]], [1, 0.25, 0.25], atol=1e-6)
    for row, K in zip(table["rows"], (1, 2, 5)):  # K + 1 divides 60: every round is whole
        assert row["K"] == K and row["tokens_per_call"] == K + 1 == pytest.approx(row["theory_tokens_per_call"])
        assert row["speedup"] == row["low"] == row["high"] == pytest.approx((K + 1) / (1 + K / 4))
        np.testing.assert_allclose([row["alpha"], row["c"]], [1, 0.25], atol=1e-6)
        assert row["theory_speedup"] == pytest.approx(row["speedup"])
