"""Whether a comparison was won, and what to try: from rounds and seconds that are given."""

import numpy as np
import pytest
from command import report_of, run_here

from speculative import Draft, Round, Verdict, theory
from speculative.cli import verdict
from speculative.cli.verdict import laps, lines, outcome, suggestion
from speculative.interfaces import Stats

FEW = ("--n_tokens_to_generate", "12")


def a_round(n_drafted, draft, target, verify=0.0, accepted=1, parents=None):
    tokens, seconds = np.zeros(n_drafted, np.int64), {"draft": draft, "target": target, "verify": verify}
    return Round(tokens, Draft(tokens, None, parents), Verdict(accepted, 0), None, seconds)


def suggested(plain, some, most_levels=None):
    accepted, rejected = sum(r.n_accepted for r in some), sum(r.n_accepted < r.draft.depth for r in some)
    return suggestion(plain, some, Stats(0, 0, 0, accepted, rejected, [], [], {}), most_levels)


ALONE = [a_round(0, 0, 2, accepted=0)] * 5


# ------------------------------------------------------------------------------------------------ the best size


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
    found = suggested(ALONE, [a_round(3, 6 * draft, 2 * v, accepted=accepted)] * 5)
    alpha, numbers = accepted / (accepted + (accepted < 3)), found["best_from"]
    assert (numbers["alpha"], numbers["v"], numbers["most_K"]) == (alpha, {"4": v}, 6)
    assert numbers["c"] == pytest.approx(draft)
    line = [1 + (v - 1) * m / 3 for m in range(7)]
    assert found["best_K"] == theory.best_K(alpha, draft, line)
    assert verdict.best_line(found).startswith(f"best K        {best} this run (alpha {alpha:.2f} of")


def test_the_suggested_K_goes_by_the_usual_draft_length_and_the_whole_verification():
    plain = [a_round(0, 0, 1.5, 0.5, 0)] * 5
    some = [a_round(2, 0.4, 2, 1)] * 3 + [a_round(5, 1, 8)] * 2 + [a_round(1, 0.2, 7)] * 2
    found = suggested(plain, some)["best_from"]
    assert (found["v"], found["most_K"]) == ({"3": 1.5}, 4) and found["c"] == pytest.approx(0.1)


def test_a_v_below_one_is_noise():
    found = suggested(ALONE, [a_round(2, 1.2, 1)] * 6)
    assert found["best_from"]["v"] == {"3": 1.0} and found["best_K"] == 1


def test_the_best_tree_follows_from_the_rounds():
    """The second child is accepted in one of four rounds, the first in two: widths pay where nodes are cheap."""
    pair = np.array([-1, -1])
    some = [a_round(2, 0.02, 2.04, accepted=nodes, parents=pair) for nodes in ((0,), (0,), (1,), ())]
    found = suggested(ALONE, some, most_levels=1)
    assert found["best_from"]["acceptance_by_rank"] == [0.5, 0.25] and found["best_K"] is None
    assert found["best_tree"] == {"nodes": 2, "levels": 1}
    line = "best tree     --K 1 --tree 2 (first child accepted 50%, c 0.01, v(3) 1.02)"
    assert verdict.best_line(found) == line
    dear = [a_round(2, 0.02, 3, accepted=nodes, parents=pair) for nodes in ((0,), ())]
    assert suggested(ALONE, dear, most_levels=1)["best_tree"] == {"nodes": 1, "levels": 1}
    assert verdict.as_options({"nodes": 2, "levels": 2}) == "--K 2 --tree 1,1, a chain"
    assert suggested(ALONE, some)["best_tree"] is None  # its shape cannot be chosen


def test_nothing_is_suggested_where_nothing_was_drafted():
    words = ("--drafter", "prompt_lookup", "--prompt", "Once", "--n_tokens_to_generate", "2")
    data, page = report_of(*words), run_here(*words).stdout
    assert data["best_K"] is data["best_tree"] is data["best_from"] is None
    assert "best K" not in page and "by position   nothing was drafted\n" in page


# ------------------------------------------------------------------------------------------------ laps


def test_the_speedup_is_the_median_of_the_laps():
    found = outcome(4.0, 2.0, [[4.0, 4.0, 4.4], [2.0, 2.5, 2.0]], 1.2)
    assert found == {"speedup": pytest.approx(2.0), "speedups": pytest.approx([2.0, 1.6, 2.2]), "doubt": ""}
    part = outcome(40.0, 20.0, [[4.0, 4.0, 4.4], [2.0, 2.5, 2.0]], 1.2)  # laps of a tenth of the texts
    assert part["speedups"] == pytest.approx(found["speedups"])


@pytest.mark.parametrize(
    ("seconds", "share", "busy"),
    [
        ([[4, 4, 6], [2, 2, 2]], 1.0, "the same run took 4.00 to 6.00 s"),
        ([[4, 4, 4], [2, 2, 2]], 0.5, "this process had 50% of a processor"),
    ],
)
def test_the_signs_of_a_busy_machine(seconds, share, busy):
    assert outcome(4, 2, seconds, share)["doubt"] == f"this machine is busy ({busy}): measure again"


def test_a_short_text_tells_little_on_any_machine():
    assert laps([None] * 2, [[0.04], [0.02]]) == ([[0.04], [0.02]], [[], []], 1.0)  # once is enough
    found = outcome(0.04, 0.02, [[0.04], [0.02]], 1.0)["doubt"]
    assert found == "texts of less than 0.1 s are too short to tell: generate more"


def test_a_lap_is_the_beginning_of_a_long_text(monkeypatch):
    """Of ten rounds of 0.4 s, those that start within the first second."""
    started = []

    def start(n_drafted):
        started.append(n_drafted)
        return iter([a_round(n_drafted, 0.1, 0.2)] * 10)

    starts = [lambda: start(0), lambda: start(3)]
    seconds, rounds, share = laps(starts, [[0.4] * 10, [0.011] * 10])
    assert started == [0, 3] * 2 and share >= 0
    assert [times[0] for times in seconds] == pytest.approx([1.2, 0.11]) and [len(times) for times in seconds] == [3, 3]
    assert [len(some) for some in rounds] == [2 * (3 - 1), 2 * (10 - 1)]


# ------------------------------------------------------------------------------------------------ in words

LOST = {
    "doubt": "", "best_K": 1, "best_tree": None, "K": 3, "tree": "", "auto": "--K auto", "speedup": 0.8,
    "speedups": [0.7, 0.8, 0.9], "best_from": {"alpha": 0.5, "c": 0.1, "v": {"4": 1.5}, "most_K": 6},
}  # fmt: skip
OF_A_TREE = {"best_K": None, "tree": "8", "auto": "--tree auto"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, "try --K 1, or --K auto"),
        ({"K": 1}, "try another --drafter, or a larger target"),
        ({"best_K": 0}, "try another --drafter, or a larger target"),
        ({"K": "auto", "auto": ""}, "try --K 1"),
        ({"doubt": "it is busy"}, "try --K auto"),
        (OF_A_TREE, "try --tree auto"),
        (OF_A_TREE | {"tree": "auto", "auto": ""}, "try another --drafter, or a larger target"),
    ],
)
def test_what_to_try_where_a_draft_does_not_pay(change, what):
    found = [*lines(LOST | change)]
    assert found[-2:] == [
        f"verdict       slower than the target alone: {what}",
        "speedup       0.80 (3 runs: 0.70 to 0.90)",
    ]
    assert not any(line.startswith("verdict") for line in lines(LOST | change | {"speedup": 1.0}))


def test_a_busy_machine_is_said_in_one_line_and_has_no_best_K():
    found = [*lines(LOST | {"doubt": "it is busy", "best_K": 0})]
    assert found[0] == "note          it is busy" and len(found) == 3
    assert not any("best K" in line for line in found)
