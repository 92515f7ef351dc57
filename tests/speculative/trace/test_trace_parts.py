"""Parts of a trace by hand: texts of guesses, numbers of trees, values at the edge of a form, empty texts in colour."""

import json

import numpy as np
import pytest
from helpers import TreeDrafter

from speculative import AutoregressiveSampler, ByPaths, SpeculativeSampler
from speculative.interfaces import Laps, Round
from speculative.testing import TableModel
from speculative.trace import Trace
from speculative.trace.parts import N_TOP, guesses_of, largest, uniforms_of
from speculative.trace.terminal import legend, piece

BYTES = [b"a", b" b", b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80", b"!"]


def text_of(tokens):
    return b"".join(BYTES[token] for token in tokens).decode("utf-8", "replace")


def chain(tokens, drafted, n_accepted):
    return Round(np.array(tokens), np.array(drafted, np.int64), n_accepted, {}, None, None)


def test_each_guess_has_its_text():
    """A character in two tokens belongs to the one that completes it; a branch begins with what the text holds back."""
    trace = Trace([0], text_of)
    record = trace.add(chain([1, 2, 6], [1, 2, 3], 2))  # "b", half of an é, then "!" instead of the rest
    assert [guess["text"] for guess in record["guesses"]] == [" b", "", "\u00e9"]
    trace = Trace([0], text_of)
    trace.add(chain([4], [], 0))
    tree = Round(np.array([5, 6]), np.array([5, 1, 0, 2]), 1, {}, None, None, (), np.array([-1, -1, 0, 0]), (0,))
    record = trace.add(tree)
    assert {guess["token"]: guess["text"] for guess in record["guesses"]} == {
        5: "\U0001f600",
        1: "\ufffd b",
        0: "a",
        2: "",
    }
    assert record["texts"] == ["\U0001f600", "!"]


def test_what_a_cache_holds_by_hand():
    """The last token of the text is always computed, since its row is needed."""
    trace = Trace([0, 1])
    for tokens, drafted, n_accepted, expected in (
        ([2, 5], [2, 3], 1, (0, 0, 4)),  # 0 1 2 3
        ([4], [4], 1, (3, 1, 2)),  # 0 1 2 5 4, where 3 is in the way of 5
        ([6], [], 0, (4, 1, 1)),  # 0 1 2 5 4 again, for the token after it
        ([1], [0, 0], 0, (5, 0, 3)),
    ):
        record = trace.add(chain(tokens, drafted, n_accepted))
        assert tuple(record["cache"].values()) == expected and [*record["cache"]] == ["reused", "dropped", "computed"]


def of_one_sibling(number, p, q, accepted):
    """A tree of two siblings of which the first is accepted or not, decided by this number."""
    target, draft = np.full((3, 3), 1 / 3), np.full((2, 3), 1 / 3)
    target[0], draft[0] = (p, 1 - p, 0), (q, 1 - q, 0)
    tokens, nodes = ([0, 1], (0,)) if accepted else ([2], ())
    numbers = (number, 0.5) if accepted else (number, 0.99, 0.5)
    return Round(np.array(tokens), np.array([0, 1]), len(nodes), {}, draft, target, numbers, np.array([-1, -1]), nodes)


@pytest.mark.parametrize(("number", "explains"), [(0.4, True), (0.6, False)])
def test_numbers_of_a_tree_are_given_only_where_they_explain_its_decisions(number, explains):
    """p / q is 1/2: a number below that accepts. Another rule may draw as many numbers."""
    decided, last = uniforms_of(of_one_sibling(number, 0.25, 0.5, accepted=True))
    assert (decided, last) == (({0: number}, 0.5) if explains else ({}, None))


@pytest.mark.parametrize("n_numbers", range(6))
def test_the_last_number_is_given_only_where_the_count_fits(n_numbers):
    """Of three draft tokens the first is rejected: two numbers (rejection), or four (block)."""
    numbers = tuple(np.arange(n_numbers) / 10)
    step = Round(np.array([2]), np.array([0, 1, 0]), 0, {}, None, None, numbers)
    decided, last = uniforms_of(step)
    assert last == (numbers[-1] if n_numbers in (2, 4) else None)
    assert decided == dict(enumerate(numbers[: 3 if n_numbers == 4 else 1]))


def test_a_tree_without_probabilities_has_a_record():
    target, draft = (ByPaths(TableModel.random(3, seed=seed, n_ctx=64)) for seed in (1, 2))
    sampler = SpeculativeSampler(target, TreeDrafter(draft, [-1, -1, 0, 0, 1, 3], "without"), K=3)
    generation = sampler.generate([0], 30, 7)
    assert any(step.parents is not None for step in generation.rounds)
    for record in Trace.of(generation).rounds:
        assert all("p" not in guess and guess["u"] is None for guess in record["guesses"] if "parent" in guess)


def test_the_draft_token_is_once_among_the_largest():
    values = np.arange(20) / 190
    for also in range(20):
        found = largest(values, N_TOP, also)
        assert found[:N_TOP] == [*range(19, 19 - N_TOP, -1)]
        assert found[N_TOP:] == ([] if also > 19 - N_TOP else [also])
    assert largest(values, 20) == [*range(19, 0, -1)] and largest(values, 20, 0) == [*range(19, -1, -1)]
    step = of_one_sibling(0.4, 0.25, 0.5, accepted=True)
    assert [[row[0] for row in guess["top"]] for guess in guesses_of(step, str)] == [[1, 0], [1, 0, 2]]


def test_a_text_without_a_draft_has_no_acceptance():
    summary = Trace.of(AutoregressiveSampler(TableModel.random(3, seed=1)).generate([0], 4, 0)).summary
    assert summary["alpha"] is None and summary["acceptance"] == 0 and summary["acceptance_by_position"] == []
    assert Trace([0]).summary["tokens_per_target_call"] == 0


# ------------------------------------------------------------------------------------------------ values at the edge


def saved(tmp_path, change):
    """A trace of one round of two guesses, with one change."""
    step = of_one_sibling(0.4, 0.25, 0.5, accepted=True)
    trace = Trace([0])
    trace.add(Round(**vars(step) | {"seconds": dict.fromkeys(("draft", "target", "verify"), 0.0)}))
    trace.save(tmp_path / "t.jsonl")
    header, record = map(json.loads, (tmp_path / "t.jsonl").read_text("utf-8").splitlines())
    change(header, record)
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    return tmp_path / "t.jsonl"


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        (lambda header, record: None, True),
        (lambda header, record: header.update(prompt=[2**53 - 1]), True),
        (lambda header, record: header.update(prompt=[2**53]), False),  # a page's script would round it
        (lambda header, record: header.update(prompt=[-1]), False),
        (lambda header, record: header.update(trace=True), False),
        (lambda header, record: record["guesses"][1].update(parent=0), True),
        (lambda header, record: record["guesses"][1].update(parent=1), False),  # it would follow itself
        (lambda header, record: record["guesses"][1].update(parent=0.0), False),  # no index of a list
        (lambda header, record: record["guesses"][1].update(parent=False), False),
        (lambda header, record: record["guesses"][0]["top"][0].pop(), False),
        (lambda header, record: record["guesses"][0]["top"][0].append(0.5), False),
        (lambda header, record: record["guesses"][0]["top"][0].__setitem__(3, "0.5"), False),
        (lambda header, record: record["guesses"][0]["top"][0].__setitem__(0, 0.5), False),
        (lambda header, record: record["next"]["top"][0].append(0.5), False),
        (lambda header, record: record.update(tokens=[], texts=[], origins=[]), False),
        (lambda header, record: record["texts"].append(""), False),
        (lambda header, record: record.update(more=None), True),
    ],
)
def test_a_value_at_the_edge_of_its_form(tmp_path, change, accepted):
    path = saved(tmp_path, change)
    if accepted:
        Trace.load(path)
    else:
        with pytest.raises(ValueError, match="expected a trace as"):
            Trace.load(path)


@pytest.mark.parametrize("kind", ["accepted", "rejected", "prompt", "plain"])
def test_colour_is_for_what_is_seen(kind):
    assert piece("", kind, True) == ""
    assert ("\033[" in piece("x", kind, True)) == (kind != "plain")
    assert "\033" not in piece("x", kind, False)


def test_the_legend_has_every_kind_in_its_style():
    assert legend() == "accepted, ~rejected~, [correction], (bonus), ~dropped~"
    assert legend(True, ("bonus",)) == "\033[34mbonus\033[0m"


# ------------------------------------------------------------------------------------------------ clocks


def test_laps_add_up_to_the_time_between(monkeypatch):
    times = iter([10.0, 11.0, 13.0, 17.0])
    monkeypatch.setattr("speculative.interfaces.perf_counter", lambda: next(times))
    laps = Laps()
    assert laps.seconds == {"draft": 0, "target": 0, "verify": 0}
    for name in laps.seconds:
        laps.end(name)
    assert laps.seconds == {"draft": 1, "target": 2, "verify": 4}
