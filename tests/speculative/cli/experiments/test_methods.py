"""The tables of methods and of native and assisted seconds."""

import itertools

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    Gumbel,
    ModelDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    Typical,
    exact_match,
    rejection,
)
from speculative.cli.experiments import method_table, native_and_assisted
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1, n_ctx=99), TableModel.random(5, seed=4, n_ctx=99)
PROMPTS, GREEDY = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0]], Sampling(temperature=0)


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
        TARGET, drafters, verifiers, {"some": PROMPTS}, 30, K=3, sampling=Sampling(), shared_noise=["shared"]
    )
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), verifier=exact_match, K=3)
    for row, noise in ((own, np.random.default_rng), (shared, Gumbel)):
        calls = [sampler.generate(prompt, 30, noise(seed)).stats.target_calls for seed, prompt in enumerate(PROMPTS)]
        assert row["kinds"]["all"]["tokens_per_call"] == 120 / sum(calls)


def test_the_seed_is_that_of_the_first_prompt():
    parts, drafters = {}, {"draft": (TARGET, ModelDrafter(DRAFT))}
    keep = lambda name, measure: parts.setdefault(name, measure())  # noqa: E731
    options = {"K": 2, "sampling": Sampling(), "seed": 5, "keep": keep}
    method_table(TARGET, drafters, {"rejection": rejection}, {"some": [[0]]}, 30, **options)
    alone = AutoregressiveSampler(TARGET).generate([0], 30, 5).tokens.tolist()
    assert parts["draft, some, prompt 1"][0]["tokens"] == alone
    runs, _ = native_and_assisted(TARGET, {}, [[0]], 30, K=2, sampling=Sampling(), seed=5)
    assert runs["native"][0].tokens == alone


def test_native_and_assisted():
    entries = {"draft": (TARGET, ModelDrafter(DRAFT))}
    options = {"sampling": Sampling(), "K": 3, "seed": 5}
    runs, rows = native_and_assisted(TARGET, entries, PROMPTS, 15, **options)
    row, seconds = rows["draft"], {name: sum(run.seconds for run in some) for name, some in runs.items()}
    assert (row["native_seconds"], row["seconds"]) == (seconds["native"], seconds["draft"])
    assert row["speedup"] == pytest.approx(seconds["native"] / seconds["draft"])
    assert row["tokens_per_second"] == 60 / seconds["draft"] and row["same_texts"] < 4
    assert row["tokens_per_call"] == 60 / sum(run.target_calls for run in runs["draft"])
    shared = native_and_assisted(TARGET, entries, PROMPTS, 15, verifier=exact_match, shared_noise=True, **options)
    assert shared[1]["draft"]["same_texts"] == 4
    with pytest.raises(ValueError, match="expected other names for the drafters than 'native'"):
        native_and_assisted(TARGET, {"native": entries["draft"]}, PROMPTS, 15, **options)
