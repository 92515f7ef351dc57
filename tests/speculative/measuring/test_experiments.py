"""The experiments: what they predict happens, and no prediction uses the measurements it is compared with."""

import itertools
import json
import math

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Gumbel,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    TreeDrafter,
    Typical,
    exact_match,
    rejection,
    widths,
)
from speculative.measuring import (
    Run,
    alpha_table,
    calibrate,
    compare_drafters,
    fit,
    forecast,
    gain,
    gamma_table,
    method_table,
    native_and_assisted,
    race,
    repetition,
)
from speculative.measuring.drafters import alpha_interval
from speculative.measuring.gamma import implied_alpha, theory
from speculative.measuring.intervals import share
from speculative.testing import TableModel
from speculative.theory import estimate_alpha, overlap, speedup

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
GREEDY, PROMPTS, N = Sampling(temperature=0), [[a, b, c] for a, b, c in itertools.product(range(2), repeat=3)] * 2, 20


def tokens_per_call(sampling, K, prompts):
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT, sampling=sampling), K=K, sampling=sampling)
    return N * len(prompts) / sum(sampler.generate(prompt, N, 0).stats.target_calls for prompt in prompts)


def test_greedy_texts_take_exactly_the_expected_calls():
    expected = forecast(TARGET, ModelDrafter(DRAFT, sampling=GREEDY), PROMPTS, N, sampling=GREEDY, most=4)
    assert len(expected.tokens_per_call) == len(expected.expected_speedup) == 4 and len(expected.costs.v) == 5
    for K in range(1, 5):
        np.testing.assert_allclose(expected.tokens_per_call[K - 1], tokens_per_call(GREEDY, K, PROMPTS), rtol=1e-12)
    assert 1 < expected.tokens_per_call[0] < 2


def test_alpha_is_the_mean_overlap_along_the_targets_own_texts():
    sampling, drafter = Sampling(0.8), ModelDrafter(DRAFT, sampling=Sampling(0.9))
    expected = forecast(TARGET, drafter, PROMPTS, N, sampling=sampling, most=2, seed=3)
    overlaps = []
    for i, prompt in enumerate(PROMPTS):
        text = [*prompt, *AutoregressiveSampler(TARGET, sampling=sampling).generate(prompt, N, 3 + i).tokens.tolist()]
        p, q = (s(model(text[:-1], n_last=N)) for s, model in ((sampling, TARGET), (drafter.sampling, DRAFT)))
        overlaps.append(overlap(p, q).mean())
    assert math.isclose(expected.alpha, np.mean(overlaps))
    error, alpha = 2.131 * np.std(overlaps, ddof=1) / 4, expected.alpha  # t with 15 degrees of freedom, 16 texts
    logit = np.log(alpha / (1 - alpha)) + np.array([-1, 1]) * error / (alpha * (1 - alpha))
    np.testing.assert_allclose([expected.alpha_low, expected.alpha_high], 1 / (1 + np.exp(-logit)), rtol=1e-4)
    for K in (1, 2):
        by_formula = speedup(expected.alpha, K, expected.costs.c, expected.costs.v)
        assert math.isclose(expected.speedup_from_alpha[K - 1], by_formula)


def test_a_third_of_the_prompts_is_timed_and_the_others_are_expected_from():
    drafter = ModelDrafter(DRAFT, sampling=GREEDY)
    prompts = [[0, 0, 0]] * 2 + [[1, 1, 0]] * 5
    expected, rows = calibrate(TARGET, drafter, prompts, N, sampling=GREEDY, most=3)
    assert [row["K"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert math.isclose(row["tokens_per_call"], tokens_per_call(GREEDY, row["K"], prompts[:2]))
        assert math.isclose(row["expected_tokens_per_call"], tokens_per_call(GREEDY, row["K"], prompts[2:]))
        assert row["low"] <= row["speedup"] <= row["high"]
        assert row["expected_speedup"] == expected.expected_speedup[row["K"] - 1]
    assert expected.best_K == int(np.argmax([1, *expected.expected_speedup]))


def test_speculation_does_not_pay_with_a_draft_at_the_targets_cost(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: now[0])

    def slow(tokens, n_last=1):
        now[0] += 1.0
        return TARGET(tokens, n_last)

    slow.n_vocab, slow.n_ctx = 5, 99
    expected = forecast(slow, ModelDrafter(slow), PROMPTS, N, sampling=Sampling(), most=3)
    assert math.isclose(expected.alpha, 1) and expected.best_K == 0
    assert (expected.costs.step, expected.costs.c, expected.costs.v) == (1, 1, (1, 1, 1, 1))
    free = forecast(slow, ModelDrafter(TARGET), PROMPTS, N, sampling=Sampling(), most=3)
    assert free.costs.c == 0 and free.best_K == 3 and math.isclose(free.expected_speedup[2], 4)
    assert max(expected.expected_speedup) == 1  # K + 1 tokens for K drafted ones and a check, each at one token's cost


def test_the_gain_is_that_of_the_sums_and_its_interval_that_of_the_prompts():
    plain, other = np.array([2.0, 4.0, 6.0, 3.0] * 10), np.array([1.0, 4.0, 2.0, 3.0] * 10)
    middle, low, high = gain(plain, other)
    assert middle == 1.5 and 1.25 < low < 1.5 < high < 1.8
    assert gain(plain, plain / 2) == (2, 2, 2) and gain(plain[:1], other[:1]) == (2, None, None)
    same_ratio = np.array([1.0, 2.0, 3.0])  # of prompts that take longer and shorter: no spread
    assert gain(3 * same_ratio, same_ratio) == (3, pytest.approx(3), pytest.approx(3))


@pytest.mark.parametrize("n", [3, 4, 7, 12])
def test_intervals_of_few_prompts_contain_the_true_value_in_95_percent_of_the_cases(n):
    """2,000 draws each: a coverage of 0.95 is measured with a standard error of 0.005. The first-order intervals are
    allowed 0.93 to 0.975. Of the same draws a bootstrap has 0.74 (n = 3) to 0.90, Wilson's interval 0.5."""
    rng, n_draws = np.random.default_rng(n), 2000
    plain = rng.lognormal(0, 0.1, (n_draws, n))
    other = plain / rng.lognormal(math.log(1.4), 0.2, (n_draws, n))
    true_gain = 1.4 * math.exp(-(0.2**2) / 2)  # of the sums, over infinitely many prompts
    assert 0.93 < coverage(map(gain, plain, other), true_gain) < 0.975
    tested = rng.integers(80, 150, (n_draws, n))
    accepted = rng.binomial(tested, rng.beta(12, 3, (n_draws, n)))  # alpha differs by text, with a spread of 0.1
    assert 0.93 < coverage(map(share, accepted, tested), 0.8) < 0.975


def coverage(intervals, true):
    return np.mean([low <= true <= high for _, low, high in intervals])


def test_an_interval_of_a_share_by_hand():
    assert share(np.array([3, 1]), np.array([4, 0])) == (0.75, None, None)  # the second text says nothing
    assert share(np.zeros(3), np.zeros(3)) == (None, None, None)
    assert share(np.array([5, 5]), np.array([5, 5])) == (1, 1, 1)
    middle, low, high = share(np.array([1.0, 3.0]), np.array([4.0, 4.0]))
    half = 12.7062 * 0.25 / 0.25  # t with 1 degree of freedom, the standard error of the mean, the slope of the logit
    np.testing.assert_allclose(
        (middle, low, high), (0.5, 1 / (1 + math.exp(half)), 1 / (1 + math.exp(-half))), rtol=1e-4
    )


@pytest.mark.parametrize(("sampling", "widths"), [(GREEDY, (0.07, 0.08)), (Sampling(), (0, 1e-6))], ids=["0", "1"])
def test_alpha_of_a_table_is_not_certain_where_it_is_counted(sampling, widths):
    """At temperature 0 each place counts as 0 or 1: that 48 of 48 are 1 does not show that alpha is 1."""
    table = alpha_table(TARGET, {"itself": ModelDrafter(TARGET, sampling=sampling)}, PROMPTS, 3, sampling=sampling)
    (row,) = table["rows"]
    assert row["alpha"] == pytest.approx(1) and row["high"] <= 1 and widths[0] <= row["high"] - row["low"] <= widths[1]


def test_alpha_of_a_calibration_is_not_certain_where_it_is_counted():
    drafter = ModelDrafter(TARGET, sampling=GREEDY)
    forecast, _ = calibrate(TARGET, drafter, PROMPTS[:6], 4, sampling=GREEDY, most=1)
    assert forecast.alpha == 1 and forecast.alpha_low < 0.85 and forecast.alpha_high == 1


def test_alpha_is_not_certain_where_all_of_a_few_draft_tokens_were_accepted():
    runs = [Run(1.0, 0.5, [0], 1, 9, 9, 0)] * 4
    found = alpha_interval(runs)
    assert found["alpha"] == found["alpha_high"] == 1 and found["alpha_low"] == estimate_alpha(36, 0)[1] < 0.95


def test_the_same_tests_with_several_draft_lengths_count_once():
    """The target drafts for itself, one token a text: two different tokens are tested, each with four lengths."""
    entries = {"itself": (TARGET, ModelDrafter(TARGET, sampling=GREEDY))}
    (row,) = compare_drafters(TARGET, entries, [[0], [1]], 2, sampling=GREEDY, lengths=(1, 2, 4, 8))
    assert (row["alpha"], row["alpha_high"]) == (1, 1) and row["alpha_low"] == pytest.approx(estimate_alpha(2, 0)[1])


def test_in_a_race_everyone_runs_on_every_prompt_with_the_same_seeds():
    samplers = {"alone": AutoregressiveSampler(TARGET), "short": SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=1)}
    results = race(samplers, PROMPTS, 5, seed=7)
    assert results.keys() == samplers.keys()
    for name, runs in results.items():
        assert len(runs) == len(PROMPTS)
        for i, (prompt, run) in enumerate(zip(PROMPTS, runs)):
            generation = samplers[name].generate(prompt, 5, 7 + i)
            assert run.seconds > run.draft_seconds >= 0 and run.tokens == generation.tokens.tolist()
            stats = generation.stats
            assert (run.drafted, run.accepted, run.rejected) == (stats.drafted, stats.accepted, stats.rejected)
            assert run.tokens_per_call == 5 / stats.target_calls


def test_a_row_for_each_drafter():
    entries = {
        "model": (TARGET, ModelDrafter(DRAFT)),
        "the target": (TARGET, ModelDrafter(TARGET)),
        "none": (TARGET, PromptLookupDrafter(5, n_max=1)),
    }
    prompts = [[0], [1]]
    rows = compare_drafters(TARGET, entries, prompts, 10, sampling=Sampling(), lengths=(1, 3), seed=2)
    assert [row["drafter"] for row in rows] == list(entries) and {row["exactness"] for row in rows} == {"exact"}
    for row, (_, drafter) in zip(rows, entries.values()):
        samplers = {K: SpeculativeSampler(TARGET, drafter, K=K) for K in (1, 3)}
        stats = {K: [s.generate(p, 10, 2 + i).stats for i, p in enumerate(prompts)] for K, s in samplers.items()}
        everything = [*stats[1], *stats[3]]
        accepted, rejected = sum(s.accepted for s in everything), sum(s.rejected for s in everything)
        assert math.isclose(row["alpha"], accepted / (accepted + rejected))
        assert math.isclose(row["tokens_per_call"], 20 / sum(s.target_calls for s in stats[row["K"]]))
        assert row["alpha_low"] < row["alpha"] < row["alpha_high"] + 1e-12
        assert row["low"] <= row["speedup"] <= row["high"]
    assert rows[1]["alpha"] == 1


def test_a_drafter_that_never_drafts_has_no_cost_per_draft_token():
    straight = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)  # 0, 1, 2, ...: nothing comes twice
    (row,) = compare_drafters(straight, {"none": (straight, PromptLookupDrafter(30))}, [[0]], 9, sampling=GREEDY)
    assert row["c"] is None and row["alpha"] is None and row["tokens_per_call"] == pytest.approx(1)


# ------------------------------------------------------------------------------------------------ gamma


@pytest.mark.parametrize("n_tokens", [math.inf, 40])
@pytest.mark.parametrize(("alpha", "c"), [(0.0, 0.5), (0.3, 0.05), (0.8, 0.3), (1.0, 0.0)])
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


def test_the_gamma_table_of_a_perfect_draft_at_a_quarter_of_the_cost(monkeypatch):
    now = [0.0]
    for module in ("interfaces", "measuring.runs"):
        monkeypatch.setattr(f"speculative.{module}.perf_counter", lambda: now[0])
    drafter = ModelDrafter(ticking(TARGET, now, 0.25))
    table = gamma_table(ticking(TARGET, now, 1.0), drafter, [[0], [1]], 60, sampling=Sampling(), lengths=(1, 2, 5))
    np.testing.assert_allclose([table["alpha"], table["c"], table["c_draft"]], [1, 0.25, 0.25], atol=1e-6)
    for row, K in zip(table["rows"], (1, 2, 5)):  # K + 1 divides 60: every round is whole
        assert row["K"] == K and row["tokens_per_call"] == K + 1 == pytest.approx(row["theory_tokens_per_call"])
        assert row["speedup"] == row["low"] == row["high"] == pytest.approx((K + 1) / (1 + K / 4))
        np.testing.assert_allclose([row["alpha"], row["c"]], [1, 0.25], atol=1e-6)
        assert row["theory_speedup"] == pytest.approx(row["speedup"])


def test_repetition_by_hand():
    assert repetition([1, 2, 3, 4]) == repetition([1, 2, 3]) == repetition([]) == 0
    assert repetition([7] * 9) == pytest.approx(5 / 6)
    assert repetition([1, 2, 1, 2, 1], n=2) == pytest.approx(2 / 4)


# ------------------------------------------------------------------------------------------------ alpha, methods


def test_alpha_is_the_overlap_where_the_drafter_drafts():
    p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    target, draft = TableModel([p] * 3, n_ctx=99), TableModel([q] * 3, n_ctx=99)
    entries = {"draft": ModelDrafter(draft), "target": ModelDrafter(target), "copy": PromptLookupDrafter(3)}
    table = alpha_table(target, entries, [[0], [0, 1]], 30, sampling=Sampling(), seed=1)
    draft_row, own, copy = table["rows"]
    for row, alpha in ((draft_row, 0.6), (own, 1.0)):  # 0.2 + 0.2 + 0.2
        np.testing.assert_allclose([row["alpha"], row["low"], row["high"]], alpha)
        assert row["guessed"] == 1
    assert 0.2 < copy["low"] <= copy["alpha"] <= copy["high"] < 0.5 and 0.5 < copy["guessed"] < 1
    assert 0 < table["repetition"] < 1


def test_a_drafter_that_never_drafts_has_no_alpha():
    straight = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)
    table = alpha_table(straight, {"none": PromptLookupDrafter(30)}, [[0]], 9, sampling=GREEDY)
    assert table["rows"] == [{"drafter": "none", "alpha": None, "low": None, "high": None, "guessed": 0}]
    assert table["repetition"] == 0


def test_a_row_for_each_drafter_and_verifier():
    drafters = {"model": (TARGET, ModelDrafter(DRAFT, sampling=GREEDY)), "copy": (TARGET, PromptLookupDrafter(5))}
    verifiers = {"rejection": rejection, "gumbel": exact_match, "typical": Typical()}
    prompts = {"short": [[0], [1]], "long": [[0, 1, 2, 3]]}
    rows = method_table(TARGET, drafters, verifiers, prompts, 12, K=2, sampling=GREEDY)
    assert [(row["drafter"], row["verifier"]) for row in rows] == list(itertools.product(drafters, verifiers))
    assert [row["exactness"] for row in rows] == ["exact", "exact", "LOSSY"] * 2
    sampler = SpeculativeSampler(TARGET, drafters["model"][1], K=2, sampling=GREEDY)
    calls = {kind: sum(sampler.generate(p, 12, 0).stats.target_calls for p in prompts[kind]) for kind in prompts}
    for row in rows[:3]:
        assert list(row["kinds"]) == ["short", "long", "all"]
        assert row["kinds"]["short"]["tokens_per_call"] == 24 / calls["short"]
        assert row["kinds"]["all"]["tokens_per_call"] == 36 / sum(calls.values())
    assert all(cell["same_texts"] == cell["n_texts"] for row in rows for cell in row["kinds"].values())
    assert rows[0]["kinds"]["all"]["n_texts"] == 3


def test_the_verifiers_that_need_common_random_numbers_get_them():
    drafters, verifiers = {"model": (TARGET, ModelDrafter(DRAFT))}, {"own": exact_match, "shared": exact_match}
    own, shared = method_table(
        TARGET, drafters, verifiers, {"some": PROMPTS[:2]}, 30, K=3, sampling=Sampling(), shared_noise=["shared"]
    )
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), verifier=exact_match, K=3)
    for row, noise in ((own, np.random.default_rng), (shared, Gumbel)):
        calls = [
            sampler.generate(prompt, 30, noise(seed)).stats.target_calls for seed, prompt in enumerate(PROMPTS[:2])
        ]
        assert row["kinds"]["all"]["tokens_per_call"] == 60 / sum(calls)


def test_native_and_assisted():
    entries = {"draft": (TARGET, ModelDrafter(DRAFT))}
    options = {"sampling": Sampling(), "K": 3, "seed": 5}
    runs, rows = native_and_assisted(TARGET, entries, PROMPTS[:4], 15, **options)
    row, seconds = rows["draft"], {name: sum(run.seconds for run in some) for name, some in runs.items()}
    assert (row["native_seconds"], row["seconds"]) == (seconds["native"], seconds["draft"])
    assert row["speedup"] == pytest.approx(seconds["native"] / seconds["draft"])
    assert row["tokens_per_second"] == 60 / seconds["draft"] and row["same_texts"] < 4
    assert row["tokens_per_call"] == 60 / sum(run.target_calls for run in runs["draft"])
    shared = native_and_assisted(TARGET, entries, PROMPTS[:4], 15, verifier=exact_match, shared_noise=True, **options)
    assert shared[1]["draft"]["same_texts"] == 4


# ------------------------------------------------------------------------------------------------ parts


class Interrupted(Exception):
    pass


EXPERIMENTS = {
    "calibrate": lambda keep: calibrate(TARGET, ModelDrafter(DRAFT), PROMPTS[:6], 8, sampling=Sampling(), keep=keep),
    "gamma": lambda keep: gamma_table(TARGET, ModelDrafter(DRAFT), PROMPTS[:6], 8, sampling=Sampling(), keep=keep),
    "alpha": lambda keep: alpha_table(
        TARGET, {"draft": ModelDrafter(DRAFT)}, PROMPTS[:6], 8, sampling=Sampling(), keep=keep
    ),
    "methods": lambda keep: method_table(
        TARGET, {"draft": (TARGET, ModelDrafter(DRAFT))}, {"rejection": rejection}, {"some": PROMPTS[:6]}, 8, K=2,
        sampling=Sampling(), keep=keep,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_interrupted_experiment_resumes_where_it_stopped(name):
    kept, measured, most = {}, [], [3]

    def keep(part, measure):
        if part not in kept:
            if len(measured) == most[0]:
                raise Interrupted
            measured.append(part)
            kept[part] = json.loads(json.dumps(measure()))
        return kept[part]

    with pytest.raises(Interrupted):
        EXPERIMENTS[name](keep)
    before, most[0] = json.dumps(kept), math.inf
    report = EXPERIMENTS[name](keep)
    assert len(before) > 50 and json.dumps({part: kept[part] for part in measured[:3]}) == before
    assert len(set(measured)) == len(measured) >= 6
    assert EXPERIMENTS[name](keep) == report and len(measured) == len(kept)


def test_drafters_that_an_experiment_cannot_measure_are_refused():
    drafter, alone = ModelDrafter(DRAFT, threshold=0.5), Sampling()
    with pytest.raises(ValueError, match=r"expected a drafter that always drafts K tokens, got one with threshold 0.5"):
        forecast(TARGET, drafter, PROMPTS, N, sampling=alone, most=2)
    tree = TreeDrafter(ByPaths(DRAFT), widths(2))
    with pytest.raises(ValueError, match="expected drafters of chains, got a tree: use acceptance_table"):
        alpha_table(TARGET, {"tree": tree}, PROMPTS, N, sampling=alone)
    with pytest.raises(ValueError, match="expected other names for the drafters than 'native'"):
        native_and_assisted(TARGET, {"native": (TARGET, drafter)}, PROMPTS, N, sampling=alone, K=2)
