"""The command line from outside: its pages as a process prints them, its reports and refusals without one."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
from command import run, run_here
from helpers import ROOT
from systems import needs_any_bytes, needs_links, needs_shell, opening_a_folder, slashes

import gpt2np
from command_line import tables
from command_line.best_k import suggestion, suggestion_line
from command_line.commands import BENCH, COMMANDS, COMMON, COMPARISON
from command_line.options import NAMES, Options
from command_line.registry import DRAFTERS, RULES
from command_line.verdicts import best_of
from speculative import (
    Generation,
    Recycling,
    RecyclingDrafter,
    Round,
    Sampling,
    SpeculativeSampler,
    best_tree,
    theory,
    trace,
)
from speculative.drafters.recycling import WEIGHTS as RECYCLED

FEW = ("--n_tokens_to_generate", "12")
load = lru_cache(gpt2np.load)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """A model that was used gives what a new one gives."""
    monkeypatch.setattr(gpt2np, "load", load)


def report(*arguments):
    result = run_here("--json", *arguments)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(page, report) of the command without options, as a process."""
    return page_and_report(tmp_path_factory.mktemp("whole") / "report.json")


def page_and_report(path, *arguments):
    page = run(*arguments, "--json", path)
    return page, json.loads(path.read_text(encoding="utf-8"))


def texts(output):
    """The two generated texts of a printed page."""
    return re.findall(r"\n\n(?:autoregressive|speculative)\n(.*?)\n\d+ tokens in", output, re.S)


def test_the_page_and_the_json_say_the_same(whole):
    page, data = whole
    assert page.returncode == 0 and page.stderr == "" and "\033" not in page.stdout
    assert texts(page.stdout) == [data["prompt"] + data[name]["text"] for name in ("autoregressive", "speculative")]
    result = data["speculative"]
    assert (
        f"target calls  {result['target_calls']} instead of 120, {120 / result['target_calls']:.2f} tokens per call"
        in page.stdout
    )
    last = page.stdout.splitlines()[-6:]  # what `| tail -n 5` shows, and the line before
    assert [line[:14].rstrip() for line in last] == [
        "best K", "speedup", "target calls", "accepted", "by position", "same text",
    ]  # fmt: skip
    assert f"accepted      {result['accepted']} of {result['drafted']} drafted tokens (" in last[3]
    assert f"by position   1: {result['acceptance_by_position'][0]:.0%}  2: " in last[4]
    tested = result["accepted"] + result["rejected"]
    assert data["best_K_from"]["alpha"] == result["accepted"] / tested
    assert f"this run (alpha {result['accepted'] / tested:.2f} of the tokens tested, c 0." in last[0]
    assert 0 <= data["best_K"] <= data["best_K_from"]["most_K"] == 6 and list(data["best_K_from"]["v"]) == ["4"]
    assert "same text     yes, all 120 tokens" in page.stdout
    assert len(re.findall(r"120 tokens in \d+\.\d\d s, \d+\.\d tokens per second", page.stdout)) == 2
    assert re.search(r"^speedup       \d+\.\d\d$", page.stdout, re.M)


def test_the_figures_of_the_json_fit_together(whole):
    _, data = whole
    ordinary, result = data["autoregressive"], data["speculative"]
    assert data["matmul"] in ("panels", "rows")
    assert data["same_tokens"] is True and ordinary["tokens"] == result["tokens"] and len(result["tokens"]) == 120
    assert ordinary["target_calls"] == 120 and ordinary["drafted"] == 0 and set(ordinary["origins"]) == {"plain"}
    assert result["accepted"] == result["origins"].count("accepted") == sum(result["accepted_by_position"])
    assert result["target_calls"] == 120 - result["accepted"] and len(result["drafted_by_position"]) == 3
    assert result["drafted"] == sum(result["drafted_by_position"])
    assert data["speedup"] == pytest.approx(ordinary["seconds"] / result["seconds"])
    assert sum(result["seconds_by_part"].values()) <= result["seconds"]
    assert result["tokens_per_second"] == 120 / result["seconds"]
    assert (data["K"], data["exactness"], data["target"]["name"]) == (3, "exact", "tiny-target")


@pytest.mark.parametrize(
    ("draft", "v", "accepted", "best"),
    [
        (0.2, 1.6, 3, "6 or more, by"),  # all accepted: the longest that is considered
        (1.0, 4.0, 1, "0 (no draft), by"),  # a draft and a check as dear as a plain step
        (0.2, 1.3, 2, "2, by"),
    ],
)
def test_the_best_K_follows_from_the_rounds(draft, v, accepted, best):
    """By hand: a plain step takes 2 s; the first rounds, with the prompt in them, do not count."""
    nothing, drafted = np.zeros(0, np.int64), np.zeros(3, np.int64)
    plain = [Round(nothing, nothing, 0, seconds(0, 2 + 97 * (i == 0)), None, None) for i in range(6)]
    some = [Round(drafted, drafted, accepted, seconds(9, 99), None, None)]
    some += [Round(drafted, drafted, accepted, seconds(6 * draft, 2 * v), None, None)] * 5
    found = suggestion(*(Generation(nothing, nothing, rounds) for rounds in (plain, some)))
    alpha = accepted / (accepted + (accepted < 3))
    numbers = found["best_K_from"]
    assert (numbers["alpha"], numbers["v"], numbers["most_K"]) == (alpha, {"4": v}, 6)
    assert numbers["c"] == pytest.approx(draft)
    line = [1 + (v - 1) * m / 3 for m in range(7)]
    assert found["best_K"] == theory.best_K(alpha, draft, line) and suggestion_line(found).startswith(best)


def seconds(draft, target):
    return {"draft": draft, "target": target, "verify": 0.0}


def test_nothing_is_suggested_where_nothing_was_drafted():
    data = report("--drafter", "prompt_lookup", "--prompt", "Once", "--n_tokens_to_generate", "2")
    assert data["best_K"] is data["best_K_from"] is None
    page = run("--drafter", "prompt_lookup", "--prompt", "Once", "--n_tokens_to_generate", "2").stdout
    assert "best K" not in page and "by position   nothing was drafted\n" in page


def test_one_seed_one_text():
    a, b, c = (report("--temperature", "1", "--seed", seed, *FEW) for seed in ("1", "1", "2"))
    assert a["speculative"]["tokens"] == b["speculative"]["tokens"] != c["speculative"]["tokens"]
    assert a["autoregressive"]["tokens"] == b["autoregressive"]["tokens"] != c["autoregressive"]["tokens"]
    assert "same text" not in run("--temperature", "1", *FEW).stdout


@pytest.mark.parametrize(
    "prompt", ["2010-10-10", "007", "1e3", "[1, 2]", "None", "True", "{}", "1_000", "'quoted'", "a,b"]
)
def test_a_prompt_stays_text(prompt):
    assert report("--prompt", prompt, "--n_tokens_to_generate", "2")["prompt"] == prompt


def test_a_prompt_that_begins_with_a_hyphen():
    data = report("--prompt=--K 4", "--K", "2", *FEW)
    assert data["prompt"] == "--K 4" and data["K"] == 2


def test_an_empty_prompt_starts_from_end_of_text():
    assert report("--prompt", "", *FEW)["prompt_tokens"] == 1
    assert texts(run("--prompt", "", *FEW).stdout)[1].startswith("<|endoftext|>")


@needs_any_bytes
def test_a_prompt_of_bytes_that_are_no_text():
    result = run("--prompt", b"caf\xe9", *FEW)
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--K", "0"], "--K: expected a whole number of 1 or more, or auto, heuristic or confidence, got 0"),
        (["--K"], "--K needs a value"),
        (["--timings", "3"], "--timings: expected one of False, True, got '3'"),
        (["--top_k", "some"], "--top_k: expected a whole number of 0 or more, got 'some'"),
        (["--stop"], "--stop needs a value"),
        (["--drafter", "early_exit", "--exit_layer", "99"], "expected an exit after 1 to "),
        (
            ["--drafter", "heads", "--target_model_size", "tiny-draft"],
            "--drafter heads: tiny-draft has no heads: expected ",
        ),
        (["--drafter", "ngram", "--n_max", "9"], "expected n from 1 to 5 for 2048 tokens"),
        (["--drafter", "ngram", "--n_max", "99999999999999"], "--n_max: expected a whole number from 1 to 1024, got 9"),
        (["--drafter", "ngram", "--corpus", "nowhere"], "--corpus: cannot read nowhere (No such file or directory)"),
        (
            ["--drafter", "suffix", "--corpus", "tests/golden"],
            f"--corpus: cannot read tests/golden ({opening_a_folder()})",
        ),
        (["--drafter", "ngram", "--ngram_table", "README.md"], "README.md is not a table of n-grams"),
        (
            ["--drafter", "ngram", "--ngram_table", "no/table"],
            "--ngram_table: cannot write no/table (No such file",
        ),
        (["--n_prompts", "9"], "unknown option --n_prompts"),
        (["calibrate", "--K", "3"], "unknown option --K"),
        (["calibrate", "--drafter", "suffix"], "calibrate needs a drafter with probabilities"),
        (["calibrate", "--n_tokens_to_generate", "500"], "n_ctx is 512: generate at most 480"),
        (["drafters", "--n_tokens_to_generate", "300"], "n_ctx is 512: generate at most 280"),
        (["--temperature", "-0.1"], "--temperature: expected a number of 0 or more, got -0.1"),
        (["--temperature", "1e999"], "--temperature: expected a number of 0 or more, got inf"),
        (["--n_tokens_to_generate", "0"], "--n_tokens_to_generate: expected a whole number of 1 or more, got 0"),
        (["--seed", "-1"], "--seed: expected a whole number of 0 or more, got -1"),
        (
            ["--verifier", "[1]"],
            "--verifier: expected one of rejection, block, exact_match, gumbel, lenient, typical, got '[1]'",
        ),
        (["museum", "--K", "3"], "unknown option --K"),
        (["prompts", "--json", "nowhere/a.json"], "--json: cannot write nowhere"),
        (["gamma_table", "--temperatures"], "--temperatures needs a value"),
        (["museum", "block"], "unexpected 'block': a command comes first, options are --name value"),
        (["--json=yes"], "--json: expected a name that ends in .json, got 'yes'"),
        (["--n_tokens_to_generate", "510"], "n_ctx is 512: generate at most 498 or shorten the prompt"),
        (["--prompt", "word " * 600], "n_ctx is 512: shorten the prompt"),
        (["--prompt"], "--prompt needs a value"),
        (["--prompt", "--K", "4"], "--prompt needs a value"),
        (["--target_model_size", "125M"], "unknown model '125M': expected tiny-target, tiny-draft, 124M"),
        (["--target_model_size", "tests"], "tests lacks config.json and model.safetensors"),
        (["--target_model_size", "tests/golden"], "tests/golden lacks vocab.json with merges.txt"),
        (["--target_model_size", "355M", "--source", "ftp"], "--source: expected one of hub, openai, got 'ftp'"),
        (["--temprature", "1"], "unknown option --temprature (did you mean --temperature?): expected one of corpus, "),
        (["Once", "upon"], "unknown command 'Once': expected one of calibrate, "),
        (["replay"], "replay takes a file"),
        (["replay", "README.md"], "README.md, line 1: expected a trace"),
    ],
)
def test_bad_input_ends_in_one_sentence(arguments, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = run_here(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert slashes(message) in slashes(result.stderr)
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("main.py: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"K": 2.5}, "or auto, heuristic or confidence, got 2.5"),
        ({"K": "four"}, "or auto, heuristic or confidence, got 'four'"),
        ({"K": [1]}, "or auto, heuristic or confidence, got [1]"),
        ({"K": "confidence", "drafter": "suffix"}, "--K confidence needs a drafter with probabilities"),
        ({"tree": "2,x"}, "--tree: expected a number of nodes, the number of children for each level (2,2,1), or auto"),
        ({"tree": "0"}, "with at most 256 nodes, got '0'"),
        ({"tree": "16,16"}, "with at most 256 nodes, got '16,16'"),
        ({"tree": "2,2,2,2"}, "--tree 2,2,2,2 has 4 levels: give --K 4, the depth limit"),
        ({"tree": "4", "verifier": "block"}, "--tree needs a verifier that takes trees (rejection, "),
        ({"drafter": "recycling", "verifier": "block"}, "--drafter recycling needs a verifier that takes trees"),
        (
            {"tree": "4", "K": "auto"},
            "--K auto chooses the length of a chain: for --tree give a number, or --tree auto",
        ),
        ({"tree": "4", "drafter": "prompt_lookup"}, "--tree needs a drafter that proposes trees, got prompt_lookup"),
        ({"tree": "auto", "drafter": "suffix"}, "--tree: expected a number of nodes for --drafter suffix, got 'auto'"),
        ({"siblings": "some"}, "--siblings: expected one of without, drawn, top, got 'some'"),
        ({"draft_temperature": -1}, "--draft_temperature: expected a number of 0 or more, got -1"),
        ({"draft_temperature": 0, "drafter": "suffix"}, "--draft_temperature needs a drafter that draws its tokens"),
        ({"top_p": -1}, "expected a top_p above 0 and at most 1, got -1"),
        ({"top_k": -1}, "--top_k: expected a whole number of 0 or more, got -1"),
        ({"top_p": 0}, "expected a top_p above 0 and at most 1, got 0"),
        ({"top_p": "half"}, "--top_p: expected a number, got 'half'"),
        ({"min_p": 2}, "expected a min_p from 0 to 1, got 2"),
        ({"repetition_penalty": 0}, "expected a repetition_penalty above 0, got 0"),
        ({"repetition_penalty": True}, "--repetition_penalty: expected a number, got True"),
        (
            {"drafter": "oracle"},
            "--drafter: expected one of model, ngram, prompt_lookup, suffix, recycling, early_exit, heads, got",
        ),
        ({"n_prompts": 0}, "--n_prompts: expected a whole number from 1 to 10000, got 0"),
        ({"n_max": 0}, "--n_max: expected a whole number from 1 to 1024, got 0"),
        ({"show": "all"}, "--show: expected one of text, rounds, got 'all'"),
        ({"trace": "t.txt"}, "--trace: expected a name that ends in .html or .jsonl, got 't.txt'"),
        (
            {"trace": "nowhere/t.html"},
            "--trace: cannot write nowhere/t.html (No such file or directory): name a",
        ),
        ({"exit_layer": "two"}, "--exit_layer: expected a whole number of 1 or more, got 'two'"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(options, message):
    with pytest.raises(ValueError) as caught:
        Options(**options)
    assert slashes(message) in slashes(str(caught.value))


@needs_links
def test_two_models_without_a_common_vocabulary(tmp_path):
    """Two folders that differ only in two swapped tokens."""
    from gpt2np.files.loading import find_folder

    source = find_folder("tiny-draft", None)
    for name in ("config.json", "merges.txt", "model.safetensors"):
        (tmp_path / name).symlink_to(source / name)
    vocabulary = json.loads((source / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["!"], vocabulary['"'] = vocabulary['"'], vocabulary["!"]
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    result = run("--draft_model_size", tmp_path)
    assert result.returncode == 2
    assert f"tiny-target and {tmp_path} have no common vocabulary" in result.stderr


@pytest.mark.parametrize("verifier", RULES)
def test_every_verifier_gives_the_greedy_text_at_temperature_0(verifier):
    data = report("--verifier", verifier, *FEW)
    assert data["same_tokens"] is True and data["verifier"] == verifier
    assert data["exactness"] == RULES[verifier].exactness


def test_gumbel_gives_one_text_at_any_temperature():
    first, second = (run("--verifier", "gumbel", "--temperature", "0.8", "--seed", seed, *FEW).stdout for seed in "12")
    for page in (first, second):
        assert texts(page)[0] == texts(page)[1] and "same text     yes, all 12 tokens" in page
    assert texts(first) != texts(second)


def test_a_lossy_rule_says_so():
    assert "output        LOSSY" in run("--verifier", "typical", "--temperature", "1", *FEW).stdout
    assert "LOSSY" not in run("--temperature", "1", *FEW).stdout
    page = run("--verifier", "lenient", *FEW).stdout
    at_zero = (
        "LOSSY: this rule changes the distribution of the text; at temperature 0 it accepts only the target's most "
    )
    assert at_zero in page and "same text     yes" in page


def test_help_explains_every_option():
    page = run("--help")
    assert page.returncode == 0 and page.stderr == ""
    for option in dataclasses.fields(Options):
        if option.name == "file" or option.name in BENCH - COMPARISON - COMMON:  # listed several in a line
            continue
        line = re.search(rf"^--{option.name} .*(?:\n +.*)*", page.stdout, re.M).group()
        default = str(getattr(Options(), option.name)) if option.name not in ("prompt", "json") else ""
        assert f"({default}" in line or default in ("", "None"), line
    for command in filter(None, COMMANDS):
        assert f"python main.py {command} " in page.stdout
    for name, entry in (DRAFTERS | RULES).items():
        assert re.search(rf"^ +{name} +{re.escape(entry.help)}$", page.stdout, re.M)
    assert max(map(len, page.stdout.splitlines())) <= 120


# ------------------------------------------------------------------------------------------------ drafters and sampling


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "model"])
def test_every_drafter_gives_the_targets_text_without_a_draft_model(drafter):
    data = report("--drafter", drafter, "--draft_model_size", "not here", "--n_tokens_to_generate", "30")
    assert data["same_tokens"] is True and data["drafter"] == drafter
    assert ("parameters" in data["draft"]) == (drafter == "heads")
    assert len(data["speculative"]["tokens"]) == 30


def test_ngrams_of_a_text_of_ones_own_are_kept_in_a_table(tmp_path):
    (tmp_path / "tale").write_text("Once upon a time there was a king who had three daughters. " * 5, encoding="utf-8")
    table = ("--drafter", "ngram", "--n_max", "2", "--ngram_table", tmp_path / "table", *FEW)
    first = report(*table, "--corpus", tmp_path / "tale")
    assert (tmp_path / "table").exists() and first["draft"]["name"] == "n-grams up to 2 tokens"
    refused = run(*table, "--n_max", "3").stderr
    assert (
        refused == f"main.py: --ngram_table: {tmp_path / 'table'} has n-grams up to 2 tokens, and --n_max is 3: give "
        "--n_max 2, or name another table\n"
    )
    assert report(*table, "--corpus", "not read")["speculative"]["drafted"] == first["speculative"]["drafted"]


def test_the_suffix_drafter_copies_from_a_corpus(tmp_path):
    data = report(*FEW)
    (tmp_path / "tale").write_text(data["prompt"] + data["autoregressive"]["text"], encoding="utf-8")
    again = report("--drafter", "suffix", "--corpus", tmp_path / "tale", *FEW)
    assert again["speculative"]["accepted"] >= 8


@pytest.mark.parametrize("K", ["auto", "heuristic", "confidence"])
def test_draft_lengths_by_name(K):
    data = report("--K", K, "--drafter", "ngram", "--n_tokens_to_generate", "30")
    assert data["same_tokens"] is True and data["K"] == K
    if K == "auto":
        assert data["costs"]["v"][0] == 1 and len(data["costs"]["v"]) == 9 and data["costs"]["c"] > 0
    else:
        assert data["costs"] is None


def test_sampling_options_change_the_text():
    found = set()
    for options in [(), ("--top_k", "1"), ("--top_p", "0.5"), ("--min_p", "0.3"), ("--repetition_penalty", "1.8")]:
        found.add(tuple(report("--temperature", "1", *options, *FEW)["autoregressive"]["tokens"]))
    assert len(found) == 5 and tuple(report(*FEW)["autoregressive"]["tokens"]) in found  # greedy is top-k with k = 1


def test_the_text_ends_with_the_stop_text(whole, tmp_path):
    """Also in the middle of a token: nothing after it is shown."""
    text = whole[1]["autoregressive"]["text"]
    stop = text[41:44]
    wanted = text[: text.index(stop) + 3]
    page, data = page_and_report(tmp_path / "report.json", "--stop", stop, "--drafter", "prompt_lookup")
    assert data["autoregressive"]["text"] == data["speculative"]["text"] == wanted
    assert texts(page.stdout) == [data["prompt"] + wanted] * 2
    assert f"same text     yes, all {len(data['speculative']['tokens'])} tokens" in page.stdout


def test_no_text_option_is_read_as_a_number():
    texts = {"prompt", "corpus", "ngram_table", "stop", "models_dir", "draft_model_size", "drafter", "temperatures"}
    assert {NAMES[name].type for name in texts} == {str}
    assert report("--stop", "1e3", "--prompt", "007", *FEW)["stop"] == "1e3"
    assert "--corpus: cannot read 1e3 (" in run("--drafter", "suffix", "--corpus", "1e3").stderr


# ------------------------------------------------------------------------------------------------ experiments


def test_statistics_as_llama_cpp_prints_them(tmp_path):
    page, data = page_and_report(tmp_path / "report.json", "--drafter", "early_exit", "--timings", *FEW)
    page = page.stdout
    assert "n_draft = " not in run("--drafter", "early_exit", "--timings", "False", *FEW).stdout
    figures, result = data["llama_cpp"], data["speculative"]
    assert (figures["n_predict"], figures["n_drafted"], figures["n_accept"]) == (
        12, result["drafted"], result["accepted"],
    )  # fmt: skip
    assert figures["accept"] == 100 * result["accepted"] / result["drafted"]
    assert figures["target"]["prompt eval tokens"] == data["prompt_tokens"] + 3
    parts = sum(figures[role][f"{part} time"] for role in ("target", "draft") for part in ("prompt eval", "eval"))
    assert figures["sampling time"] + parts == pytest.approx(figures["total time"])
    assert f"n_draft = 3, n_predict = 12, n_drafted = {result['drafted']}, n_accept = {result['accepted']}" in page
    for role in ("target", "draft"):
        assert re.search(rf"^{role:6}  load time        = +\d+\.\d ms$", page, re.M)
        assert re.search(
            rf"^{role:6}  prompt eval time = +\d+\.\d ms / +\d+ tokens \( +\d+\.\d\d ms per token", page, re.M
        )
        assert re.search(rf"^{role:6}  eval time        = .* tokens per second\)$", page, re.M)
    assert re.search(r"^sampling time = \d+\.\d ms, total time = \d+\.\d ms$", page, re.M)


def test_without_a_draft_model_the_time_of_drafting_is_no_time_of_sampling(tmp_path):
    page, data = page_and_report(tmp_path / "report.json", "--drafter", "suffix", "--timings", *FEW)
    figures = data["llama_cpp"]
    assert (
        figures["draft"] is None and figures["drafting time"] == 1e3 * data["speculative"]["seconds_by_part"]["draft"]
    )
    target = sum(figures["target"][f"{part} time"] for part in ("prompt eval", "eval"))
    parts = figures["sampling time"] + figures["drafting time"] + target
    assert figures["sampling time"] > 0 and parts == pytest.approx(figures["total time"])
    assert re.search(r"^sampling time = \d+\.\d ms, drafting time = \d+\.\d ms, total time", page.stdout, re.M)


SHORT = ("--n_prompts", "6", "--n_tokens_to_generate", "6", "--drafter", "ngram")
SHORT += ("--target_model_size", "tiny-draft")


def test_calibrate_predicts_and_measures(tmp_path):
    page, data = page_and_report(tmp_path / "report.json", "calibrate", *SHORT)
    assert [row["K"] for row in data["rows"]] == list(range(1, 9))
    assert data["costs"]["v"][0] == 1 and 0 < data["alpha"] < 1
    assert (data["n_prompts_expected"], data["n_prompts_timed"], data["n_tokens"]) == (4, 2, 6)
    for row in data["rows"]:
        assert 1 <= row["expected_tokens_per_call"] <= row["K"] + 1 and 1 <= row["tokens_per_call"] <= row["K"] + 1
        assert row["low"] <= row["speedup"] <= row["high"]
    gains = [1, *(row["expected_speedup"] for row in data["rows"])]
    assert data["best_K"] == gains.index(max(gains))
    names = ("text 1", "text 2", "text 3", "text 4", "costs", "prompt 1", "prompt 2")
    parts = "".join(f"{name}: {i} of 7, _ s\n" for i, name in enumerate(names, 1))
    assert page.returncode == 0 and re.sub(r"\d+ s$", "_ s", page.stderr, flags=re.M) == parts
    assert re.search(
        r"^costs   a plain step \d+\.\d\d ms, c = \d\.\d{3}, v\(1\.\.9\) = 1\.00( \d+\.\d\d){8}$", page.stdout, re.M
    )
    assert len(re.findall(r"^  \d( +\d\.\d\d){5}  \d\.\d\d to \d+\.\d\d$", page.stdout, re.M)) == 8
    assert re.search(r"at most \d+\.\d% apart, at K = \d\.$", page.stdout, re.M)


CALIBRATED = {
    "target": {"name": "some model"}, "draft": {"name": "some model"}, "machine": "any", "alpha": 0.5, "alpha_low": 0.4,
    "alpha_high": 0.6, "n_prompts_expected": 2, "n_prompts_timed": 3, "n_tokens": 9, "best_K": 2,
    "costs": {"step": 0.002, "c": 0.1, "v": [1, 1.5, 2], "spread": 0.1},
    "rows": [
        {
            "K": K, "expected_tokens_per_call": 1.5, "tokens_per_call": 1.4, "speedup_from_alpha": 1.2,
            "expected_speedup": 1.1, "speedup": K, "low": K - 0.5, "high": 2.5,
        }
        for K in (1, 2)
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("best_K", "interval", "verdict"),
    [
        (2, (1.5, 2.5), "Yes: K = 2 is expected to be the fastest, 1.10 times as fast as the target alone, and was "),
        (2, (0.5, 2.5), "Unclear: K = 2 is"),
        (2, (0.5, 0.9), "No: K = 2 is"),
        (2, (None, None), "Unclear: K = 2 is"),
        (0, (0.5, 2.5), "No: every K is expected to be slower than the target alone."),
        (0, (1.5, 2.5), "Unclear: every K is expected to be slower than the target alone, but K = 2 was measured at 2"),
        (0, (None, None), "No: every K is"),
    ],
)
def test_calibrate_says_whether_it_pays(best_K, interval, verdict):
    first, second = CALIBRATED["rows"]
    rows = [first, {**second, "low": interval[0], "high": interval[1]}]
    page = tables.calibrate({**CALIBRATED, "best_K": best_K, "rows": rows})
    assert f"\nDoes it pay here? {verdict}" in page and "WARNING" not in page
    assert "a plain step 2.00 ms, c = 0.100, v(1..3) = 1.00 1.50 2.00" in page
    shown = "0.50 to 2.50" if interval == (0.5, 2.5) else "1.50 to 2.50" if interval == (1.5, 2.5) else ""
    assert f"  2      1.50      1.40           1.20      1.10      2.00  {shown}" in page
    assert "at most 45.0% apart, at K = 2" in page  # 1.1 / 2 - 1


@pytest.mark.parametrize(
    ("v", "spread", "load", "why"),
    [
        ([1, 0.7, 1.02], 0, 0, "v(2) = 0.70 is below 1"),
        ([1, 1.5, 1.2], 0, 0, "v falls from 1.50 at 2 tokens to 1.20 at 3"),
        ([1, 1.1, 1.05], 0.42, 0, "the quartiles of a plain step are 42% of it apart"),
        ([1, 1.1, 1.2], 0, 1e4, "the load average was 10000.0 at the start"),
    ],
)
def test_calibrate_warns_of_times_that_contradict_themselves(v, spread, load, why):
    costs = {**CALIBRATED["costs"], "v": v, "spread": spread}
    page = tables.calibrate({**CALIBRATED, "costs": costs, "load_average": load})
    assert f"\nWARNING: do not rely on these times ({why}): measure again on a quiet machine.\n" in page
    assert ("BUSY: load average" in page) == bool(load)


@pytest.mark.parametrize(
    ("low", "sentence"),
    [
        (2.6, "Its interval is above all others."),
        (2.5, "These prompts do not tell it apart from 1 of the 2 others: the intervals overlap."),
        (1.0, "These prompts do not tell it apart from any of the 2 others: the intervals overlap."),
        (None, "These prompts do not tell it apart from any of the 2 others: the intervals overlap."),
    ],
)
def test_a_method_is_called_the_best_only_where_the_intervals_part(low, sentence):
    rows = [
        {"drafter": "a", "verifier": rule, "exactness": exactness, "kinds": {"all": {"x": x, "low": lo, "high": hi}}}
        for rule, exactness, x, lo, hi in (
            ("rejection", "exact", 2.0, 1.5, 2.5), ("block", "exact", 3.0, low, 3.5),
            ("gumbel", "exact", 1.0, 0.9, 1.1), ("typical", "LOSSY", 9.0, 8.0, 10.0),
        )
    ]  # fmt: skip
    assert best_of(rows, "x", "low", "high", "Most") == f"Most of the exact methods: a with block, 3.00. {sentence}\n"
    two = best_of(rows[:2], "x", "low", "high", "Most")
    assert ("do not tell it apart from the other: the" in two) == ("overlap" in sentence)


# ------------------------------------------------------------------------------------------------ the trace


def test_a_trace_is_kept_and_replayed_without_a_model(tmp_path):
    kept, made = tmp_path / "t.jsonl", tmp_path / "t.html"
    result = run("--show", "rounds", "--trace", kept, "--temperature", "1", *FEW)
    assert result.returncode == 0 and result.stderr == "" and f"\ntrace         {kept}\n" in result.stdout
    lines = re.findall(r"^ +\d+  \d/\d accepted  \|.*$", result.stdout, re.M)
    assert len(lines) == len(kept.read_text("utf-8").splitlines()) - 1 > 2 and "[" in "".join(lines)
    again = run("replay", kept, "--trace", made)
    assert again.returncode == 0 and again.stderr == "" and "\n".join(lines) in again.stdout
    counts = re.search(r"accepted      .*\nby position   .*", result.stdout).group()
    assert counts in again.stdout and trace.Trace.load(kept).about["K"] == 3
    assert made.read_text(encoding="utf-8") == trace.page(trace.Trace.load(kept))


# ------------------------------------------------------------------------------------------------ the terminal


def terminal(*arguments, **environment):
    """What `python main.py` writes to a terminal."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    main_end, process_end = pty.openpty()
    command = [sys.executable, ROOT / "main.py", *arguments]
    environment = {**os.environ, "TERM": "xterm", **environment}
    with subprocess.Popen(command, stdout=process_end, stderr=process_end, env=environment):
        os.close(process_end)
        written = b""
        try:
            while chunk := os.read(main_end, 4096):
                written += chunk
        except OSError:  # the other end is closed
            pass
    os.close(main_end)
    return written.decode().replace("\r\n", "\n")


def test_on_a_terminal_the_text_is_coloured_by_origin():
    data = report("--temperature", "1", *FEW)
    output = terminal("--temperature", "1", *FEW)
    colours = {"accepted": "32", "correction": "31", "bonus": "34"}
    painted = re.findall(r"\033\[(3[124])m", output.split("\nspeculative (")[1].split("\n", 1)[1])
    expected = [colours[origin] for origin in data["speculative"]["origins"] if origin != "plain"]
    assert painted == expected and set(expected) >= {"31", "32"}
    assert re.sub(r"\033\[\d+m", "", output).count(data["speculative"]["text"]) == 1


def test_the_rounds_on_a_terminal():
    output = terminal("--show", "rounds", "--temperature", "1", *FEW)
    assert "accepted\033[0m, \033[9;31mrejected\033[0m, \033[31mcorrection" in output
    rounds = re.findall(r"^ +\d+  (\d)/(\d) accepted  \|(.*)$", output.split("\nspeculative (")[1], re.M)
    assert output.startswith("target ") and "dropped" in output.split("\nspeculative (")[1].split("\n")[0]
    assert sum(int(accepted) + 1 for accepted, _, _ in rounds) == 12
    for accepted, drafted, line in rounds:
        assert line.count("\033[32m") == int(accepted) and line.count("9;31m") == (accepted < drafted)


def test_no_colours_where_they_are_not_wanted():
    assert "\033" not in terminal(*FEW, NO_COLOR="1") and "\033" not in terminal(*FEW, TERM="dumb")


@needs_shell
def test_the_reader_may_leave_early():
    command = f"{sys.executable} {ROOT / 'main.py'} | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert result.stdout.startswith("target ") and result.stderr == ""


def test_a_terminal_without_the_characters():
    command = [sys.executable, ROOT / "main.py", "--prompt", "naïve 世界", *FEW]
    output = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert "na?ve ??" in output.stdout.decode("ascii")


def test_bench_measures_each_strategy(tmp_path):
    few = ("--rows", "3", "--context", "20", "--prompt_tokens", "30", "--repeats", "2")
    arguments = ("bench", "--sizes", "tiny-draft,tiny-target", "--strategies", "panels,rows,eights,plain", *few)
    page, data = page_and_report(tmp_path / "report.json", *arguments)
    assert page.returncode == 0 and page.stderr.count("\n") == 2
    draft, target = data["models"]
    assert (draft["name"], target["name"]) == ("tiny-draft", "tiny-target") and draft["weights"] == "trained"
    for model in data["models"]:
        assert (
            list(model["strategies"]) == ["panels", "rows", "eights", "plain"]
            and model["bytes"] == 4 * model["parameters"]
        )
        for entry in model["strategies"].values():
            assert list(entry["seconds"]) == ["1", "2", "3", "prompt"] and list(entry["v"]) == ["1", "2", "3"]
            assert all(0 < low <= middle <= high for low, middle, high in entry["seconds"].values())
            one = entry["seconds"]["1"][1]
            assert entry["v"]["3"] == entry["seconds"]["3"][1] / one and entry["v"]["1"] == 1
            assert entry["over_limit"] == one / model["limit_seconds"][0] >= 1  # nothing beats the limit
            assert entry["threads"] >= 1
    seconds = [model["strategies"][model["strategy"]]["seconds"]["1"][1] for model in (draft, target)]
    assert data["c"] == seconds[0] / seconds[1] and "generation" not in data
    sharing = f"; sharing costs {1e3 * data['hand_over_seconds']:.2f} ms a product here, up to four times a layer\n"
    assert data["hand_over_seconds"] > 0 and (sharing in page.stdout) == (data["matmul"]["n_threads"] > 1)
    assert len(re.findall(r"^(panels|rows|eights|plain) +\d+ +\d+\.\d\d ± ", page.stdout, re.M)) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sizes", "5"), "unknown model '5': expected "),
        (
            ("--strategies", "panels,fast"),
            "--strategies: expected one of panels, rows, eights, plain, transformers, got 'fast'",
        ),
        (("--rows", "0"), "--rows: expected a whole number from 1 to 1023, got 0"),
        (
            ("--sizes", "tiny-draft", "--context", "600"),
            "--context and --rows: tiny-draft has room for 512 tokens, got 609",
        ),
        (("--colour", "red"), "unknown option --colour"),
    ],
)
def test_bench_refuses_what_it_cannot_measure(arguments, message):
    result = run_here("bench", *arguments)
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_what_a_drafter_learns_while_a_comparison_warms_up_is_not_in_its_counts():
    """The prompt goes on as the target does after its first token, and so as the tokens of a warm-up might."""
    prompt = "Once upon a time a man who had a daughter, and had a daughter, and a daughter, who was a daughter, and"
    found = run_here("--prompt", prompt, "--drafter", "recycling", "--n_tokens_to_generate", "40", "--json")
    target, tokenizer = gpt2np.load("tiny-target")
    recycling, tree = Recycling(target), best_tree(16, RECYCLED, 3)
    sampler = SpeculativeSampler(recycling, RecyclingDrafter(recycling, tree), K=3, sampling=Sampling(0))
    stats = sampler.generate(tokenizer.encode(prompt), 40, 0).stats
    counts = json.loads(found.stdout)["speculative"]
    assert (counts["drafted"], counts["accepted"]) == (stats.drafted, stats.accepted)
