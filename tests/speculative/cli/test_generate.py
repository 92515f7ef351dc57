"""The comparison of one text: its verdict, its colours. What it prints and reports is in pages/generate.txt."""

import io
import re

import numpy as np
import pytest
from command import report_of, run_here

import gpt2np
from speculative import Costs, Draft, RecyclingDrafter, Round, Sampling, Shape, SpeculativeSampler, Verdict, theory
from speculative.cli.commands.generate import same_text, verdict, verdict_lines
from speculative.cli.drafters import DRAFTERS, RULES

FEW = ("--n_tokens_to_generate", "12")


@pytest.mark.parametrize(
    ("option", "name"),
    [*(("drafter", name) for name in DRAFTERS if name != "forced"), *(("verifier", name) for name in RULES)],
)
def test_every_drafter_and_every_rule_gives_the_targets_greedy_text(option, name):
    data = report_of(f"--{option}={name}", *FEW)
    assert data["same_tokens"] is True and data[option] == name and len(data["speculative"]["tokens"]) == 12
    assert ("parameters" in data["draft"]) == (data["drafter"] in ("model", "heads", "eagle", "block"))
    assert data["exactness"] == RULES[data["verifier"]].exactness


def test_where_two_texts_differ():
    assert same_text([5, 6, 7], [5, 7, 7]) == "no, they differ from token 2 of 3 on"


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


@pytest.fixture
def measured_tree(monkeypatch):
    """The tree of these options where trees cost little: a draft token 0.001, and each further token nothing."""
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: Costs(0.001, 0.001, (1,) * 17))

    def report(*words):
        report = report_of("--n_tokens_to_generate=4", "--tree=auto", *words)
        return report["measured_tree"], report

    return report


@pytest.mark.parametrize(("words", "levels"), [(["--drafter=heads", "--K=8"], 3), (["--K=2"], 2)])
def test_a_measured_tree_has_no_more_levels_than_there_are_heads_or_K_allows(words, levels, measured_tree):
    found, report = measured_tree(*words)
    assert found["levels"] == levels and 1 < found["nodes"] == len(found["parents"]) <= 16
    assert len(found["acceptance_by_rank"]) <= 8 and report["same_tokens"]
    assert 0 < report["speculative"]["drafted"] <= found["nodes"] * report["speculative"]["target_calls"]


def test_the_best_tree_is_that_of_the_rule(measured_tree):
    """A draft that is drawn rarely equals the target's own draw, so exact_match accepts less than rejection."""
    rejection, exact_match, gumbel = (
        measured_tree("--temperature=1", "--verifier", rule)[0]["acceptance_by_rank"][0]
        for rule in ("rejection", "exact_match", "gumbel")
    )
    assert exact_match < 0.5 < min(rejection, gumbel)


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
    some = [a_round(1, 0, 9)] + [a_round(2, 0.4, 2, 1)] * 3 + [a_round(5, 3, 8)] * 2 + [a_round(1, 0.2, 7)] * 2
    found = verdict(TIMES, plain, some)
    assert (found["v"], found["most_K"], found["c"]) == ({"3": 1.5}, 4, pytest.approx(0.1))
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
        (1, 3, "", "--K 1, or --K auto"), (1, 1, "", "--K auto"),
        (0, 3, "", "a different --drafter, or a larger target"),
        (1, "auto", "", "a different --drafter, or a larger target"), (1, 3, "it is busy", "--K auto"),
    ],
)  # fmt: skip
def test_what_to_try_where_a_draft_does_not_pay(best, K, note, what):
    found = {"note": note, "best_K": best, "alpha": 0.5, "c": 0.1, "v": {"4": 1.5}, "most_K": 6, "speedup": 0.8}
    found["speedups"] = [0.7, 0.8, 0.9]
    first, *lines = verdict_lines(found, K, "--K auto")
    slower = f"verdict       slower than the target alone: try {what}"
    assert lines == [slower, "speedup       0.80 (3 runs: 0.70 to 0.90)"]
    assert first.startswith("note          it is busy" if note else "best K        ")
    assert len([*verdict_lines(found | {"speedup": 1.0}, K, "--K auto")]) == 2


# ------------------------------------------------------------------------------------------------ the terminal


@pytest.fixture
def terminal(monkeypatch):
    """A function: what a command writes to a terminal, and the part on the second text."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def written(*arguments):
        result = run_here(*arguments)
        assert result.stderr == ""  # no progress bar in the text
        return result.stdout, result.stdout.split("\nspeculative")[1]

    monkeypatch.setattr(io, "StringIO", Terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return written


def test_on_a_terminal_the_text_is_coloured_by_origin(terminal, monkeypatch):
    data = report_of("--temperature", "1", *FEW)["speculative"]
    output, second = terminal("--temperature", "1", *FEW)
    colours = {"accepted": "32", "correction": "31", "bonus": "34"}
    painted = re.findall(r"\033\[(3[124])m", second.split("\n", 1)[1])
    expected = [colours[origin] for origin in data["origins"] if origin != "plain"]
    assert painted == expected and set(expected) >= {"31", "32"}
    assert re.sub(r"\033\[\d+m", "", output).count(data["text"]) == 1
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert "\033" not in terminal(*FEW)[0]


def test_the_rounds_on_a_terminal(terminal):
    output, second = terminal("--show", "rounds", "--temperature", "1", *FEW)
    assert "accepted\033[0m, \033[9;31mrejected\033[0m, \033[31mcorrection" in output
    rounds = re.findall(r"^ +\d+  (\d)/(\d) accepted  \|(.*)$", second, re.M)
    assert output.startswith("target ") and "dropped" in second.split("\n")[0]
    assert sum(int(accepted) + 1 for accepted, _, _ in rounds) == 12
    for accepted, drafted, line in rounds:
        assert line.count("\033[32m") == int(accepted) and line.count("9;31m") == (accepted < drafted)
