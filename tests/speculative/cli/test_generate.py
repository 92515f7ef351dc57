"""The comparison: its page, its report, and what its options change."""

import json
import os
import re
import subprocess
import sys

import pytest
from command import refusal, report_of, run_here
from helpers import ROOT

import gpt2np
from speculative import (
    Costs,
    RecyclingDrafter,
    Sampling,
    Shape,
    SpeculativeSampler,
)
from speculative.cli.commands.generate import compared
from speculative.cli.verdict import lines

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
    assert [*lines(data)] == page.split("tokens per second\n\n")[-1].splitlines()[:-4] and last[1] == [*lines(data)][-1]
    assert f"accepted      {result['accepted']} of {result['drafted']} drafted tokens (" in last[3]
    assert f"by position   1: {result['acceptance_by_position'][0]:.0%}  2: " in last[4]
    tested = result["accepted"] + result["rejected"]
    assert data["best_from"]["alpha"] == result["accepted"] / tested
    assert 0 <= data["best_K"] <= data["best_from"]["most_K"] == 6 and list(data["best_from"]["v"]) == ["4"]
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
    assert compared([5], [5]) == "yes, the one token" and compared([5, 6], [5, 6]) == "yes, all 2 tokens"
    assert compared([5, 6, 7], [5, 7, 7]) == "no, they differ from token 2 of 3 on"


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


def test_a_report_belongs_to_its_options(tmp_path):
    path = tmp_path / "a.json"
    assert run_here("--n_tokens_to_generate=5", "--json", path).returncode == 0
    assert "was made with --n_tokens_to_generate 5, not 6" in refusal("--n_tokens_to_generate=6", "--json", path)


def test_what_a_drafter_learns_while_a_comparison_warms_up_is_not_in_its_counts():
    """The prompt goes on as the target does after its first token, and so as the tokens of a warm-up might."""
    prompt = "Once upon a time a man who had a daughter, and had a daughter, and a daughter, who was a daughter, and"
    counts = report_of("--prompt", prompt, "--drafter", "recycling", "--n_tokens_to_generate", "30")["speculative"]
    target, tokenizer = gpt2np.load("tiny-target")
    drafter = RecyclingDrafter(target.n_vocab, Shape.chain(3))
    sampler = SpeculativeSampler(target, drafter, K=3, sampling=Sampling(0))
    stats = sampler.generate(tokenizer.encode(prompt), 30, 0).stats
    assert (counts["drafted"], counts["accepted"]) == (stats.drafted, stats.accepted)


# ------------------------------------------------------------------------------------------------ trees


@pytest.fixture
def cheap(monkeypatch):
    """A function that sets the measured costs: of a draft token, and of each further token in a pass."""

    def costs(c, slope):
        found = Costs(0.001, c, tuple(1 + slope * k for k in range(17)))
        monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: found)

    costs(0.1, 0.01)
    monkeypatch.setattr("speculative.cli.registry.N_PLACES", 12)
    return costs


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["--tree=6"], 6),
        (["--tree=2,1", "--timings"], 4),
        (["--tree=5", "--drafter=ngram", "--temperature=1"], 5),
        (["--tree=auto", "--drafter=recycling"], 16),
        (["--tree=auto", "--drafter=heads"], 16),
        (["--tree=2,1,1", "--drafter=heads"], 6),
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


def test_the_best_tree_of_drawn_siblings(cheap):
    """A single child is a plain draw, accepted as often as in a chain, whatever the first of eight would be."""
    found = report_of(*AUTO, "--siblings=drawn")["measured_tree"]
    assert found["acceptance_by_rank"][0] > 0.6 and found["levels"] > 2


def test_a_tree_has_no_more_levels_than_there_are_heads(cheap):
    cheap(0.001, 0)
    assert report_of(*AUTO[:2], "--drafter=heads", "--K=8")["measured_tree"]["levels"] == 3


def test_the_page_says_which_tree_was_found(cheap):
    cheap(0.1, 0.2)
    page = run_here(*AUTO[:2]).stdout
    assert re.search(r"tree    \d+ nodes, depth \d: expected speedup \d\.\d\d by measured costs", page)


def test_the_size_of_a_tree_stands_where_K_stands_for_a_chain():
    few = ("--n_tokens_to_generate=6",)
    page = run_here(*few, "--tree=2,1").stdout
    assert "\n4 nodes, depth 2, temperature 0" in page and "K = " not in page
    assert re.search(r"\naccepted      \d\.\d of [12]\.\d levels of a tree of \d\.\d nodes, on average\n", page)
    assert "\n7 nodes, depth 3, temperature 0" in run_here(*few, "--tree=7", "--drafter=suffix").stdout
    assert "\n3 nodes, depth 3, temperature 0" in run_here(*few, "--drafter=heads").stdout
    assert "\nK = 3, temperature 0" in run_here(*few, "--drafter=recycling").stdout


# ------------------------------------------------------------------------------------------------ as llama.cpp


@pytest.mark.parametrize("drafter", ["early_exit", "suffix"])
def test_statistics_as_llama_cpp_prints_them(drafter, tmp_path):
    """Without a draft model the time of drafting is no time of sampling."""
    page = run_here("--drafter", drafter, "--timings", *FEW, "--json", tmp_path / "a.json").stdout
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    found, result, roles = data["llama_cpp"], data["speculative"], ["target", "draft"][: 1 + (drafter != "suffix")]
    assert (found["n_predict"], found["n_drafted"], found["n_accept"]) == (12, result["drafted"], result["accepted"])
    assert found["accept"] == 100 * result["accepted"] / max(1, result["drafted"])
    assert found["target"]["prompt eval tokens"] >= data["prompt_tokens"]
    parts = sum(found[role][f"{part} time"] for role in roles for part in ("prompt eval", "eval", "sample"))
    samples = [found[role]["sample time"] for role in roles]
    drafting = 0 if drafter == "early_exit" else 1e3 * result["seconds_by_part"]["draft"]
    assert (found["drafting time"] or 0) == drafting and (found["draft"] is None) == (drafter == "suffix")
    assert drafting + parts == pytest.approx(found["total time"]) and min(samples) > 0
    of_draft = (
        [found["draft"][f"{part} time"] for part in ("prompt eval", "eval", "sample")] if found["draft"] else [drafting]
    )
    assert sum(of_draft) == pytest.approx(1e3 * result["seconds_by_part"]["draft"])
    encoding = sum(found[role]["prompt eval time"] for role in roles)
    assert found["encoded"] == {"tokens": data["prompt_tokens"], "time": pytest.approx(encoding)}
    assert found["decoded"] == {"tokens": 12, "time": pytest.approx(found["total time"] - encoding)}
    assert result["prefill_seconds"] == pytest.approx(encoding / 1e3)
    for name in ("encoded", "decoded"):
        n, seconds = found[name]["tokens"], found[name]["time"] / 1e3
        assert f"\n{name} {n:4} tokens in {seconds:8.3f} seconds, speed: {n / seconds:8.3f} t/s\n" in page
    alone = data["autoregressive"]
    assert 0 < alone["prefill_seconds"] < alone["seconds"]
    decoding = [some["seconds"] - some["prefill_seconds"] for some in (alone, result)]
    with_prefill, without = alone["seconds"] / result["seconds"], decoding[0] / decoding[1]
    assert f"\nspeedup of the runs shown: {with_prefill:.2f} with prefill, {without:.2f} without\n" in page
    assert f"n_predict = 12, n_drafted = {result['drafted']}, n_accept = {result['accepted']}" in page
    for role in roles:
        assert re.search(rf"^{role:6}  load time        = +\d+\.\d ms$", page, re.M)
        assert re.search(
            rf"^{role:6}  prompt eval time = +\d+\.\d ms / +\d+ tokens \( +\d+\.\d\d ms per token", page, re.M
        )
        assert re.search(rf"^{role:6}  eval time        = .* tokens per second\)$", page, re.M)
        assert f"\n{role:6}  sample time      = {found[role]['sample time']:9.1f} ms\n" in page
    words = "drafting time = .* ms, " if drafting else ""
    assert re.search(rf"^{words}total time = \d+\.\d ms$", page, re.M)
    assert "n_draft = " not in run_here("--drafter", drafter, "--timings", "False", *FEW).stdout


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
