"""The parts of a record: decisions, the uniform numbers, the probabilities, the order of a tree."""

import numpy as np
import pytest

from speculative import (
    Draft,
    Lenient,
    PromptLookupDrafter,
    SpeculativeSampler,
    Typical,
    Verdict,
    block,
    exact_match,
    rejection,
    residual,
)
from speculative.interfaces import Round
from speculative.testing import TableModel
from speculative.trace import Trace
from speculative.trace.parts import N_TOP, drafted_of, largest, uniforms_of


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_decisions_follow_from_the_numbers(generated, temperature):
    """Those of rejection sampling can be recomputed from the records, without a model."""
    seen = set()
    for record in Trace.of(generated(temperature=temperature, n_tokens=60)).rounds:
        for draft in record["drafted"]:
            seen.add(draft["decision"])
            assert (draft["u"] is None) == (draft["decision"] == "dropped")
            if draft["u"] is not None:
                assert (draft["u"] * draft["q"] < draft["p"]) == (draft["decision"] == "accepted")
        assert record["next"]["u"] == record["uniforms"][-1]
    assert seen == {"accepted", "rejected", "dropped"}


def test_the_probabilities_are_those_of_the_round(generated):
    for step in generated().rounds:
        for p, q, draft in zip(step.target_probs, step.draft_probs, drafted_of(step, str)):
            assert (draft["p"], draft["q"]) == (p[draft["token"]], q[draft["token"]])
            assert draft["overlap"] == np.minimum(p, q).sum()
            assert {x: (a, b) for x, _, a, b in draft["top"]} == {x: (p[x], q[x]) for x in range(7)}
            rest = residual(p, q)
            assert all(share == rest[x] for x, _, share in draft["residual"])
            assert [share for *_, share in draft["residual"]] == sorted(rest[rest > 0], reverse=True)[:5]


def test_a_copied_token_is_certain():
    sampler = SpeculativeSampler(TableModel.random(7, n_ctx=64), PromptLookupDrafter(7), K=3)
    copied = Trace.of(sampler.generate([1, 2, 1, 2, 1], 9, 0, keep_probs=True))
    assert {draft["q"] for record in copied.rounds for draft in record["drafted"]} == {1.0}


@pytest.mark.parametrize(
    ("verifier", "n_tests"),
    [
        (rejection, lambda k, n: min(n + 1, k)),
        (Lenient(0.5), lambda k, n: min(n + 1, k)),
        (block, lambda k, n: k),
        (exact_match, lambda k, n: min(n + 1, k)),  # the draw that differs is the next token's own
        (Typical(), lambda k, n: 0),
    ],
)
def test_each_number_is_where_it_decided(generated, verifier, n_tests):
    generation = generated(verifier, n_tokens=60)
    for step, record in zip(generation.rounds, Trace.of(generation).rounds):
        n = n_tests(len(step.drafted), step.n_accepted)
        wanted = [*step.uniforms[:n], *[None] * (len(step.drafted) - n)]
        assert [draft["u"] for draft in record["drafted"]] == wanted


@pytest.mark.parametrize("n_numbers", range(6))
def test_the_last_number_is_given_only_where_the_count_fits(n_numbers):
    """Of three draft tokens the first is rejected: two numbers (rejection), or four (block)."""
    numbers = tuple(np.arange(n_numbers) / 10)
    decided, last = uniforms_of(
        Round(np.array([2]), Draft(np.array([0, 1, 0]), None), Verdict(0, 2), None, {}, numbers)
    )
    assert last == (numbers[-1] if n_numbers in (2, 4) else None)
    assert decided == dict(enumerate(numbers[: 3 if n_numbers == 4 else 1]))


# ------------------------------------------------------------------------------------------------ trees


@pytest.mark.parametrize("verifier", [rejection, exact_match])
def test_a_tree_is_recorded_in_the_order_of_its_tests(of_trees, verifier):
    generation = of_trees(verifier)
    for step, record in zip(generation.rounds, Trace.of(generation).rounds):
        drafted = record["drafted"]
        accepted = [i for i, draft in enumerate(drafted) if draft["decision"] == "accepted"]
        assert [drafted[i]["token"] for i in accepted] == step.tokens[: step.n_accepted].tolist()
        assert [drafted[i]["parent"] for i in accepted] == [-1, *accepted][: len(accepted)]
        assert sorted(draft["token"] for draft in drafted) == sorted(step.drafted.tolist())
        tested = [draft for draft in drafted if draft["decision"] != "dropped"]
        assert tested == drafted[: len(tested)]
        if verifier is rejection:
            assert [draft["u"] for draft in tested] == list(step.uniforms[:-1])
            for draft in tested:
                assert (draft["u"] * draft["q"] < draft["p"]) == (draft["decision"] == "accepted")


def of_one_sibling(number, p, q, accepted):
    """A tree of two siblings of which the first is accepted or not, decided by this number."""
    target, draft = np.full((3, 3), 1 / 3), np.full((2, 3), 1 / 3)
    target[0], draft[0] = (p, 1 - p, 0), (q, 1 - q, 0)
    tokens, nodes = ([0, 1], (0,)) if accepted else ([2], ())
    numbers = (number, 0.5) if accepted else (number, 0.99, 0.5)
    draft = Draft(np.array([0, 1]), draft, np.array([-1, -1]))
    return Round(np.array(tokens), draft, Verdict(nodes, tokens[-1]), target, {}, numbers)


@pytest.mark.parametrize(("number", "explains"), [(0.4, True), (0.6, False)])
def test_numbers_of_a_tree_are_given_only_where_they_explain_its_decisions(number, explains):
    """p / q is 1/2: a number below that accepts. Another rule may draw as many numbers."""
    decided, last = uniforms_of(of_one_sibling(number, 0.25, 0.5, accepted=True))
    assert (decided, last) == (({0: number}, 0.5) if explains else ({}, None))


def test_without_probabilities_no_number_of_a_tree_is_given(of_trees):
    generation = of_trees(n_tokens=30, keep_probs=False)
    for step, record in zip(generation.rounds, Trace.of(generation).rounds):
        if step.draft.depth < len(step.drafted):
            assert all("p" not in draft and draft["u"] is None for draft in record["drafted"])


def test_the_draft_token_is_once_among_the_largest():
    values = np.arange(20) / 190
    for also in range(20):
        found = largest(values, N_TOP, also)
        assert found[:N_TOP] == [*range(19, 19 - N_TOP, -1)]
        assert found[N_TOP:] == ([] if also > 19 - N_TOP else [also])
    assert largest(values, 20) == [*range(19, 0, -1)] and largest(values, 20, 0) == [*range(19, -1, -1)]
    step = of_one_sibling(0.4, 0.25, 0.5, accepted=True)
    assert [[row[0] for row in draft["top"]] for draft in drafted_of(step, str)] == [[1, 0], [1, 0, 2]]
