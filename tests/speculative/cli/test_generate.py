"""The comparison of one text: its numbers, its verdict, its colours. What it prints is in pages/generate.txt."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command import report_of
from helpers import ROOT

import gpt2np
from speculative import Costs, Draft, RecyclingDrafter, Round, Sampling, Shape, SpeculativeSampler, Verdict, theory
from speculative.cli.commands.generate import same_text, verdict, verdict_lines
from speculative.cli.drafters import DRAFTERS, RULES

FEW = ("--n_tokens_to_generate", "12")


def test_the_numbers_of_the_report_fit_together():
    data = report_of("--n_tokens_to_generate=40")
    alone, result = data["autoregressive"], data["speculative"]
    assert data["same_tokens"] is True and alone["tokens"] == result["tokens"] and len(result["tokens"]) == 40
    assert alone["target_calls"] == 40 and alone["drafted"] == 0 and set(alone["origins"]) == {"plain"}
    assert result["accepted"] == result["origins"].count("accepted") == sum(result["accepted_by_position"])
    assert result["target_calls"] == 40 - result["accepted"] and len(result["drafted_by_position"]) == 3
    assert result["drafted"] == sum(result["drafted_by_position"])
    assert data["alpha"] == result["accepted"] / (result["accepted"] + result["rejected"])
    assert data["speedup"] == np.median(data["speedups"]) and data["matmul"] in ("panels", "rows")
    assert data["speedups"][0] == pytest.approx(alone["seconds"] / result["seconds"])
    assert sum(result["seconds_by_part"].values()) <= result["seconds"]
    assert result["tokens_per_second"] == 40 / result["seconds"] and data["prompt_tokens"] == 14
    assert (data["K"], data["exactness"], data["target"]["name"]) == (3, "exact", "tiny-target")
    counts = data["llama_cpp"]
    assert (counts["n_predict"], counts["n_drafted"], counts["n_accept"]) == (40, result["drafted"], result["accepted"])
    assert counts["encoded"][1] + counts["decoded"][1] == pytest.approx(result["seconds"])
    assert counts["target eval"][0] == counts["draft eval"][0] + result["target_calls"] - 1


def test_the_text_of_the_report_ends_with_the_stop_text():
    """Also in the middle of a token."""
    text = report_of("--n_tokens_to_generate=30")["autoregressive"]["text"]
    data = report_of("--n_tokens_to_generate=30", "--stop", text[41:44], "--drafter=prompt_lookup")
    assert data["autoregressive"]["text"] == data["speculative"]["text"] == text[: text.index(text[41:44]) + 3]


def test_where_two_texts_differ():
    assert same_text([5, 6, 7], [5, 7, 7]) == "no, they differ from token 2 of 3 on"


@pytest.mark.parametrize("drafter", [name for name in DRAFTERS if name != "forced"])
def test_every_drafter_gives_the_targets_text(drafter):
    data = report_of("--drafter", drafter, *FEW)
    assert data["same_tokens"] is True and data["drafter"] == drafter and len(data["speculative"]["tokens"]) == 12
    assert ("parameters" in data["draft"]) == (drafter in ("model", "heads", "eagle", "block"))


@pytest.mark.parametrize("verifier", RULES)
def test_every_verifier_gives_the_greedy_text_at_temperature_0(verifier):
    data = report_of("--verifier", verifier, *FEW)
    assert data["same_tokens"] is True and data["exactness"] == RULES[verifier].exactness


def test_what_a_drafter_learns_while_a_comparison_warms_up_is_not_in_its_counts():
    """The prompt goes on as the target does after its first token, and so as the tokens of a warm-up might."""
    prompt = "Once upon a time a man who had a daughter, and had a daughter, and a daughter, who was a daughter, and"
    counts = report_of("--prompt", prompt, "--drafter", "recycling", "--n_tokens_to_generate", "30")["speculative"]
    target, tokenizer = gpt2np.load("tiny-target")
    drafter = RecyclingDrafter(target.n_vocab, Shape.chain(3))
    sampler = SpeculativeSampler(target, drafter, K=3, sampling=Sampling(0))
    stats = sampler.generate(tokenizer.encode(prompt), 30, 0).stats
    assert (counts["drafted"], counts["accepted"]) == (stats.drafted, stats.accepted)


# ------------------------------------------------------------------------------------------------ measured trees


AUTO = ("--n_tokens_to_generate=4", "--tree=auto")


@pytest.fixture
def cheap(monkeypatch):
    """Trees that cost little: a draft token 0.001, and each further token of a pass nothing."""
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: Costs(0.001, 0.001, (1,) * 17))
    monkeypatch.setattr("speculative.cli.settings.N_PLACES", 12)


@pytest.mark.parametrize(("words", "levels"), [(["--drafter=heads", "--K=8"], 3), (["--K=2"], 2)])
def test_a_measured_tree_has_no_more_levels_than_there_are_heads_or_K_allows(words, levels, cheap):
    report = report_of(*AUTO, *words)
    found = report["measured_tree"]
    assert found["levels"] == levels and 1 < found["nodes"] == len(found["parents"]) <= 16
    assert len(found["acceptance_by_rank"]) <= 8 and report["same_tokens"]
    assert 0 < report["speculative"]["drafted"] <= found["nodes"] * report["speculative"]["target_calls"]


def test_the_best_tree_is_that_of_the_rule(cheap):
    """A draft that is drawn rarely equals the target's own draw, so exact_match accepts less than rejection."""
    first = {
        rule: report_of(*AUTO, "--temperature=1", "--verifier", rule)["measured_tree"]["acceptance_by_rank"][0]
        for rule in ("rejection", "exact_match", "gumbel")
    }
    assert first["exact_match"] < 0.5 < min(first["rejection"], first["gumbel"])


# ------------------------------------------------------------------------------------------------ the verdict


def a_round(n_drafted, draft, target, verify=0.0, accepted=0):
    """A round of a chain with these seconds."""
    seconds = {"draft": draft, "target": target, "verify": verify}
    drafted = Draft(np.zeros(n_drafted, np.int64), np.full((n_drafted, 1), 1.0))
    rows = np.ones((n_drafted + 1, 1))
    return Round(np.zeros(accepted + 1, np.int64), drafted, Verdict(accepted, 0), rows, seconds, ())


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


# ------------------------------------------------------------------------------------------------ the terminal


def terminal(*arguments):
    """What `python main.py` writes to a terminal, and the part on the second text."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    main_end, process_end = pty.openpty()
    command, environment = [sys.executable, ROOT / "main.py", *arguments], {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=process_end, stderr=process_end, env=environment):
        os.close(process_end)
        written = b""
        try:
            while chunk := os.read(main_end, 4096):
                written += chunk
        except OSError:  # the other end is closed
            pass
    os.close(main_end)
    output = written.decode().replace("\r\n", "\n")
    return output, output.split("\nspeculative (")[1]


def test_on_a_terminal_the_text_is_coloured_by_origin():
    data = report_of("--temperature", "1", *FEW)
    output, second = terminal("--temperature", "1", *FEW)
    colours = {"accepted": "32", "correction": "31", "bonus": "34"}
    painted = re.findall(r"\033\[(3[124])m", second.split("\n", 1)[1])
    expected = [colours[origin] for origin in data["speculative"]["origins"] if origin != "plain"]
    assert painted == expected and set(expected) >= {"31", "32"}
    assert re.sub(r"\033\[\d+m", "", output).count(data["speculative"]["text"]) == 1


def test_the_rounds_on_a_terminal():
    output, second = terminal("--show", "rounds", "--temperature", "1", *FEW)
    assert "accepted\033[0m, \033[9;31mrejected\033[0m, \033[31mcorrection" in output
    rounds = re.findall(r"^ +\d+  (\d)/(\d) accepted  \|(.*)$", second, re.M)
    assert output.startswith("target ") and "dropped" in second.split("\n")[0]
    assert sum(int(accepted) + 1 for accepted, _, _ in rounds) == 12
    for accepted, drafted, line in rounds:
        assert line.count("\033[32m") == int(accepted) and line.count("9;31m") == (accepted < drafted)
