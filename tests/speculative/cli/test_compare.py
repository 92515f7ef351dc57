"""`compare`: lists as axes, the settings that fit, the numbers of the table, drafters of one's own.

Its pages, the table as CSV and the report are in pages/compare.txt.
"""

import pytest
from command import report_of, run_here

import gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, PresencePenalty, Sampling, SpeculativeSampler
from speculative.cli.commands import compare
from speculative.cli.drafters import DRAFTERS
from speculative.cli.options import read
from speculative.cli.prompts import held_out

FEW = ("--n_prompts=2", "--n_tokens_to_generate=6")


def rows_of(*arguments):
    return report_of("compare", *FEW, *arguments)["rows"]


SETTINGS = {  # words -> the values of the axes in each row, and how many settings do not fit
    "": ([""], 0),
    "temperature=0,0.5 K=1-3": (["0 1", "0 2", "0 3", "0.5 1", "0.5 2", "0.5 3"], 0),  # the longest changes fastest
    "drafter=all": ([name for name in DRAFTERS if name != "forced"], 1),
    # an option without a use multiplies no rows
    "drafter=model,suffix,prompt_lookup n_max=2,3": (["model ", "suffix ", "prompt_lookup 2", "prompt_lookup 3"], 0),
    "tree=0,4 siblings=without,top": (["0 ", "4 without", "4 top"], 0),
    "drafter=model,heads verifier=rejection,block": (["model rejection", "model block", "heads rejection"], 1),
}


@pytest.mark.parametrize("words", SETTINGS)
def test_lists_are_multiplied_to_the_settings_that_fit(words):
    given, problems = dict(word.split("=") for word in words.split()), {}
    found = compare.settings_of(read(compare.OPTIONS, given, compare.LISTS), problems)
    rows, n_left_out = SETTINGS[words]
    assert [label for _, label in found] == [dict(zip(given, row.split(" "))) for row in rows]
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


# ------------------------------------------------------------------------------------------------ of one's own

MINE = '''
import numpy as np
from speculative import Draft, Verdict, residual, sample_token

class Again:
    """Drafts the last token again."""
    def __init__(self, target, tokenizer):
        self.n_vocab = target.n_vocab
    def propose(self, tokens, K, rng):
        probs = np.zeros((K, self.n_vocab))
        probs[:, tokens[-1]] = 1
        return Draft(np.full(K, tokens[-1]), probs)

class Crashes(Again):
    def propose(self, tokens, K, rng):
        return {}[len(tokens)]

ready = Again(type("Target", (), {"n_vocab": 2048}), None)

def rule(from_p):
    def verify(draft, p, rng):
        for i, token in enumerate(draft.tokens):
            if rng.random() * draft.probs[i, token] >= p[i, token]:
                return Verdict(i, sample_token(p[i] if from_p else residual(p[i], draft.probs[i]), rng))
        return Verdict(len(draft.tokens), sample_token(p[-1], rng))
    verify.trees = False
    return verify

right, on_purpose = rule(False), rule(True)
on_purpose.exactness = "LOSSY"
'''


def test_drafters_and_rules_of_ones_own(tmp_path, monkeypatch):
    """They are in the table; an error in one names its line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    arguments = ("--drafter=mine.py:Again,mine.py:ready", "--verifier=rejection,mine.py:right,mine.py:on_purpose")
    rows = rows_of("--target_model_size=tiny-draft", "--temperature=1", *arguments)
    assert [row["exactness"] for row in rows] == ["exact", "checked", "LOSSY"] * 2
    for row, other in zip(rows[:3], rows[3:]):
        assert row["draft"] == {"name": "mine.py:Again"} and row["drafted"] == other["drafted"] > 0
        assert (row["loss"] is None) == (row["exactness"] != "LOSSY") and row["loss"] != 0
    report = report_of("--drafter=mine.py:Again", "--verifier=mine.py:right", "--n_tokens_to_generate=6")
    assert report["same_tokens"] and report["drafter"] == "mine.py:Again" and report["exactness"] == "checked"
    result = run_here("--drafter=mine.py:Crashes", "--n_tokens_to_generate=4")
    note, sentence = result.stderr.splitlines()
    assert note.startswith("note: mine.py:Crashes is not graded: with a target of 3 tokens, your drafter fails")
    assert result.returncode == 2 and sentence == "main.py: KeyError: 1 (line 16 of mine.py)"
