"""`compare`: lists as axes, the settings that fit, the numbers of the table, its views, drafters of one's own."""

import csv
import json
import os

import pytest
from command import report_of, run_here

import gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, PresencePenalty, Sampling, SpeculativeSampler
from speculative.cli.commands import compare
from speculative.cli.options import read
from speculative.cli.prompts import held_out

FEW = ("--n_prompts=3", "--n_tokens_to_generate=6")


def labels(*words):
    """The settings of these lists, in the order of the table, and the sentences on those that do not fit."""
    options = read(compare.OPTIONS, dict(word.split("=") for word in words), compare.LISTS)
    problems = {}
    return [label for _, label in compare.settings_of(options, problems)], [*problems]


def table_in(path):
    """The rows of a CSV file."""
    return [*csv.DictReader(path.read_text("utf-8").splitlines())]


def rows_of(*arguments):
    return report_of("compare", *FEW, *arguments)["rows"]


# ------------------------------------------------------------------------------------------------ settings


def test_lists_are_multiplied_and_the_longest_changes_fastest():
    found, problems = labels("K=1-3", "temperature=0,0.5")
    assert found == [{"temperature": T, "K": K} for T in ("0", "0.5") for K in "123"] and not problems
    assert labels() == ([{}], [])
    assert [one["drafter"] for one in labels("drafter=all")[0]][:2] == ["model", "ngram"]


def test_an_option_that_a_drafter_does_not_use_does_not_multiply_its_rows():
    found, _ = labels("drafter=model,prompt_lookup,suffix", "n_max=2,3,4")
    assert [(one["drafter"], one["n_max"]) for one in found] == [
        ("model", ""), *(("prompt_lookup", n) for n in "234"), ("suffix", "")
    ]  # fmt: skip
    found, _ = labels("tree=0,4", "siblings=without,top")
    assert [(one["tree"], one["siblings"]) for one in found] == [("0", ""), ("4", "without"), ("4", "top")]


def test_settings_that_do_not_fit_are_left_out_with_a_sentence():
    found, problems = labels("drafter=model,heads", "verifier=rejection,block")
    assert [(*one.values(),) for one in found] == [("model", "rejection"), ("model", "block"), ("heads", "rejection")]
    assert len(problems) == 1


# ------------------------------------------------------------------------------------------------ numbers


def test_the_numbers_are_those_of_the_samplers():
    """Tokens per call, acceptance and texts of each setting, as the samplers give them one by one."""
    (target, tokenizer), (draft, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")
    rows = rows_of("--K=1,4", "--temperature=0,1", "--seed=3", "--presence_penalty=0.5")
    assert [row["setting"] for row in rows] == [{"K": K, "temperature": T} for K in "14" for T in "01"]
    for row in rows:
        sampling = Sampling(float(row["setting"]["temperature"]), processors=(PresencePenalty(0.5, 32),))
        sampler = SpeculativeSampler(target, ModelDrafter(draft), K=int(row["setting"]["K"]), sampling=sampling)
        alone, stats, same = AutoregressiveSampler(target, sampling=sampling), [], 0
        for i, prompt in enumerate(held_out(tokenizer, 3)):
            found, own = (each.generate(prompt, 6, 3 + i) for each in (sampler, alone))
            stats.append(found.stats)
            same += found.tokens.tolist() == own.tokens.tolist()
        assert row["tokens_per_call"] == 18 / sum(s.target_calls for s in stats) and row["same_texts"] == same
        for name in ("drafted", "accepted", "rejected"):
            assert row[name] == sum(getattr(s, name) for s in stats)
        assert row["alpha"] == row["accepted"] / (row["accepted"] + row["rejected"])
        assert row["low"] < row["speedup"] < row["high"]
        assert row["speedup"] == pytest.approx(row["alone_seconds"] / row["seconds"])


def test_each_setting_has_the_draft_model_that_it_names():
    """Also where the settings of a race name several: the target as its own draft is always accepted."""
    small, own = rows_of("--draft_model_size=tiny-draft,tiny-target")
    assert small["draft"]["name"] == "tiny-draft" and own["draft"]["name"] == "tiny-target"
    assert small["alpha"] < 1 == own["alpha"] and small["c"] < own["c"]


def test_lookahead_is_built_for_the_K_that_it_runs_with():
    """Its comb has W + N - 2 levels of K: a table that varies K builds one for each."""
    for row in rows_of("--drafter=lookahead", "--K=2,6"):
        name = report_of("--drafter=lookahead", "--K", row["setting"]["K"], "--n_tokens_to_generate=2")["draft"]["name"]
        assert row["draft"]["name"] == name and name.endswith({"2": "2-grams", "6": "4-grams"}[row["setting"]["K"]])
        (alone,) = rows_of("--drafter=lookahead", "--K", row["setting"]["K"])
        assert alone["tokens_per_call"] == row["tokens_per_call"] and alone["drafted"] == row["drafted"]


def test_gumbel_is_compared_with_the_target_on_the_same_random_numbers():
    """At any temperature, and also beside rules that are not."""
    rows = rows_of("--temperature=0.8", "--verifier=rejection,gumbel")
    assert [(row["same_texts"], row["is_one_text"]) for row in rows][1] == (3, True)
    assert rows[0]["is_one_text"] is False


def test_a_text_that_ends_early_has_its_speedup_per_token():
    """<|endoftext|> is the only token that the grammar leaves after three letters."""
    (row,) = rows_of("--grammar=[a-z]{3}", "--temperature=1")
    assert row["n_tokens"] < 18 and row["drafted"] > 0 and row["low"] is not None


def test_the_best_value_of_an_axis(tmp_path):
    arguments = ("compare", *FEW, "--K=1,2,5", "--drafter=model,ngram", "--json", tmp_path / "r.json")
    whole, best = (
        json.loads(run_here(*arguments, *more) and (tmp_path / "r.json").read_text("utf-8"))["rows"]
        for more in ((), ("--best=K",))
    )
    assert len(whole) == 6 and [row["setting"]["drafter"] for row in best] == ["model", "ngram"]
    assert all(row in whole for row in best)
    for row in whole:
        of_its_drafter = next(one for one in best if one["setting"]["drafter"] == row["setting"]["drafter"])
        assert row["speedup"] <= of_its_drafter["speedup"]


def test_rows_by_category_and_another_view_of_the_same_measurements(tmp_path):
    questions = [("a", "Once upon"), ("b", "The king"), ("a", "The queen")]
    lines = [json.dumps({"category": category, "turns": [text]}) for category, text in questions]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    path = tmp_path / "r.json"
    arguments = ("compare", FEW[1], "--prompt_file", tmp_path / "q.jsonl", "--json", path)
    assert run_here(*arguments, "--by=category").returncode == 0
    first = json.loads(path.read_text("utf-8"))
    assert [(row["by"], row["n_texts"]) for row in first["rows"]] == [("a", 2), ("b", 1), ("all", 3)]
    assert run_here(*arguments, "--by=prompt", "--csv", tmp_path / "r.csv").returncode == 0
    second = json.loads(path.read_text("utf-8"))
    assert second["parts"] == first["parts"] and second["rows"][0]["by"] == "1 Once upon"
    assert second["rows"][1]["by"] == "2 The king" and len(second["rows"][1]["texts"]) == 2
    table = table_in(tmp_path / "r.csv")
    assert [row["by"] for row in table] == [row["by"] for row in second["rows"]] and table[0]["K"] == "3"
    assert [float(row["speedup"]) for row in table] == [row["speedup"] for row in second["rows"]]


def test_a_table_of_settings_is_tidy(tmp_path):
    """One row a setting, one column an option or a number, whatever varies."""
    result = run_here(
        "compare", *FEW, "--K=1,2", "--drafter=model,prompt_lookup", "--n_max=2,3", "--csv", tmp_path / "t.csv"
    )
    table = table_in(tmp_path / "t.csv")
    assert result.returncode == 0 and len(table) == 6
    assert {(row["drafter"], row["K"], row["n_max"]) for row in table} == {
        *(("model", K, "") for K in "12"), *(("prompt_lookup", K, n) for K in "12" for n in "23")
    }  # fmt: skip
    assert {row["temperature"] for row in table} == {"0"} and all(float(row["speedup_low"]) > 0 for row in table)
    assert len({len(row) for row in table}) == 1 and "" not in table[0] and None not in table[0]


# ------------------------------------------------------------------------------------------------ plots


@pytest.mark.parametrize("size", ["", "3.3x2.5"])
def test_every_number_of_the_table_is_in_the_plot(size, monkeypatch, tmp_path):
    """A narrow figure has the speedup in time alone."""
    plt = pytest.importorskip("matplotlib.pyplot")
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    path, more = tmp_path / "a.json", [f"--plot_size={size}"] * bool(size)
    arguments = ("--K=1,2,5", "--drafter=model,ngram", "--json", path, "--plot", tmp_path / "a.png")
    assert run_here("compare", *FEW, *arguments, *more).returncode == 0
    drawn = {round(float(x), 9) for axes in figures[0].axes for line in axes.lines for x in line.get_xydata().ravel()}
    names = ("speedup",) if size else ("speedup", "tokens_per_call")
    wanted = [row[name] for row in json.loads(path.read_text("utf-8"))["rows"] for name in names]
    assert {round(x, 9) for x in wanted} <= drawn and {1.0, 2.0, 5.0} <= drawn and len(figures[0].axes) == len(names)
    assert not figures[0].get_suptitle() and not any(
        axes.get_title(where) for axes in figures[0].axes for where in ("left", "center")
    )
    assert plt.imread(tmp_path / "a.png").shape[:2] == (
        (500, 660) if size else plt.imread(tmp_path / "a.png").shape[:2]
    )


def test_a_plot_for_a_paper_has_its_fonts_in_it(tmp_path):
    pytest.importorskip("matplotlib")
    assert run_here("compare", *FEW, "--K=1,2", "--plot", tmp_path / "a.pdf").returncode == 0
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in data and b"/Type3" not in data and b"Type 3" not in data


def test_a_figure_says_that_the_machine_was_busy(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0, 0), raising=False)
    result = run_here("compare", *FEW, "--drafter=model,ngram", "--plot", tmp_path / "a.svg")
    assert "; BUSY: load average 1000.0 at the start" in result.stdout
    assert "BUSY: load average 1000.0" in (tmp_path / "a.svg").read_text("utf-8")


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


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return "mine.py"


def test_drafters_and_rules_of_ones_own_are_in_the_table(mine):
    arguments = ("--drafter=mine.py:Again,mine.py:ready", "--verifier=rejection,mine.py:right,mine.py:on_purpose")
    rows = rows_of("--temperature=1", *arguments)
    assert [row["exactness"] for row in rows] == ["exact", "checked", "LOSSY"] * 2
    for row, other in zip(rows[:3], rows[3:]):
        assert row["draft"] == {"name": "mine.py:Again"} and row["drafted"] == other["drafted"] > 0
        assert (row["loss"] is None) == (row["exactness"] != "LOSSY") and row["loss"] != 0
    report = report_of("--drafter=mine.py:Again", "--verifier=mine.py:right", "--n_tokens_to_generate=6")
    assert report["same_tokens"] and report["drafter"] == "mine.py:Again" and report["exactness"] == "checked"


def test_an_error_in_ones_own_code_names_its_line(mine):
    result = run_here("--drafter=mine.py:Crashes", "--n_tokens_to_generate=4")
    note, sentence = result.stderr.splitlines()
    assert note.startswith("note: mine.py:Crashes is not graded: with a target of 3 tokens, your drafter fails")
    assert result.returncode == 2 and sentence == "main.py: KeyError: 1 (line 16 of mine.py)"
