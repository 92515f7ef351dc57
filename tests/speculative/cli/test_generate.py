"""The comparison: its page, its report, and what its options change."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command import report_of, run_here
from helpers import ROOT

import gpt2np
from speculative import (
    Costs,
    Draft,
    RecyclingDrafter,
    Round,
    Sampling,
    Shape,
    SpeculativeSampler,
    Verdict,
    exact_match,
    theory,
)
from speculative.cli.commands.generate import same_text, verdict, verdict_lines
from speculative.cli.drafters import DRAFTERS, RULES
from speculative.cli.models import Models
from speculative.cli.options import Options
from speculative.cli.report import Report

FEW = ("--n_tokens_to_generate", "12")
TINY = ("--target_model_size=tiny-draft", "--drafter=prompt_lookup", *FEW)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(page, report) of the command without options."""
    path = tmp_path_factory.mktemp("whole") / "report.json"
    result = run_here("--json", path)
    assert result.returncode == 0 and result.stderr == "" and "\033" not in result.stdout
    return result.stdout, json.loads(path.read_text(encoding="utf-8"))


def texts(output):
    """The two generated texts of a printed page."""
    return re.findall(r"\n\n(?:autoregressive|speculative)\n(.*?)\n\d+ tokens in", output, re.S)


def test_the_page_and_the_json_say_the_same(whole):
    page, data = whole
    assert texts(page) == [data["prompt"] + data[name]["text"] for name in ("autoregressive", "speculative")]
    result = data["speculative"]
    assert (
        f"target calls  {result['target_calls']} instead of 120, {120 / result['target_calls']:.2f} tokens per call"
        in page
    )
    last = page.splitlines()[-6:]  # what `| tail -n 5` shows, and the line before
    assert [line[:14].rstrip() for line in last[1:]] == [
        "speedup", "target calls", "accepted", "by position", "same text",
    ]  # fmt: skip
    said = [*verdict_lines(data, 3, "--K auto")]
    assert said == page.split("tokens per second\n\n")[-1].splitlines()[:-4] and last[1] == said[-1]
    assert f"accepted      {result['accepted']} of {result['drafted']} drafted tokens (" in last[3]
    assert f"by position   1: {result['acceptance_by_position'][0]:.0%}  2: " in last[4]
    tested = result["accepted"] + result["rejected"]
    assert data["alpha"] == result["accepted"] / tested
    assert 0 <= data["best_K"] <= data["most_K"] == 6 and list(data["v"]) == ["4"]
    assert "same text     yes, all 120 tokens" in page
    assert len(re.findall(r"120 tokens in \d+\.\d\d s, \d+\.\d tokens per second", page)) == 2
    assert re.search(r"^speedup       \d+\.\d\d \(3 runs: \d+\.\d\d to \d+\.\d\d\)$", page, re.M)


def test_the_numbers_of_the_json_fit_together(whole):
    _, data = whole
    ordinary, result = data["autoregressive"], data["speculative"]
    assert data["matmul"] in ("panels", "rows")
    assert data["same_tokens"] is True and ordinary["tokens"] == result["tokens"] and len(result["tokens"]) == 120
    assert ordinary["target_calls"] == 120 and ordinary["drafted"] == 0 and set(ordinary["origins"]) == {"plain"}
    assert result["accepted"] == result["origins"].count("accepted") == sum(result["accepted_by_position"])
    assert result["target_calls"] == 120 - result["accepted"] and len(result["drafted_by_position"]) == 3
    assert result["drafted"] == sum(result["drafted_by_position"])
    assert data["speedup"] == sorted(data["speedups"])[1]
    assert data["speedups"][0] == pytest.approx(ordinary["seconds"] / result["seconds"])
    assert sum(result["seconds_by_part"].values()) <= result["seconds"]
    assert result["tokens_per_second"] == 120 / result["seconds"]
    assert (data["K"], data["exactness"], data["target"]["name"]) == (3, "exact", "tiny-target")


def test_the_texts_in_words():
    assert same_text([5], [5]) == "yes, the one token" and same_text([5, 6], [5, 6]) == "yes, all 2 tokens"
    assert same_text([5, 6, 7], [5, 7, 7]) == "no, they differ from token 2 of 3 on"


# ------------------------------------------------------------------------------------------------ options


def test_one_seed_one_text():
    a, b, c = (report_of("--temperature", "1", "--seed", seed, *TINY) for seed in ("1", "1", "2"))
    assert a["speculative"]["tokens"] == b["speculative"]["tokens"] != c["speculative"]["tokens"]
    assert a["autoregressive"]["tokens"] == b["autoregressive"]["tokens"] != c["autoregressive"]["tokens"]
    assert "same text" not in run_here("--temperature", "1", *TINY).stdout


def test_gumbel_gives_one_text_at_any_temperature():
    words = ("--verifier", "gumbel", "--temperature", "0.8", *TINY)
    first, second = (run_here(*words, "--seed", seed).stdout for seed in "12")
    for page in (first, second):
        assert texts(page)[0] == texts(page)[1] and "same text     yes, all 12 tokens" in page
    assert texts(first) != texts(second)


def test_a_lossy_rule_says_so():
    assert "output        LOSSY" in run_here("--verifier", "typical", "--temperature", "1", *TINY).stdout
    assert "LOSSY" not in run_here("--temperature", "1", *TINY).stdout
    page = run_here("--verifier", "lenient", *TINY).stdout
    assert "changes the distribution of the text; at temperature 0 it accepts only the target's most probable" in page


def test_the_drafts_temperature_is_on_the_page():
    page = run_here("--draft_temperature=0", "--temperature=1", *FEW).stdout
    assert "K = 3, temperature 1 (of the draft 0), seed 0" in page


@pytest.mark.parametrize("K", ["auto", "heuristic", "confidence"])
def test_draft_lengths_by_name(K):
    data = report_of("--K", K, "--drafter=ngram", *FEW, TINY[0])
    assert data["same_tokens"] is True and data["K"] == K and (data["costs"] is None) == (K != "auto")
    if K == "auto":
        assert data["costs"]["v"][0] == 1 and len(data["costs"]["v"]) == 9 and data["costs"]["c"] > 0


def test_sampling_options_change_the_text():
    found = set()
    for options in [(), ("--top_k", "1"), ("--top_p", "0.5"), ("--min_p", "0.3"), ("--repetition_penalty", "1.8")]:
        found.add(tuple(report_of("--temperature", "1", *options, *TINY)["autoregressive"]["tokens"]))
    assert len(found) == 5 and tuple(report_of(*TINY)["autoregressive"]["tokens"]) in found  # top-k with k = 1


def test_the_text_ends_with_the_stop_text(whole, tmp_path):
    """Also in the middle of a token: nothing after it is shown."""
    text = whole[1]["autoregressive"]["text"]
    stop = text[41:44]
    wanted = text[: text.index(stop) + 3]
    page = run_here("--stop", stop, "--drafter", "prompt_lookup", "--json", tmp_path / "a.json").stdout
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert data["autoregressive"]["text"] == data["speculative"]["text"] == wanted
    assert texts(page) == [data["prompt"] + wanted] * 2
    assert f"same text     yes, all {len(data['speculative']['tokens'])} tokens" in page


def test_what_a_drafter_learns_while_a_comparison_warms_up_is_not_in_its_counts():
    """The prompt goes on as the target does after its first token, and so as the tokens of a warm-up might."""
    prompt = "Once upon a time a man who had a daughter, and had a daughter, and a daughter, who was a daughter, and"
    counts = report_of("--prompt", prompt, "--drafter", "recycling", "--n_tokens_to_generate", "30")["speculative"]
    target, tokenizer = gpt2np.load("tiny-target")
    drafter = RecyclingDrafter(target.n_vocab, Shape.chain(3))
    sampler = SpeculativeSampler(target, drafter, K=3, sampling=Sampling(0))
    stats = sampler.generate(tokenizer.encode(prompt), 30, 0).stats
    assert (counts["drafted"], counts["accepted"]) == (stats.drafted, stats.accepted)


# ------------------------------------------------------------------------------------------------ drafters and rules


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "forced"])
def test_every_drafter_gives_the_targets_text(drafter):
    data = report_of("--drafter", drafter, "--n_tokens_to_generate", "16")
    assert data["same_tokens"] is True and data["drafter"] == drafter and len(data["speculative"]["tokens"]) == 16
    assert ("parameters" in data["draft"]) == (drafter in ("model", "heads", "eagle"))


@pytest.mark.parametrize("verifier", RULES)
def test_every_verifier_gives_the_greedy_text_at_temperature_0(verifier):
    data = report_of("--verifier", verifier, "--n_tokens_to_generate", "12")
    assert data["same_tokens"] is True and data["exactness"] == RULES[verifier].exactness


@pytest.mark.parametrize("drafter", ["model", "ngram", "early_exit", "eagle"])
def test_a_draft_with_a_temperature_of_its_own(drafter):
    """A greedy draft of a target at temperature 1, as llama.cpp has it: the tokens of the loop with that drafter."""
    options = Options(drafter=drafter, temperature=1, draft_temperature=0)
    models = Models(options, Report(False, "", {}))
    target, draft, _ = DRAFTERS[drafter].build(options, models)
    assert draft.sampling == Sampling(0)
    words = ("--drafter", drafter, "--temperature=1", "--draft_temperature=0", "--verifier=exact_match", "--seed=3")
    report = report_of(*words, *FEW)
    sampler = SpeculativeSampler(target, draft, verifier=exact_match, K=3)
    generation = sampler.generate(models.target()[1].encode(report["prompt"]), 12, 3)
    assert report["speculative"]["tokens"] == generation.tokens.tolist()
    assert report["speculative"]["accepted"] == generation.stats.accepted
    assert (report["temperature"], report["draft_temperature"]) == (1, 0)


@pytest.mark.parametrize(("K", "W", "N"), [(1, 1, 2), (3, 2, 3), (7, 5, 4), (20, 5, 4)])
def test_lookahead_fits_into_K(K, W, N):
    """So that its comb, of W + N - 2 levels, is drafted."""
    options = Options(drafter="lookahead", K=K)
    _, drafter, _ = DRAFTERS["lookahead"].build(options, Models(options, Report(False, "", {})))
    assert (drafter.W, drafter.N) == (W, N) and W + N - 2 <= K


def test_the_suffix_drafter_copies_from_a_corpus(tmp_path):
    data = report_of(*FEW)
    (tmp_path / "tale").write_text(data["prompt"] + data["autoregressive"]["text"], encoding="utf-8")
    again = report_of("--drafter=suffix", "--corpus", tmp_path / "tale", *FEW)
    assert again["speculative"]["accepted"] >= 8


# ------------------------------------------------------------------------------------------------ trees


@pytest.fixture
def cheap(monkeypatch):
    """A function that sets the measured costs: of a draft token, and of each further token in a pass."""

    def costs(c, slope):
        found = Costs(0.001, c, tuple(1 + slope * k for k in range(17)))
        monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: found)

    costs(0.1, 0.01)
    monkeypatch.setattr("speculative.cli.settings.N_PLACES", 12)
    return costs


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["--tree=6"], 6),
        (["--tree=2x1", "--timings"], 4),
        (["--tree=5", "--drafter=ngram", "--temperature=1"], 5),
        (["--tree=auto", "--drafter=recycling"], 16),
        (["--tree=auto", "--drafter=heads"], 16),
        (["--tree=2x1x1", "--drafter=heads"], 6),
        (["--drafter=recycling", "--verifier=gumbel", "--temperature=0.01"], 3),
        (["--tree=7", "--drafter=suffix"], 7),
        (["--tree=6", "--verifier=traversal", "--siblings=top"], 6),
    ],
)
def test_trees(words, nodes, cheap):
    report = report_of("--n_tokens_to_generate=6", *words)
    assert report["same_tokens"] or ("--temperature=1" in words)
    assert report["speculative"]["drafted"] <= nodes * report["speculative"]["target_calls"]
    if found := report["measured_tree"]:
        assert found["nodes"] <= 16 and len(found["acceptance_by_rank"]) <= 8 and found["levels"] <= 3


AUTO = ("--n_tokens_to_generate=4", "--tree=auto", "--temperature=1")


def test_the_best_tree_is_that_of_the_rule(cheap):
    """A draft that is drawn rarely equals the target's own draw, so exact_match accepts less than rejection."""
    first = {
        rule: report_of(*AUTO, "--verifier", rule)["measured_tree"]["acceptance_by_rank"][0]
        for rule in ("rejection", "exact_match", "gumbel")
    }
    assert first["exact_match"] < 0.5 < min(first["rejection"], first["gumbel"])


def test_a_tree_has_no_more_levels_than_there_are_heads(cheap):
    cheap(0.001, 0)
    assert report_of(*AUTO[:2], "--drafter=heads", "--K=8")["measured_tree"]["levels"] == 3


def test_the_page_says_which_tree_was_found_and_how_large_a_tree_is(cheap):
    cheap(0.1, 0.2)
    assert re.search(r"measured: \d+ nodes?, depth \d, expected speedup \d\.\d\d\n", run_here(*AUTO[:2]).stdout)
    page = run_here("--n_tokens_to_generate=6", "--tree=2x1").stdout
    assert "\nK = 3, tree 4 nodes, temperature 0" in page
    assert re.search(r"\naccepted      \d\.\d of [12]\.\d levels of a tree of \d\.\d nodes, on average\n", page)


# ------------------------------------------------------------------------------------------------ the verdict


def a_round(n_drafted, draft, target, verify=0.0, accepted=0):
    """A round of a chain with these seconds."""
    seconds = {"draft": draft, "target": target, "verify": verify}
    tokens, probs = np.zeros(n_drafted, np.int64), np.full((n_drafted, 1), 1.0)
    verdict = Verdict(accepted, 0)
    return Round(
        np.zeros(accepted + 1, np.int64), Draft(tokens, probs), verdict, np.ones((n_drafted + 1, 1)), seconds, ()
    )


ALONE = [a_round(0, 0, 2)] * 6
TIMES = [[4.0, 2.0], [4.0, 2.5], [4.4, 2.0]]


@pytest.mark.parametrize(
    ("draft", "v", "accepted", "best"),
    [
        (0.2, 1.6, 3, "6 or more by"),  # all accepted: the longest that is considered
        (1.0, 4.0, 1, "0 (no draft) by"),  # a draft and a verification as expensive as an autoregressive step
        (0.2, 1.3, 2, "2 by"),
    ],
)
def test_the_best_K_follows_from_the_rounds(draft, v, accepted, best):
    """By hand: an autoregressive step takes 2 s."""
    found = verdict(TIMES, ALONE, [a_round(3, 6 * draft, 2 * v, accepted=accepted)] * 6)
    alpha = accepted / (accepted + (accepted < 3))
    assert (found["alpha"], found["v"], found["most_K"]) == (pytest.approx(alpha), {"4": pytest.approx(v)}, 6)
    assert found["c"] == pytest.approx(draft)
    assert found["best_K"] == theory.best_K(alpha, draft, [1 + (v - 1) * m / 3 for m in range(7)])
    assert f"best K        {best} this run (alpha {alpha:.2f} of" in next(verdict_lines(found, 3, "--K auto"))


def test_the_best_K_goes_by_the_usual_draft_length_and_the_whole_verification():
    plain = [a_round(0, 0, 1.5, 0.5)] * 6
    some = [a_round(1, 0, 9)] + [a_round(2, 0.4, 2, 1)] * 3 + [a_round(5, 1, 8)] * 2 + [a_round(1, 0.2, 7)] * 2
    found = verdict(TIMES, plain, some)
    assert (found["v"], found["most_K"]) == ({"3": 1.5}, 4) and found["c"] == pytest.approx(0.1)
    assert verdict(TIMES, ALONE, [a_round(2, 1.2, 1)] * 6)["v"] == {"3": 1.0}  # below one is noise


def test_the_speedup_is_the_median_of_the_laps_and_a_busy_machine_is_said():
    found = verdict(TIMES, ALONE, ALONE)
    assert (found["speedup"], found["note"], found["best_K"]) == (2.0, "", None)
    assert found["speedups"] == pytest.approx([2.0, 1.6, 2.2])
    busy = verdict([*TIMES, [6.0, 2.0]], ALONE, ALONE)["note"]
    assert busy == "this machine is busy, the same run took different times: measure again"
    assert verdict([[0.04, 0.02]], ALONE, ALONE)["note"].startswith("texts of less than 0.1 s are too short to tell")


@pytest.mark.parametrize(
    ("best", "K", "note", "what"),
    [
        (1, 3, "", "--K 1, or --K auto"), (1, 1, "", "--K auto"), (0, 3, "", "another --drafter, or a larger target"),
        (1, "auto", "", "another --drafter, or a larger target"), (1, 3, "it is busy", "--K auto"),
    ],
)  # fmt: skip
def test_what_to_try_where_a_draft_does_not_pay(best, K, note, what):
    found = {"note": note, "best_K": best, "alpha": 0.5, "c": 0.1, "v": {"4": 1.5}, "most_K": 6, "speedup": 0.8,
             "speedups": [0.7, 0.8, 0.9]}  # fmt: skip
    lines = [*verdict_lines(found, K, "--K auto")]
    slower = f"verdict       slower than the target alone: try {what}"
    assert lines[1:] == [slower, "speedup       0.80 (3 runs: 0.70 to 0.90)"]
    assert lines[0].startswith("note          it is busy" if note else "best K        ")
    assert len([*verdict_lines(found | {"speedup": 1.0}, K, "--K auto")]) == 2


# ------------------------------------------------------------------------------------------------ as llama.cpp


def test_counts_and_times_under_the_names_of_llama_cpp(tmp_path):
    page = run_here("--timings", *FEW, "--json", tmp_path / "a.json").stdout
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    found, result = data["llama_cpp"], data["speculative"]
    assert (found["n_predict"], found["n_drafted"], found["n_accept"]) == (12, result["drafted"], result["accepted"])
    assert found["accept"] == 100 * result["accepted"] / result["drafted"] and found["n_draft"] == 3
    assert found["encoded"][0] == data["prompt_tokens"] and found["encoded"][1] + found["decoded"][1] == pytest.approx(
        result["seconds"]
    )
    assert found["target eval"][0] == found["draft eval"][0] + result["target_calls"] - 1
    for name in ("encoded", "decoded"):
        n, seconds = found[name]
        assert f"\n{name} {n:4} tokens in {seconds:8.3f} seconds, speed: {n / seconds:8.3f} t/s\n" in page
    assert f"n_predict = 12, n_drafted = {result['drafted']}, n_accept = {result['accepted']}\naccept = " in page
    assert re.search(r"^draft eval  time = +\d+\.\d ms / +\d+ tokens \( *\d+\.\d\d ms per token\)$", page, re.M)
    assert "n_draft = " not in run_here("--timings", "False", *FEW).stdout


# ------------------------------------------------------------------------------------------------ the terminal


def terminal(*arguments):
    """What `python main.py` writes to a terminal."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    main_end, process_end = pty.openpty()
    command = [sys.executable, ROOT / "main.py", *arguments]
    environment = {**os.environ, "TERM": "xterm"}
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
    data = report_of("--temperature", "1", *FEW)
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
