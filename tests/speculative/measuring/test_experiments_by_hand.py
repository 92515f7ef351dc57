"""The seeds, places and means of the experiments, against samplers that are run by hand."""

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    TreeDrafter,
    rejection,
)
from speculative import measuring as experiments
from speculative.measuring import (
    acceptance_table,
    alpha_table,
    calibrate,
    forecast,
    native_and_assisted,
    race,
    repetition,
)
from speculative.measuring import method_table as methods
from speculative.measuring.intervals import share
from speculative.measuring.trees import tree_table as trees_of
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)


def test_each_text_of_the_alpha_table_has_a_seed_of_its_own():
    names = {}

    def keep(name, measure):
        names[name] = measure()
        return names[name]

    table = alpha_table(
        TARGET, {"draft": ModelDrafter(DRAFT)}, [[0, 1, 2]] * 2, 30, sampling=Sampling(), seed=3, keep=keep
    )
    texts = [AutoregressiveSampler(TARGET).generate([0, 1, 2], 30, 3 + i).tokens.tolist() for i in (0, 1)]
    assert [part["repetition"] for part in names.values()] == [repetition(text) for text in texts]
    assert names["text 1"]["overlap"] != names["text 2"]["overlap"]
    assert table["repetition"] == pytest.approx(np.mean([repetition(text) for text in texts]))


def test_repetition_in_the_alpha_table_leaves_out_the_prompt():
    straight = TableModel(np.eye(30)[[*range(1, 30), 29]], n_ctx=40)  # 0, 1, 2, ...
    table = alpha_table(straight, {"none": PromptLookupDrafter(30)}, [[1] * 9], 9, sampling=Sampling(temperature=0))
    assert table["repetition"] == 0


def test_the_seed_of_native_and_assisted_is_that_of_the_first_prompt():
    runs, _ = native_and_assisted(TARGET, {}, [[0]], 30, sampling=Sampling(), K=2, seed=5)
    assert runs["native"][0].tokens == AutoregressiveSampler(TARGET).generate([0], 30, 5).tokens.tolist()


def test_the_seed_of_the_methods_is_that_of_the_first_prompt():
    parts = {}
    methods(
        TARGET,
        {"draft": (TARGET, ModelDrafter(DRAFT))},
        {"rejection": rejection},
        {"some": [[0]]},
        30,
        K=2,
        sampling=Sampling(),
        seed=5,
        keep=lambda name, measure: parts.setdefault(name, measure()),
    )
    alone = parts["draft, some, prompt 1"][0]
    assert alone["tokens"] == AutoregressiveSampler(TARGET).generate([0], 30, 5).tokens.tolist()


def test_costs_of_a_forecast_are_those_in_the_middle_of_a_text_with_its_sampling(monkeypatch):
    seen, sampling = [], Sampling(temperature=0.5)

    def measured(target, drafter, prompt, **options):
        seen.append((list(prompt), options["sampling"]))
        return experiments.calibration.Costs(0.001, 0.1, (1.0,) * 9)

    monkeypatch.setattr("speculative.measuring.calibration.measure_costs", measured)
    forecast(TARGET, ModelDrafter(DRAFT), [[0, 1], [1]], 10, sampling=sampling)
    text = AutoregressiveSampler(TARGET, sampling=sampling).generate([0, 1], 10, 0).tokens.tolist()
    assert seen == [([0, 1, *text[:5]], sampling)]


def test_the_timed_texts_of_calibrate_have_other_seeds_than_the_expected_ones(monkeypatch):
    parts, costs = {}, experiments.calibration.Costs(0.001, 0.1, (1.0,) * 9)
    monkeypatch.setattr("speculative.measuring.calibration.measure_costs", lambda *_, **options: costs)
    calibrate(
        TARGET,
        ModelDrafter(DRAFT),
        [[0]] * 3,
        20,
        sampling=Sampling(),
        seed=4,
        most=1,
        keep=lambda name, measure: parts.setdefault(name, measure()),
    )
    alone = parts["prompt 1"][0]["tokens"]
    assert alone == AutoregressiveSampler(TARGET).generate([0], 20, 7).tokens.tolist()


def test_who_starts_a_race_changes_from_prompt_to_prompt():
    order = []

    class Seen:
        def __init__(self, name):
            self.name, self.sampler = name, AutoregressiveSampler(TARGET)

        def rounds(self, *arguments):
            order.append(self.name)
            return self.sampler.rounds(*arguments)

        def generate(self, *arguments):
            return self.sampler.generate(*arguments)

    race({name: Seen(name) for name in "abc"}, [[0]] * 4, 3)
    assert "".join(order[::2]) == "abcbcacababc"  # each has a warm-up


def test_a_share_of_almost_one_has_an_interval_without_overflow():
    above = np.array([0.1, 0.2, 0.3]) * 1.0000000000000002
    middle, low, high = share(above, np.array([0.1, 0.2, 0.3]))
    assert (middle, low, high) == (1.0, 1.0, 1.0)


def makers(rule=None):
    return {"draft": lambda shape: (ByPaths(TARGET), TreeDrafter(ByPaths(DRAFT), shape))}


def test_acceptance_is_the_mean_over_texts_with_seeds_of_their_own():
    parts = {}
    keep = lambda name, measure: parts.setdefault(name, measure())  # noqa: E731
    found = acceptance_table(makers(), [[0], [0], [0]], 12, sampling=Sampling(), seed=3, keep=keep)["draft"]
    rows = [parts[f"acceptance, text {i}"][0] for i in (1, 2, 3)]
    np.testing.assert_allclose(np.cumsum(found), np.mean(rows, axis=0))
    single = [acceptance_table(makers(), [[0]], 12, sampling=Sampling(), seed=seed)["draft"] for seed in (3, 4, 5)]
    np.testing.assert_allclose(rows, np.cumsum(single, axis=1))
    assert rows[0] != rows[1] != rows[2]


def test_trees_are_shaped_and_expected_by_acceptance_that_falls_with_the_rank():
    acceptance, options = (
        {"draft": [0.5, 0.1, 0.4, 0, 0, 0, 0, 0]},
        {"sampling": Sampling(), "sizes": [3], "max_depth": 1},
    )
    rows = trees_of(ByPaths(TARGET), makers(), acceptance, [[0], [1]], 8, **options)
    assert [row["expected"] for row in rows] == pytest.approx([1.5, 1 + 0.5 + 0.1 + 0.1])


def test_a_chain_of_the_table_is_drafted_to_its_last_level():
    maker = {"draft": lambda shape: (ByPaths(TARGET), TreeDrafter(ByPaths(TARGET), shape, sampling=Sampling(0)))}
    options = {"sampling": Sampling(temperature=0), "sizes": [], "max_depth": 6}
    rows = trees_of(ByPaths(TARGET), maker, {"draft": [1.0] + [0.0] * 7}, [[0]], 21, **options)
    assert rows[-1]["levels"] == 6 and rows[-1]["tokens_per_call"] == 7
