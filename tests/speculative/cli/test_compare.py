"""`compare`: lists as axes, the settings that fit, the numbers of the table.

Its pages, the table as CSV, the report, and drafters and rules of one's own are in pages/compare.txt.
"""

import re
from pathlib import Path

import pytest
from command import report_of, row_of, timeless

import gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, PresencePenalty, Sampling, SpeculativeSampler
from speculative.cli.commands import compare
from speculative.cli.drafters import DRAFTERS
from speculative.cli.prompts import held_out
from speculative.cli.settings import settings_of
from speculative.cli.words import read

FEW = ("--n_prompts=2", "--n_tokens_to_generate=6")


def rows_of(*arguments):
    return report_of("compare", *FEW, *arguments)["rows"]


SETTINGS = {  # words -> the values of the axes in each row, and how many settings do not fit
    "": ([""], 0),
    "temperature=0,0.5 K=1-3": (["0 1", "0 2", "0 3", "0.5 1", "0.5 2", "0.5 3"], 0),  # the longest changes fastest
    "drafter=all": ([name for name in DRAFTERS if name != "forced"], 1),
    # an option without a use multiplies no rows
    "drafter=model,recycling,prompt_lookup n_max=2,3": (
        ["model ", "recycling ", "prompt_lookup 2", "prompt_lookup 3"],
        0,
    ),
    "drafter=none,model K=1-3": (["none ", "model 1", "model 2", "model 3"], 0),
    "temperature=0,1 top_k=0,5 verifier=rejection,block": (
        ["0  ", *(f"1 {k} {v}" for v in ("rejection", "block") for k in "05")],
        0,
    ),
    "tree=0,4 siblings=without,top temperature=1": (["0 ", "4 without", "4 top"], 0),
    "drafter=model,heads verifier=rejection,block temperature=1": (
        ["model rejection", "model block", "heads rejection"],
        1,
    ),
}


@pytest.mark.parametrize("words", SETTINGS)
def test_lists_are_multiplied_to_the_settings_that_fit(words):
    given = dict(word.split("=") for word in words.split())
    settings, problems = settings_of(read(compare, "compare", (), given))
    rows, n_left_out = SETTINGS[words]
    axes = [name for name, text in given.items() if re.search("[,-]|all", text)]
    assert [label for _, label in settings] == [dict(zip(axes, row.split(" "))) for row in rows]
    assert len(problems) == n_left_out


def test_the_numbers_are_those_of_the_samplers():
    """Tokens per call, acceptance and texts of each setting, as the samplers give them one by one."""
    (target, tokenizer), (draft, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")
    rows = rows_of("--K=1,4", "--temperature=0,1", "--seed=3", "--presence_penalty=0.5")
    assert [row["setting"] for row in rows] == [{"K": K, "temperature": T} for K in "14" for T in "01"]
    for row in rows:
        sampling = Sampling(float(row["setting"]["temperature"]), processors=(PresencePenalty(0.5, 32),))
        sampler = SpeculativeSampler(target, ModelDrafter(draft), K=int(row["setting"]["K"]), sampling=sampling)
        alone, stats, same = AutoregressiveSampler(target, sampling=sampling), [], 0
        for i, prompt in enumerate(held_out(tokenizer, 2)):
            found, own = (each.generate(prompt, 6, 3 + i) for each in (sampler, alone))
            stats.append(found.stats)
            same += found.tokens.tolist() == own.tokens.tolist()
        assert row["tokens_per_call"] == 12 / sum(s.target_calls for s in stats) and row["same_texts"] == same
        for name in ("drafted", "accepted", "rejected"):
            assert row[name] == sum(getattr(s, name) for s in stats)
        assert row["alpha"] == row["accepted"] / (row["accepted"] + row["rejected"])
        assert row["low"] < row["speedup"] < row["high"]
        assert row["speedup"] == pytest.approx(row["alone_seconds"] / row["seconds"])


def test_one_text_is_the_comparison_of_one_prompt_with_one_setting():
    """What `generate` reports is the row of the table."""
    Path("one").write_text("Once upon a time\n")
    words = ("--n_tokens_to_generate=12", "--temperature=1", "--K=2", "--seed=5")
    one, [row] = row_of(*words, "--prompt=Once upon a time"), report_of("compare", *words, "--prompt_file=one")["rows"]
    assert {*one} - {*row} == {"prompt", "texts", "tokens"}
    assert timeless({name: one[name] for name in row}) == timeless(row)
    for name in ("tokens_per_call", "alpha"):
        assert one[name] == row[name]
