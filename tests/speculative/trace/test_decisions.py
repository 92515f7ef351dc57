"""The parts of a record: decisions, the uniform numbers, the probabilities, the order of a tree."""

import numpy as np
import pytest

from speculative import Lenient, PromptLookupDrafter, SpeculativeSampler, block, exact_match, rejection
from speculative.generation import Round
from speculative.interfaces import Draft, Verdict
from speculative.logits.probs import residual
from speculative.testing import TableModel
from speculative.trace import Trace
from speculative.trace.record import N_TOP, drafted_of, largest


@pytest.mark.parametrize(
    "how",
    [{"temperature": 0.5}, {}, "a tree", {"K": 5, "stop_tokens": [4], "rng": 23}],
    ids=["cold", "warm", "tree", "ends in mid block"],
)
def test_the_decisions_follow_from_the_numbers(generated, of_trees, how):
    """Those of rejection sampling can be recomputed from the records, without a model."""
    seen, generation = set(), of_trees() if how == "a tree" else generated(**how, n_tokens=60)
    for r, record in zip(generation.rounds, Trace.of(generation).rounds):
        for draft in record["drafted"]:
            seen.add(draft["decision"])
            assert (draft["u"] is None) == (draft["decision"] == "dropped")
            if draft["u"] is not None:
                assert (draft["u"] * draft["q"] < draft["p"]) == (draft["decision"] == "accepted")
        assert (record["next"] is None) == (len(r.tokens) == r.n_accepted)
    assert seen == {"accepted", "rejected", "dropped"} and (record["next"] is None) == ("stop_tokens" in how)


def test_the_probabilities_are_those_of_the_round(generated):
    for r in generated().rounds:
        for p, q, draft in zip(r.target_probs, r.draft_probs, drafted_of(r, str)):
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
        (exact_match, lambda k, n: n),  # the draw that differs is the next token's own
        (lambda *given: rejection(*given), None),  # declares nothing
    ],
)
def test_each_number_is_where_it_decided_and_the_next_draws_the_token_that_follows(generated, verifier, n_tests):
    generation = generated(verifier, n_tokens=60)
    for r, record in zip(generation.rounds, Trace.of(generation).rounds):
        k, n = len(r.drafted), n_tests(len(r.drafted), r.n_accepted) if n_tests else 0
        assert [draft["u"] for draft in record["drafted"]] == [*r.uniforms[:n], *[None] * (k - n)]
        assert record["next"]["u"] == (r.uniforms[n] if n_tests else None)


# ------------------------------------------------------------------------------------------------ trees


@pytest.mark.parametrize("verifier", [rejection, exact_match])
def test_a_tree_is_recorded_in_the_order_of_its_tests(of_trees, verifier):
    generation = of_trees(verifier)
    for r, record in zip(generation.rounds, Trace.of(generation).rounds):
        drafted = record["drafted"]
        accepted = [i for i, draft in enumerate(drafted) if draft["decision"] == "accepted"]
        assert [drafted[i]["token"] for i in accepted] == r.tokens[: r.n_accepted].tolist()
        assert [drafted[i]["parent"] for i in accepted] == [-1, *accepted][: len(accepted)]
        assert sorted(draft["token"] for draft in drafted) == sorted(r.drafted.tolist())
        tested = [draft for draft in drafted if draft["decision"] != "dropped"]
        assert tested == drafted[: len(tested)]
        assert verifier is exact_match or [draft["u"] for draft in tested] == list(r.uniforms[:-1])


def test_the_draft_token_is_once_among_the_largest():
    values = np.arange(20) / 190
    for also in range(20):
        found = largest(values, N_TOP, also)
        assert found[:N_TOP] == [*range(19, 19 - N_TOP, -1)]
        assert found[N_TOP:] == ([] if also > 19 - N_TOP else [also])
    assert largest(values, 20) == [*range(19, 0, -1)] and largest(values, 20, 0) == [*range(19, -1, -1)]
    q, p = np.array([[0.5, 0.5, 0], [1 / 3] * 3]), np.array([[0.25, 0.75, 0], [1 / 3] * 3, [1 / 3] * 3])
    round_ = Round(np.array([0, 1]), Draft(np.array([0, 1]), q, np.array([-1, -1])), Verdict((0,), 1), p, {})
    assert [[row[0] for row in draft["top"]] for draft in drafted_of(round_, str)] == [[1, 0], [1, 0, 2]]
